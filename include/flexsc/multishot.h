/* SPDX-License-Identifier: MIT */
/*
 * Multishot calls complete many times: one post accepts all connections of a
 * listener, or receives all that comes on a socket. They are io_uring's
 * multishot requests where the engine has these and the descriptor is a
 * blocking one; elsewhere the library posts one call after the other.
 *
 * The cb is the library's until its last completion. Each completion sets ret,
 * and runs the callback or is harvested. A harvest has at most one completion
 * of a cb; others come in later harvests. A completion is the last one if
 * flexsc_cb_more(cb) is false in its callback, or after its harvest; then cb is
 * the program's, and may be posted again. A cb that isn't the program's yet may
 * be cancelled, also in its callback.
 *
 * Look at ret first: the last completion may have a good result, too, a
 * descriptor or bytes, when the call was cancelled or its loop destroyed, or
 * when the library couldn't go on. Otherwise the last ret says why the call
 * ended: an error, 0 for the end of a stream, -ECANCELED.
 *
 * These calls wait, although the socket may have O_NONBLOCK, SO_RCVTIMEO or
 * SO_RCVLOWAT; a socket without any of the three costs less. The file stays
 * open while the call is pending, from the next turn of the loop or
 * flexsc_loop_submit() on. Cancel the call before the descriptor is closed all
 * the same: io_uring may end a request early, and the library then posts
 * another one by the descriptor's number.
 *
 * A multishot call has no deadline and no successor: flexsc_loop_call_after() and
 * flexsc_loop_deadline() return -ENOENT for its cb. flexsc_loop_cancel() and
 * flexsc_loop_cancel_fd() end the call; completions that were on their way come
 * before the last one. A loop runs while one is pending.
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

/*
 * Accept every connection on sockfd, as accept4() with these flags
 * (SOCK_CLOEXEC, SOCK_NONBLOCK) and no address. ret: a new descriptor, which is
 * the program's to close, or an error of accept4(), which ends the call.
 *
 * 0, or the errors of flexsc_loop_call(), and -EINVAL: cb is NULL, or a flag is
 * unknown.
 */
int flexsc_loop_accept_multishot(struct flexsc_loop *loop,
				 struct flexsc_cb *cb, int sockfd, int flags);

/*
 * Memory that a loop receives into: "count" buffers (a power of two, 1 to
 * 32768) of "size" bytes each (1 to 1 GiB). A silent socket needs none of
 * them, so a few buffers serve many connections.
 *
 * Buffers belong to the loop, whose destruction frees them. -EINVAL: a count or
 * size that isn't allowed; -ENOMEM; -ENOSPC: this was done 65536 times for the
 * loop; -ESHUTDOWN, -ESTALE.
 */
struct flexsc_buffers;
int flexsc_buffers_create(struct flexsc_loop *loop,
			     struct flexsc_buffers **buffers,
			     unsigned int count, size_t size);

/*
 * Free buffers before the loop's destruction, those that the program has, too.
 * -EBUSY: a receive into them is pending; -EINVAL: NULL; -ESTALE.
 */
int flexsc_buffers_destroy(struct flexsc_buffers *buffers);

/*
 * Receive all that comes on a connected socket into such buffers. ret: how many
 * bytes are in one, which is the program's from here until
 * flexsc_buffers_return(). A datagram that is longer loses its end.
 *
 *	0		the peer sends no more; or an empty datagram came,
 *			which any sender can send: post again
 *	-ENOBUFS	a buffer was needed, and none was free. What came is
 *			still in the socket: return buffers, post again
 *	-ENOMEM		there was no memory to tell a result, which is lost
 *	-errno		of recv(); -EMFILE: the descriptor couldn't be copied
 *
 * Each of these ends the call.
 *
 * 0, or the errors of flexsc_loop_call(), and -EINVAL: cb or buffers is NULL,
 * or buffers is another loop's.
 */
int flexsc_loop_recv_multishot(struct flexsc_loop *loop, struct flexsc_cb *cb,
			       int sockfd, struct flexsc_buffers *buffers);

/*
 * Where the received bytes of a completed cb are; NULL: cb has no buffer. cb was
 * posted with these buffers. Ask before the next completion or post of cb; the
 * address is good until flexsc_buffers_return().
 */
void *flexsc_buffers_data(const struct flexsc_buffers *buffers,
			  const struct flexsc_cb *cb);

/*
 * The buffer at data is the loop's again. Owner only; costs no mode switch.
 * -EINVAL: data isn't where a buffer begins, or the program doesn't have that
 * buffer; -ESTALE.
 */
int flexsc_buffers_return(struct flexsc_buffers *buffers, void *data);

#pragma GCC visibility pop

#ifdef __cplusplus
}
#endif

#endif /* FLEXSC_MULTISHOT_H */
