/* SPDX-License-Identifier: MIT */
/* System calls as libc's functions make them. Any thread of the program. */
#ifndef FLEXSC_RUNTIME_LIBC_CALL_H
#define FLEXSC_RUNTIME_LIBC_CALL_H

#include <errno.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/*
 * Returns a value, or -1 with errno set. "point": the call is a cancellation
 * point.
 */
long flexsc__libc_call(bool point, long nr, const uint64_t args[6]);

/* As flexsc__libc_call(), for a cancellation point. Returns the kernel's result. */
long flexsc__libc_point(long nr, const uint64_t args[6]);

/*
 * Converts the kernel's result to that of a libc function: -1 with errno set for an
 * error.
 */
static inline long libc_result(long ret)
{
	if ((unsigned long)ret > -4096UL) {
		errno = (int)-ret;
		return -1;
	}
	return ret;
}

/*
 * Was any thread cancelled, even one that isn't a user thread yet? Same ordering as
 * uthread.cancelled (C1 in thread_functions.c, C2 in libc_call.c).
 */
extern atomic_bool flexsc__anybody_cancelled;

#endif /* FLEXSC_RUNTIME_LIBC_CALL_H */
