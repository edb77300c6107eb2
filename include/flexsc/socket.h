/* SPDX-License-Identifier: MIT */
/*
 * recv() and send(), which Linux has no calls of their own for: recvfrom() and
 * sendto() without an address. What they return, and who owns buf until when:
 * flexsc_loop_call() in <flexsc/call.h>.
 */
#ifndef FLEXSC_SOCKET_H
#define FLEXSC_SOCKET_H

#include <flexsc/syscalls.h>

#ifdef __cplusplus
extern "C" {
#endif

/* recv(2). The library owns buf until the callback. */
static inline int flexsc_loop_recv(struct flexsc_loop *loop,
				   struct flexsc_cb *cb, int sockfd, void *buf,
				   size_t len, int flags)
{
	return flexsc_loop_recvfrom(loop, cb, sockfd, buf, len, flags, NULL,
				    NULL);
}

/* send(2). The library owns buf until the callback. */
static inline int flexsc_loop_send(struct flexsc_loop *loop,
				   struct flexsc_cb *cb, int sockfd,
				   const void *buf, size_t len, int flags)
{
	return flexsc_loop_sendto(loop, cb, sockfd, buf, len, flags, NULL, 0);
}

/* The same on the calling thread's default loop. */

static inline int flexsc_recv(struct flexsc_cb *cb, int sockfd, void *buf,
			      size_t len, int flags)
{
	return flexsc_loop_recv(flexsc_loop_default(), cb, sockfd, buf, len,
				flags);
}

static inline int flexsc_send(struct flexsc_cb *cb, int sockfd,
			      const void *buf, size_t len, int flags)
{
	return flexsc_loop_send(flexsc_loop_default(), cb, sockfd, buf, len,
				flags);
}

#ifdef __cplusplus
}
#endif

#endif /* FLEXSC_SOCKET_H */
