/* SPDX-License-Identifier: MIT */
#ifndef FLEXSC_TESTS_LATE_H
#define FLEXSC_TESTS_LATE_H

#include <stdatomic.h>

/* Microseconds by which the creation of a thread, and its start, are delayed. */
extern atomic_uint late_to_make, late_to_begin;

#endif /* FLEXSC_TESTS_LATE_H */
