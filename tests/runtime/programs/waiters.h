/* SPDX-License-Identifier: MIT */
/*
 * Threads that wait, some of each kind, and a process that wakes them and counts wrong
 * results. Each thread counts its waits.
 */
#ifndef FLEXSC_TESTS_WAITERS_H
#define FLEXSC_TESTS_WAITERS_H

#include <stdatomic.h>

#include "hang.h"

/* Set by end_waiting(). */
extern atomic_bool waiters_stop;

/* Returns the process that wakes the waiters, for end_waiting(). */
int begin_waiting(void);
void end_waiting(int pid);

/* Every waiter waits n times more. Fails if a hanging call expires before that. */
void all_go_on(long n, const struct hang *hanging, unsigned int count);

/* The longest pause of the process that wakes the waiters, in ns, since the last reset. */
void waker_pause_reset(void);
uint64_t waker_pause(void);

#endif /* FLEXSC_TESTS_WAITERS_H */
