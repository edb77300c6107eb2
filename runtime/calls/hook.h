/* SPDX-License-Identifier: MIT */
/*
 * Where a program's system calls arrive: from the wrappers in front of libc's
 * functions, and from the patched places inside libc. For a user thread's call
 * the way that it is made is chosen here:
 *
 *	plainly		calls that don't wait, on any kernel thread
 *	posted		calls that may wait: by the carrier's loop, while
 *			other user threads run
 *	on its host		calls that need the thread's identity or act on its
 *			signals, and unknown calls
 *	natively	an event loop's, on its host (sched/sticky.h)
 *	otherwise	futexes, sleeps and polls have ways of their own
 *
 * Other threads make their calls plainly, but for futexes, signal actions and
 * threads' clocks, which the runtime has to see.
 */
#ifndef FLEXSC_RUNTIME_HOOK_H
#define FLEXSC_RUNTIME_HOOK_H

#include <stdint.h>

/*
 * Any thread. Returns the kernel's result, a value or -errno, and leaves errno
 * alone.
 */
long flexsc__hook(long nr, const uint64_t args[6]);

/* flexsc__hook() for a patched place, where vector registers are preserved. */
long flexsc__hook_site(long nr, const uint64_t args[6]);

/* flexsc__hook_site() for a call that is a cancellation point. */
long flexsc__hook_site_point(long nr, const uint64_t args[6]);

#endif /* FLEXSC_RUNTIME_HOOK_H */
