/* SPDX-License-Identifier: MIT */
/*
 * A user thread's processor time: what its host's clock shows, and its time on carriers.
 *
 * Time on carriers is counted from the start on, because a program may read it at any
 * moment. It is counted in ticks of the processor, which a carrier reads anyway where a
 * run begins and ends.
 *
 * Ticks go on while the kernel runs other threads on the carrier's processor. So the
 * carrier's own clock is read after a long run, which alone can have been disturbed much,
 * and when the thread reads its own time. All of a carrier's runs since the last reading
 * can't have taken more than that clock has advanced. Any excess is taken off the current
 * run.
 *
 * The kernel's work for a thread's posted calls counts as the carrier's.
 */
#ifndef FLEXSC_RUNTIME_CPUTIME_H
#define FLEXSC_RUNTIME_CPUTIME_H

#include "uthread.h"

/* Ticks of a long run, some 0.2 ms. */
#define CPUTIME_TICKS	500000U

/* Any thread: processor time of a kernel thread, in nanoseconds. */
uint64_t flexsc__cputime_of(int32_t tid);

/*
 * The calling carrier, while it runs u or right after: correct what u has
 * computed. The run is counted up to "now", in ticks, because the carrier may
 * be off its processor between that moment and the look.
 */
void flexsc__cputime_look(struct carrier *c, struct uthread *u, uint64_t now);

/* Time that u, the calling user thread, has computed on carriers, in ns. */
uint64_t flexsc__cputime_own(struct uthread *u);
/*
 * Time that another user thread has computed on carriers, in ns. With the list
 * of user threads locked.
 */
uint64_t flexsc__cputime_other(const struct uthread *u);
/* Time that u has computed on carriers before its current run, in ns. */
uint64_t flexsc__cputime_before(const struct uthread *u);
/* Ticks on carriers as time, in ns. */
uint64_t flexsc__cputime_ns(uint64_t ticks);

#endif /* FLEXSC_RUNTIME_CPUTIME_H */
