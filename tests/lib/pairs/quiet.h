/* SPDX-License-Identifier: MIT */
/*
 * Do all other threads of the process sleep? Then nothing happens in the process
 * until something from outside wakes a thread. So a test that sees that, instead of
 * hoping that a time was long enough, doesn't depend on the machine's load.
 *
 * A process of its own looks, because files that the tested process opened would
 * take the numbers of descriptors that it closed.
 */
#ifndef FLEXSC_TESTS_QUIET_H
#define FLEXSC_TESTS_QUIET_H

#include <stdbool.h>

/* Make that process. First of all, as it keeps the descriptors that there are. */
bool quiet_begin(void);

/* Wait until it is quiet; false: it wasn't within so many milliseconds. */
bool quiet_await(unsigned int ms);

#endif /* FLEXSC_TESTS_QUIET_H */
