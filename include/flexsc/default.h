/* SPDX-License-Identifier: MIT */
/*
 * The calling thread's default loop: the interface of the ATC 2011 paper, for programs
 * with one loop per thread. flexsc_NAME() is flexsc_loop_NAME() with this loop:
 * flexsc(3).
 */
#ifndef FLEXSC_DEFAULT_H
#define FLEXSC_DEFAULT_H

#include <flexsc/flexsc.h>

#ifdef __cplusplus
extern "C" {
#endif

#pragma GCC visibility push(default)

/* Returns the calling thread's default loop, or NULL. */
struct flexsc_loop *flexsc_loop_default(void);

/*
 * Make an existing loop the thread's default; NULL: no loop. The loop's creator still
 * has to destroy it.
 */
int flexsc_loop_set_default(struct flexsc_loop *loop);

/*
 * Create, and destroy, the thread's default loop. The end of the thread also destroys
 * it.
 */
int flexsc_init(void);
int flexsc_fini(void);

#pragma GCC visibility pop

static inline int flexsc_main_loop(void)
{
	return flexsc_loop_run(flexsc_loop_default());
}

#define FLEXSC_DEFAULT(name, parameters, ...)			\
	static inline int flexsc_##name parameters		\
	{							\
		return flexsc_loop_##name(__VA_ARGS__);		\
	}

FLEXSC_DEFAULT(stop, (void), flexsc_loop_default())
FLEXSC_DEFAULT(ref, (void), flexsc_loop_default())
FLEXSC_DEFAULT(unref, (void), flexsc_loop_default())
FLEXSC_DEFAULT(submit, (void), flexsc_loop_default())
FLEXSC_DEFAULT(dispatch, (void), flexsc_loop_default())
FLEXSC_DEFAULT(wait, (uint64_t ns), flexsc_loop_default(), ns)
FLEXSC_DEFAULT(harvest, (struct flexsc_cb **done, unsigned int n),
	       flexsc_loop_default(), done, n)
FLEXSC_DEFAULT(cancel, (struct flexsc_cb *cb), flexsc_loop_default(), cb)
FLEXSC_DEFAULT(cancel_fd, (int fd), flexsc_loop_default(), fd)
FLEXSC_DEFAULT(deadline, (struct flexsc_cb *cb, uint64_t ns),
	       flexsc_loop_default(), cb, ns)
FLEXSC_DEFAULT(call_after,
	       (struct flexsc_cb *cb, struct flexsc_cb *before,
		unsigned int chain, unsigned int nr, const uint64_t args[6]),
	       flexsc_loop_default(), cb, before, chain, nr, args)
FLEXSC_DEFAULT(timer, (struct flexsc_cb *cb, uint64_t ns),
	       flexsc_loop_default(), cb, ns)
FLEXSC_DEFAULT(signal, (struct flexsc_cb *cb, int signo),
	       flexsc_loop_default(), cb, signo)
FLEXSC_DEFAULT(work,
	       (struct flexsc_cb *cb, int64_t (*run)(void *arg), void *arg),
	       flexsc_loop_default(), cb, run, arg)
FLEXSC_DEFAULT(accept_multishot,
	       (struct flexsc_cb *cb, int sockfd, int flags),
	       flexsc_loop_default(), cb, sockfd, flags)
FLEXSC_DEFAULT(recv_multishot,
	       (struct flexsc_cb *cb, int sockfd,
		struct flexsc_buffers *buffers),
	       flexsc_loop_default(), cb, sockfd, buffers)
FLEXSC_DEFAULT(recv,
	       (struct flexsc_cb *cb, int sockfd, void *buf, size_t len,
		int flags),
	       flexsc_loop_default(), cb, sockfd, buf, len, flags)
FLEXSC_DEFAULT(send,
	       (struct flexsc_cb *cb, int sockfd, const void *buf, size_t len,
		int flags),
	       flexsc_loop_default(), cb, sockfd, buf, len, flags)

#undef FLEXSC_DEFAULT

#ifdef __cplusplus
}
#endif

/* All system calls; generated. */
#include <flexsc/default_syscalls.h>

#endif /* FLEXSC_DEFAULT_H */
