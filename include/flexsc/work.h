/* SPDX-License-Identifier: MIT */
/*
 * Runs functions of the program on the loop's syscall threads. Use it for jobs that
 * would block the loop and that no system call does: getaddrinfo() (in
 * <flexsc/netdb.h>), compression, blocking libraries.
 */
#ifndef FLEXSC_WORK_H
#define FLEXSC_WORK_H

#include <flexsc/call.h>

#ifdef __cplusplus
extern "C" {
#endif

#pragma GCC visibility push(default)

/*
 * Run run(arg) on a syscall thread. cb completes with its return value as ret:
 * flexsc-work(3).
 */
int flexsc_loop_work(struct flexsc_loop *loop, struct flexsc_cb *cb,
		     int64_t (*run)(void *arg), void *arg);

/*
 * As flexsc_loop_work(), after "before": see flexsc_loop_call_after() in
 * <flexsc/call.h>.
 */
int flexsc_loop_work_after(struct flexsc_loop *loop, struct flexsc_cb *cb,
			   struct flexsc_cb *before, unsigned int chain,
			   int64_t (*run)(void *arg), void *arg);

#pragma GCC visibility pop

#ifdef __cplusplus
}
#endif

#endif /* FLEXSC_WORK_H */
