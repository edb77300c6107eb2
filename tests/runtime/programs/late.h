/* SPDX-License-Identifier: MIT */
#ifndef FLEXSC_TESTS_LATE_H
#define FLEXSC_TESTS_LATE_H

#include <stdatomic.h>

/*
 * Microseconds by which the creation of a thread, its start, and libc's part of its end
 * are delayed.
 */
extern atomic_uint late_to_make, late_to_begin, late_to_end;
/* How many threads have returned to libc since late_to_begin or late_to_end was set. */
extern atomic_uint late_ends;

#endif /* FLEXSC_TESTS_LATE_H */
