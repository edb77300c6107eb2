/* SPDX-License-Identifier: MIT */
/*
 * Seccomp filters that the program installs for itself. The runtime makes calls that
 * the program doesn't make natively: on carriers, and around a user thread's calls.
 * A filter may make them fail, or end the process at them. A user thread with a filter
 * is therefore tied (TIED_FILTER) and makes its calls as natively; so are threads that
 * it makes.
 *
 * A filter for all threads is tried in a short-lived child first. If it forbids a call
 * that carriers need, all user threads come home for good, and carriers sleep. So it
 * is if its thread has a filter of its own, which all threads get with it. If the
 * kernel is sure to refuse the filter, carriers go on.
 */
#ifndef FLEXSC_THREADS_FILTER_H
#define FLEXSC_THREADS_FILTER_H

#include "../run/tied.h"

/* Does the call install a filter, or try to? Then flexsc__filter_make() ties u. */
bool flexsc__filter_is_tried(long nr, const uint64_t a[6]);

/* Make u's call, which may install a filter. u is at home. */
long flexsc__filter_make(struct uthread *u, long nr, const uint64_t a[6]);

/* Forget who installs a filter, in a forked child. */
void flexsc__filter_forked(void);

#endif /* FLEXSC_THREADS_FILTER_H */
