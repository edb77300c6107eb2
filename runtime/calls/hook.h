/* SPDX-License-Identifier: MIT */
/*
 * The entry point of the program's system calls. They come from the wrappers in front
 * of libc's functions, and from the patched places inside libc. The hook chooses how a
 * user thread's call is made:
 *
 *	plainly		on any kernel thread: the call doesn't wait
 *	posted		by the carrier's loop while other user threads run: the call
 *			may wait
 *	on its host	the call needs the thread's identity, acts on its signals, or
 *			is unknown
 *	natively	an event loop's call, on its host (sched/sticky.h)
 *	otherwise	futexes, sleeps and polls: ufutex.h, sleep.c, polling.h
 *
 * Other threads make their calls plainly, except for futexes, signal actions and
 * threads' clocks, which the runtime has to see.
 */
#ifndef FLEXSC_RUNTIME_HOOK_H
#define FLEXSC_RUNTIME_HOOK_H

#include <stdint.h>

/* Any thread. Returns the kernel's result: a value or -errno. Leaves errno alone. */
long flexsc__hook(long nr, const uint64_t args[6]);

/* flexsc__hook() for a patched place, which must preserve vector registers. */
long flexsc__hook_site(long nr, const uint64_t args[6]);

/* flexsc__hook_site() for a call that is a cancellation point. */
long flexsc__hook_site_point(long nr, const uint64_t args[6]);

#endif /* FLEXSC_RUNTIME_HOOK_H */
