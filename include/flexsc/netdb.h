/* SPDX-License-Identifier: MIT */
/*
 * Resolves names without blocking the loop: getaddrinfo() through flexsc_loop_work().
 * It needs POSIX's <netdb.h>, so <flexsc/flexsc.h> doesn't include it.
 */
#ifndef FLEXSC_NETDB_H
#define FLEXSC_NETDB_H

#include <errno.h>
#include <flexsc/work.h>
#include <netdb.h>
#include <stddef.h>

#ifndef AI_PASSIVE
#error "<flexsc/netdb.h> needs POSIX: compile with -D_GNU_SOURCE, or with -std=gnu11"
#endif

#ifdef __cplusplus
extern "C" {
#endif

/*
 * A request, allocated by the caller; it needs no initialisation. Until the callback
 * runs, the library owns the request and the memory to which it points.
 */
struct flexsc_getaddrinfo {
	const char *node, *service;
	const struct addrinfo *hints;
	struct addrinfo *result;	/* for freeaddrinfo(); NULL on failure */
	int error;			/* EAI_*, for gai_strerror(), or 0 */
};

static inline int64_t flexsc_getaddrinfo_run(void *arg)
{
	struct flexsc_getaddrinfo *request = (struct flexsc_getaddrinfo *)arg;

	request->error = getaddrinfo(request->node, request->service,
				     request->hints, &request->result);
	if (request->error)
		request->result = NULL;
	switch (request->error) {
	case 0:
		return 0;
	case EAI_SYSTEM:
		return -errno;
	case EAI_MEMORY:
		return -ENOMEM;
	case EAI_AGAIN:
		return -EAGAIN;
	default:
		return -ENOENT;
	}
}

/*
 * getaddrinfo(3). On success, the callback's ret is 0, and the caller frees the list
 * request->result. Otherwise ret is negative, and request->error has the reason:
 * flexsc-work(3).
 */
static inline int flexsc_loop_getaddrinfo(struct flexsc_loop *loop,
					  struct flexsc_cb *cb,
					  struct flexsc_getaddrinfo *request,
					  const char *node,
					  const char *service,
					  const struct addrinfo *hints)
{
	request->node = node;
	request->service = service;
	request->hints = hints;
	request->result = NULL;
	request->error = 0;
	return flexsc_loop_work(loop, cb, flexsc_getaddrinfo_run, request);
}

#ifdef __cplusplus
}
#endif

#endif /* FLEXSC_NETDB_H */
