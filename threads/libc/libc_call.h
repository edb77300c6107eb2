/* SPDX-License-Identifier: MIT */
/* System calls as libc's functions make them. Any thread of the program. */
#ifndef FLEXSC_THREADS_LIBC_CALL_H
#define FLEXSC_THREADS_LIBC_CALL_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/*
 * Returns a value, or -1 with errno set. "point": the call is a cancellation
 * point.
 */
long flexsc__libc_call(bool point, long nr, const uint64_t args[6]);

/*
 * A thread that may not be a user thread yet was cancelled. Same ordering as
 * uthread.cancelled (C1 in pthread.c, C2 in own.c).
 */
extern atomic_bool flexsc__anybody_cancelled;

#endif /* FLEXSC_THREADS_LIBC_CALL_H */
