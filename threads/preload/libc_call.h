/* SPDX-License-Identifier: MIT */
/* System calls as libc's functions make them. Any thread of the program. */
#ifndef FLEXSC_THREADS_LIBC_CALL_H
#define FLEXSC_THREADS_LIBC_CALL_H

#include <stdbool.h>
#include <stdint.h>

/* A value, or -1 and errno. "point": it is a cancellation point. */
long flexsc__libc_call(bool point, long nr, const uint64_t args[6]);

#endif /* FLEXSC_THREADS_LIBC_CALL_H */
