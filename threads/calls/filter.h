/* SPDX-License-Identifier: MIT */
/*
 * Seccomp filters that the program installs for itself. The runtime makes calls that
 * the program doesn't make natively: on carriers, and around a user thread's calls.
 * A filter may make them fail, or end the process at them. A user thread with a filter
 * is therefore tied (TIED_FILTER) and makes its calls as natively; so are threads that
 * it makes.
 *
 * A filter for all threads is tried in a short-lived child first. If it forbids a call
 * that carriers need, all user threads come home for good, and carriers sleep.
 */
#ifndef FLEXSC_THREADS_FILTER_H
#define FLEXSC_THREADS_FILTER_H

#include "../run/tied.h"

/* Before u, which is at home, makes the call: it may install a filter. */
void flexsc__filter_comes(struct uthread *u, long nr, const uint64_t a[6]);

/* May a filter forbid what the runtime does around the user thread's calls? */
static inline bool filter_is_near(const struct uthread *u)
{
	return atomic_load_explicit(&u->tied, memory_order_relaxed) &
	       TIED_FILTER;
}

#endif /* FLEXSC_THREADS_FILTER_H */
