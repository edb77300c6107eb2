/* SPDX-License-Identifier: MIT */
/*
 * What else completes on a loop: timers, signals, wake-ups from other threads.
 * Each is a cb like a system call's, posted once and completing once; post it
 * again from its callback to have it again. flexsc_loop_cancel() ends timers
 * and signals with -ECANCELED. None of them takes an entry.
 *
 * As for calls, only callback and arg need initialising; but a memory checker
 * may remark that the handle of a timer or a wake-up is looked at.
 *
 * Errors in common: -ENXIO (no loop), -EINVAL (bad argument), -EBUSY (cb is
 * pending; checking build), -ESHUTDOWN, -ESTALE, -ENOMEM; see flexsc_loop_call().
 */
#ifndef FLEXSC_EVENT_H
#define FLEXSC_EVENT_H

#include <flexsc/call.h>

#ifdef __cplusplus
extern "C" {
#endif

#pragma GCC visibility push(default)

/*
 * Complete cb with ret 0 after ns nanoseconds of CLOCK_MONOTONIC: never early,
 * late by at most 66 microseconds plus what the loop is busy with. Arming,
 * cancelling and firing cost the same for one timer and for a million.
 *
 * A pending timer that is posted again is replaced: it completes once, at the
 * new time. It is pending until its callback starts, or until it is cancelled;
 * a cancelled one has to run its callback before it may be posted again.
 */
int flexsc_loop_timer(struct flexsc_loop *loop, struct flexsc_cb *cb,
		      uint64_t ns);

/*
 * Complete cb with ret signo when the process or a thread gets that signal. The
 * first cb for a signal installs a handler (SA_RESTART) that stays until the
 * last loop that asked for it is destroyed.
 *
 * Meanwhile no signal is lost: one that arrives between two posts completes the
 * second at once. Several loops may ask for one signal; each is told. Like
 * pending signals, ones that arrive faster than they're handled merge. -EINVAL:
 * the signal can't be caught.
 */
int flexsc_loop_signal(struct flexsc_loop *loop, struct flexsc_cb *cb,
		       int signo);

/*
 * From any thread, and from signal handlers: run cb's callback on the loop's
 * own thread, with ret 0. Wakes the loop if it sleeps. cb == NULL only wakes.
 * Can't be cancelled.
 *
 * A cb may be woken at any time, also while its callback runs or when it has
 * been woken already: one callback then answers several wake-ups. After each
 * wake-up a callback begins, and what the caller wrote before is visible to it.
 * So such a cb is for the wake-ups of one loop only, and lives until the last
 * one's callback; that may free it.
 *
 * -ENXIO (no loop), -ESTALE, -ESHUTDOWN (from callbacks of a loop that is
 * being destroyed); it never fails otherwise.
 */
int flexsc_loop_wake(struct flexsc_loop *loop, struct flexsc_cb *cb);

/* Timers and signals of the calling thread's default loop. */

static inline int flexsc_timer(struct flexsc_cb *cb, uint64_t ns)
{
	return flexsc_loop_timer(flexsc_loop_default(), cb, ns);
}

static inline int flexsc_signal(struct flexsc_cb *cb, int signo)
{
	return flexsc_loop_signal(flexsc_loop_default(), cb, signo);
}

#pragma GCC visibility pop

#ifdef __cplusplus
}
#endif

#endif /* FLEXSC_EVENT_H */
