/* SPDX-License-Identifier: MIT */
/*
 * recv() and send(), which are not system calls of Linux: recvfrom() and sendto()
 * without an address. See flexsc_loop_call() in <flexsc/call.h> for return values and
 * for the ownership of buf.
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

/*
 * Post recv(2) or send(2) after "before": flexsc_loop_call_after() in <flexsc/call.h>.
 */
static inline int flexsc_loop_recv_after(struct flexsc_loop *loop,
					 struct flexsc_cb *cb,
					 struct flexsc_cb *before,
					 unsigned int chain, int sockfd,
					 void *buf, size_t len, int flags)
{
	return flexsc_loop_recvfrom_after(loop, cb, before, chain, sockfd, buf,
					  len, flags, NULL, NULL);
}

static inline int flexsc_loop_send_after(struct flexsc_loop *loop,
					 struct flexsc_cb *cb,
					 struct flexsc_cb *before,
					 unsigned int chain, int sockfd,
					 const void *buf, size_t len, int flags)
{
	return flexsc_loop_sendto_after(loop, cb, before, chain, sockfd, buf,
					len, flags, NULL, 0);
}

#ifdef __cplusplus
}
#endif

#endif /* FLEXSC_SOCKET_H */
