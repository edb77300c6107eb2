/* SPDX-License-Identifier: MIT */
/*
 * Seccomp filters that the program installs. The functions run on the user thread that
 * installs one.
 *
 * The runtime makes system calls that the program doesn't make natively, on carriers
 * and around a user thread's calls. A filter may make them fail, or kill the process at
 * them. So a user thread with a filter of its own is anchored (ANCHORED_FILTER), and
 * makes its calls as it would natively. The same holds for the threads that it creates.
 * docs/explanation/restrictions.md lists the few calls that the runtime adds.
 *
 * A filter for all threads is first tried in a short-lived child. If the filter forbids
 * a call that carriers need, all user threads return to their hosts for good, and the
 * carriers retire (flexsc__carriers_retire()). They also do so if the installing thread
 * already has a filter of its own, because all threads get that one, too. If the kernel
 * is certain to refuse the filter, nothing changes.
 */
#ifndef FLEXSC_RUNTIME_FILTER_H
#define FLEXSC_RUNTIME_FILTER_H

#include "runtime/sched/anchored.h"

/* Does the call set a seccomp mode? Then it must be made by flexsc__filter_make(). */
bool flexsc__filter_is_tried(long nr, const uint64_t a[6]);

/* Make u's call, which may install a filter. u is on its host. */
long flexsc__filter_make(struct uthread *u, long nr, const uint64_t a[6]);

/* Reset the lock in a forked child: the thread that held it doesn't exist there. */
void flexsc__filter_forked(void);

#endif /* FLEXSC_RUNTIME_FILTER_H */
