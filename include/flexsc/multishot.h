/* SPDX-License-Identifier: MIT */
/*
 * Multishot calls complete many times: one post accepts all connections of a listening
 * socket, or receives all data of a connected one. See flexsc-multishot(3).
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

/* Flags of a completed cb. Ignore unknown ones. */
#define FLEXSC_CB_MORE		0x1U	/* see flexsc_cb_more() */
#define FLEXSC_CB_BUFFER	0x2U	/* the cb has a buffer: flexsc_buffers_data() */

/* Will this completed cb complete again? */
static inline bool flexsc_cb_more(const struct flexsc_cb *cb)
{
	return (cb->flags & FLEXSC_CB_MORE) != 0;
}

/* Accept all connections of sockfd, with flags of accept4(). ret: a new descriptor. */
int flexsc_loop_accept_multishot(struct flexsc_loop *loop,
				 struct flexsc_cb *cb, int sockfd, int flags);

/*
 * Create count buffers (a power of two, at most 32768) of size bytes (at most 1 GiB).
 */
struct flexsc_buffers;
int flexsc_buffers_create(struct flexsc_loop *loop,
			     struct flexsc_buffers **buffers,
			     unsigned int count, size_t size);

/* Free the buffers. Call it before the loop is destroyed. */
int flexsc_buffers_destroy(struct flexsc_buffers *buffers);

/* Receive all data of a connected socket. ret: the number of bytes in a buffer. */
int flexsc_loop_recv_multishot(struct flexsc_loop *loop, struct flexsc_cb *cb,
			       int sockfd, struct flexsc_buffers *buffers);

/* The received bytes of a completed cb; NULL: cb has no buffer. */
void *flexsc_buffers_data(const struct flexsc_buffers *buffers,
			  const struct flexsc_cb *cb);

/* Return the buffer at data to the loop. */
int flexsc_buffers_return(struct flexsc_buffers *buffers, void *data);

#pragma GCC visibility pop

#ifdef __cplusplus
}
#endif

#endif /* FLEXSC_MULTISHOT_H */
