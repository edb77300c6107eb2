/* SPDX-License-Identifier: MIT */
/*
 * Multishot calls complete many times: one post accepts all connections of a listener,
 * or receives all that comes on a socket. flexsc-multishot(3) is the reference.
 */
#ifndef FLEXSC_MULTISHOT_H
#define FLEXSC_MULTISHOT_H

#include <stdbool.h>
#include <stddef.h>

#include <flexsc/call.h>

#ifdef __cplusplus
extern "C" {
#endif

#pragma GCC visibility push(default)

/* Flags of a completed cb. Ignore those that you don't know. */
#define FLEXSC_CB_MORE		0x1U	/* see flexsc_cb_more() */
#define FLEXSC_CB_BUFFER	0x2U	/* it has one: flexsc_buffers_data() */

/* Does another completion of this completed cb follow? */
static inline bool flexsc_cb_more(const struct flexsc_cb *cb)
{
	return (cb->flags & FLEXSC_CB_MORE) != 0;
}

/* Accept every connection on sockfd, with flags of accept4(). ret: a new descriptor. */
int flexsc_loop_accept_multishot(struct flexsc_loop *loop,
				 struct flexsc_cb *cb, int sockfd, int flags);

/* Make count buffers (a power of two, at most 32768) of size bytes (at most 1 GiB). */
struct flexsc_buffers;
int flexsc_buffers_create(struct flexsc_loop *loop,
			     struct flexsc_buffers **buffers,
			     unsigned int count, size_t size);

/* Free buffers before the loop's destruction. */
int flexsc_buffers_destroy(struct flexsc_buffers *buffers);

/* Receive all that comes on a connected socket. ret: how many bytes are in a buffer. */
int flexsc_loop_recv_multishot(struct flexsc_loop *loop, struct flexsc_cb *cb,
			       int sockfd, struct flexsc_buffers *buffers);

/* Where the received bytes of a completed cb are; NULL: cb has no buffer. */
void *flexsc_buffers_data(const struct flexsc_buffers *buffers,
			  const struct flexsc_cb *cb);

/* The buffer at data is the loop's again. */
int flexsc_buffers_return(struct flexsc_buffers *buffers, void *data);

#pragma GCC visibility pop

#ifdef __cplusplus
}
#endif

#endif /* FLEXSC_MULTISHOT_H */
