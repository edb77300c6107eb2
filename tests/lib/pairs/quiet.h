/* SPDX-License-Identifier: MIT */
/*
 * Do all other threads of the process sleep? Then nothing happens in the process
 * until something from outside wakes a thread. A test that waits for this doesn't
 * depend on the machine's load, unlike a test that sleeps for some time.
 *
 * A separate process observes, because files that the tested process opened would
 * take the numbers of descriptors that it has closed.
 */
#ifndef FLEXSC_TESTS_QUIET_H
#define FLEXSC_TESTS_QUIET_H

#include <stdbool.h>

/*
 * Creates the observer. Called first, because the observer keeps the open
 * descriptors.
 */
bool quiet_begin(void);

/* Waits until the process is quiet. False: not within this many milliseconds. */
bool quiet_await(unsigned int ms);

#endif /* FLEXSC_TESTS_QUIET_H */
