/* SPDX-License-Identifier: MIT */
/* System calls as libc's functions make them. Any thread of the program. */
#ifndef FLEXSC_THREADS_LIBC_CALL_H
#define FLEXSC_THREADS_LIBC_CALL_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/* A value, or -1 and errno. "point": it is a cancellation point. */
long flexsc__libc_call(bool point, long nr, const uint64_t args[6]);

/*
 * Somebody was cancelled of whom it isn't known whether he is a user thread: C1
 * and C2 are here and there what they are with "cancelled" of one.
 */
extern atomic_bool flexsc__anybody_cancelled;

#endif /* FLEXSC_THREADS_LIBC_CALL_H */
