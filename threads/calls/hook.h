/* SPDX-License-Identifier: MIT */
/*
 * Where a program's system calls arrive: from the wrappers that stand in front
 * of libc's, and from the patched places inside libc. Here it is decided how
 * each is made:
 *
 *	plainly		what doesn't wait, on whichever kernel thread
 *	posted		what may wait: by the carrier's loop, while others run
 *	at home		what needs the thread's identity, what changes signals,
 *			what is not known
 *	otherwise	futexes, sleeps and polls have ways of their own
 *
 * Threads that aren't user threads make all calls plainly.
 */
#ifndef FLEXSC_THREADS_HOOK_H
#define FLEXSC_THREADS_HOOK_H

#include <stdint.h>

/* The kernel's result: a value or -errno. Leaves errno alone. Any thread. */
long flexsc__hook(long nr, const uint64_t args[6]);

/* The same, from a patched place: it keeps the vector registers. */
long flexsc__hook_site(long nr, const uint64_t args[6]);

#endif /* FLEXSC_THREADS_HOOK_H */
