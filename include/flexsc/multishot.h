/* SPDX-License-Identifier: MIT */
/*
 * Calls that complete many times: one post accepts all connections of a
 * listener, or receives all that comes on a socket. io_uring's multishot
 * requests where the engine has them; elsewhere the library posts one call
 * after the other, and what a program sees is no different.
 *
 * The cb is the library's until the last completion. Each completion sets ret
 * and runs the callback, or is harvested; a cb is in one harvest once. While
 * flexsc_cb_more(cb) is true there, another one follows, and cb may be
 * cancelled, also from its callback. The last one has the reason as ret: an
 * error, 0 for the end of what is received, -ECANCELED. (It may also be a good
 * result, if the library couldn't go on: -ENOMEM, or the loop is being
 * destroyed.) cb is the program's again then, and may be posted again.
 *
 * Nothing waits shorter or ends for the sake of O_NONBLOCK or of the socket's
 * time limits; but for a socket without them it costs less. The file stays open
 * while the call is pending, whatever becomes of the descriptor.
 *
 * Neither chains nor deadlines: flexsc_loop_chain() before one is -EINVAL,
 * flexsc_loop_call_after() and flexsc_loop_deadline() of one are -ENOENT.
 * flexsc_loop_cancel() and flexsc_loop_cancel_fd() end it, and a loop runs
 * while one is pending. Completions that were on their way come before the last one.
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

/* In a completed cb's handle: see flexsc_cb_more(). */
#define FLEXSC_CB_MORE	(1ULL << 32)

/* Another completion of this cb follows. From the callback on, or harvested. */
static inline bool flexsc_cb_more(const struct flexsc_cb *cb)
{
	return (cb->handle & FLEXSC_CB_MORE) != 0;
}

/*
 * Accept every connection on sockfd, as accept4() with these flags
 * (SOCK_CLOEXEC, SOCK_NONBLOCK) and no address. ret: a new descriptor, the
 * program's to close, or -errno, which is the last: -EMFILE, -ECONNABORTED.
 *
 * 0, or the errors of flexsc_loop_call(), and -EINVAL: cb is NULL, or another
 * flag.
 */
int flexsc_loop_accept_multishot(struct flexsc_loop *loop,
				 struct flexsc_cb *cb, int sockfd, int flags);

/*
 * Memory that a loop receives into: "count" buffers (a power of two, 1 to
 * 32768) of "size" bytes each (1 to 1 GiB). A silent socket needs none of
 * them, so a few buffers serve many connections.
 *
 * They belong to the loop, and its destruction frees them. -EINVAL: another
 * count or size; -ENOMEM; -ENOSPC: the loop has had 65536 of these;
 * -ESHUTDOWN, -ESTALE.
 */
struct flexsc_buffers;
int flexsc_loop_make_buffers(struct flexsc_loop *loop,
			struct flexsc_buffers **buffers, unsigned int count,
			size_t size);

/* Free them earlier. -EBUSY: a receive into them is pending; -EINVAL: NULL. */
int flexsc_buffers_free(struct flexsc_buffers *buffers);

/*
 * Receive all that comes on a connected socket into such buffers. ret: how many
 * bytes are in one, which is the program's from here until
 * flexsc_buffers_return(). A datagram that is longer loses its end.
 *
 *	0		the peer sends no more (or an empty datagram): the last
 *	-ENOBUFS	something came, and no buffer was free: the last. What
 *			came is still in the socket: return buffers, post again
 *	-errno		of recv(): the last
 *
 * 0, or the errors of flexsc_loop_call(), and -EINVAL: cb or buffers is NULL,
 * or buffers is another loop's.
 */
int flexsc_loop_recv_multishot(struct flexsc_loop *loop, struct flexsc_cb *cb,
			       int sockfd, struct flexsc_buffers *buffers);

/* Where the received bytes of a completed cb are; NULL: it has no buffer. */
void *flexsc_buffers_data(const struct flexsc_buffers *buffers,
			  const struct flexsc_cb *cb);

/*
 * The buffer at data is the loop's again. Owner only; costs no mode switch.
 * -EINVAL: it isn't a buffer's beginning, or no program's.
 */
int flexsc_buffers_return(struct flexsc_buffers *buffers, void *data);

/* The same on the calling thread's default loop. */

static inline int flexsc_accept_multishot(struct flexsc_cb *cb, int sockfd,
					  int flags)
{
	return flexsc_loop_accept_multishot(flexsc_loop_default(), cb, sockfd,
					    flags);
}

static inline int flexsc_make_buffers(struct flexsc_buffers **buffers,
				 unsigned int count, size_t size)
{
	return flexsc_loop_make_buffers(flexsc_loop_default(), buffers, count, size);
}

static inline int flexsc_recv_multishot(struct flexsc_cb *cb, int sockfd,
					struct flexsc_buffers *buffers)
{
	return flexsc_loop_recv_multishot(flexsc_loop_default(), cb, sockfd,
					  buffers);
}

#pragma GCC visibility pop

#ifdef __cplusplus
}
#endif

#endif /* FLEXSC_MULTISHOT_H */
