/* SPDX-License-Identifier: MIT */
/*
 * Functions of the program's, run on the loop's syscall threads: for what no
 * system call does and would stop the loop (getaddrinfo(), in
 * <flexsc/netdb.h>; a compression, a library that blocks).
 */
#ifndef FLEXSC_WORK_H
#define FLEXSC_WORK_H

#include <flexsc/call.h>

#ifdef __cplusplus
extern "C" {
#endif

#pragma GCC visibility push(default)

/*
 * Run run(arg) on a syscall thread; cb completes with ret == what it returns.
 * It is posted, chained and cancelled like a call, with the same errors, and
 * -EINVAL if run is NULL. FLEXSC_CHAIN_ARG(0) replaces arg; another argument is
 * -EINVAL. What the caller wrote before is visible to run, and
 * what run wrote to the callback. arg belongs to run until the callback.
 *
 * The thread has a stack of one megabyte, blocks all signals, and is another
 * one each time. run may call flexsc_loop_wake() and flexsc_loop_stop(), and
 * nothing else of this loop. As many run at once as the option max_threads
 * says, less one, but one at least; the rest wait, and system calls go on
 * meanwhile. "sync" runs it on the owner's thread when it is submitted.
 *
 * Cancelled, or late for its deadline, before it started it doesn't run, and
 * ret is -ECANCELED or -ETIME. While it runs it isn't interrupted, since it may
 * hold locks: it goes on to its end, with the true result. So
 * flexsc_loop_destroy() waits for those that run, and for those without a cb,
 * which still happen. ret is better none of -EINTR and -ECANCELED: after a
 * deadline these become -ETIME. A forked child has none of it.
 */
int flexsc_loop_work(struct flexsc_loop *loop, struct flexsc_cb *cb,
		     int64_t (*run)(void *arg), void *arg);

/* The same after "before": flexsc_loop_call_after() in <flexsc/call.h>. */
int flexsc_loop_work_after(struct flexsc_loop *loop, struct flexsc_cb *cb,
			   struct flexsc_cb *before, unsigned int chain,
			   int64_t (*run)(void *arg), void *arg);

#pragma GCC visibility pop

#ifdef __cplusplus
}
#endif

#endif /* FLEXSC_WORK_H */
