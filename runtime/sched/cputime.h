/* SPDX-License-Identifier: MIT */
/*
 * A user thread's processor time: that of its host's clock, plus its time on carriers.
 *
 * Time on carriers is counted from the start, because a program may read it at any
 * moment. The unit is the processor's ticks, which a carrier reads anyway when a run
 * begins and ends.
 *
 * Ticks also pass while the kernel runs other threads on the carrier's processor. So
 * the carrier's own clock is read when the thread queries its time, and after a long
 * run; a short run can't have been disturbed much. All runs since the last reading
 * can't have taken more time than that clock has advanced. Any excess is subtracted
 * from the current run.
 *
 * The kernel's work for a thread's posted calls counts as the carrier's.
 */
#ifndef FLEXSC_RUNTIME_CPUTIME_H
#define FLEXSC_RUNTIME_CPUTIME_H

#include "uthread.h"

/* A long run, in ticks: some 0.2 ms. */
#define CPUTIME_TICKS	500000U

/* Any thread: processor time of a kernel thread, in nanoseconds. */
uint64_t flexsc__cputime_of(int32_t tid);

/*
 * Correct u's processor time by c's clock. Called by carrier c while it runs u, or
 * right after. now: the end of u's run so far, in ticks. c may be preempted between
 * "now" and the reading of the clock.
 */
void flexsc__cputime_look(struct carrier *c, struct uthread *u, uint64_t now);

/* Time that u, the calling user thread, has computed on carriers, in ns. */
uint64_t flexsc__cputime_own(struct uthread *u);
/* With the list locked: time that another user thread has run on carriers, in ns. */
uint64_t flexsc__cputime_other(const struct uthread *u);
/* Time that u has computed on carriers before its current run, in ns. */
uint64_t flexsc__cputime_before(const struct uthread *u);
uint64_t flexsc__cputime_ns(uint64_t ticks);

#endif /* FLEXSC_RUNTIME_CPUTIME_H */
