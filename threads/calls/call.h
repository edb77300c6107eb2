/* SPDX-License-Identifier: MIT */
/*
 * A user thread's system call, in each of the ways that it can be made
 * (hook.h says which is whose). All run on the user thread, inside the runtime,
 * and return what the kernel did: a value or -errno. Where "u->point" is set,
 * a cancellation takes effect while the call waits, and only if it did nothing.
 */
#ifndef FLEXSC_THREADS_CALL_H
#define FLEXSC_THREADS_CALL_H

#include "../run/uthread.h"

/* An argument that is one. */
static inline const void *flexsc__arg_pointer(uint64_t arg)
{
	return (const void *)(uintptr_t)arg;
}

/* On whichever kernel thread, inside the runtime: it doesn't wait. */
long flexsc__call_plainly(long nr, const uint64_t a[6]);

/* The same, outside: it may take a while, and signals don't wait for it. */
long flexsc__call_exposed(struct uthread *u, long nr, const uint64_t a[6]);

/* For one that is at home: as libc would make it. */
long flexsc__call_at_home(struct uthread *u, long nr, const uint64_t a[6]);

/* For one that isn't. */
long flexsc__call_go_home(struct uthread *u, long nr, const uint64_t a[6]);

/* By the carrier's loop, while others run; begun again after SA_RESTART. */
long flexsc__call_post(struct uthread *u, long nr, const uint64_t a[6]);

/*
 * Was the wait ended by a signal that the program is to see? What never
 * happened is begun again otherwise.
 */
bool flexsc__call_interrupted(struct uthread *u, long nr);

#endif /* FLEXSC_THREADS_CALL_H */
