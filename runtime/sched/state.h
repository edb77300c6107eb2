/* SPDX-License-Identifier: MIT */
/*
 * The state of the runtime that all its parts read. runtime/runtime.c starts and ends it;
 * each field's comment names the writer.
 */
#ifndef FLEXSC_RUNTIME_STATE_H
#define FLEXSC_RUNTIME_STATE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/syscall.h"
#include "runtime/base/sigset.h"

struct carrier;

enum runtime_state {
	RUNTIME_NOT = 0,	/* the program has made no known thread */
	RUNTIME_STARTS,
	RUNTIME_RUNS,
	RUNTIME_CANT,
};

struct runtime {
	/* While there is one thread: runtime/runtime.c. */
	enum runtime_state state;
	long owner;		/* id of the process that the runtime runs in */
	bool unpatched;		/* libc isn't patched; never reset */

	/*
	 * What a forked child does first, on the thread that forked; NULL before the
	 * process makes its first thread. runtime/runtime.c.
	 */
	void (*forked)(void);

	/* carriers.c, while it starts the carriers; or in a forked child. */
	struct carrier *carriers;
	_Atomic uint32_t count;	/* how many they are; spares are added */
	uint32_t room;		/* how many they can be */
	/*
	 * No more than one uses queues. Adopting ends that, while no carrier is at
	 * a queue: adopt.c.
	 */
	bool alone;
	/* Loops wait for one descriptor without a syscall thread: io_uring. */
	bool polls;
	bool makes_ready;	/* as of each loop */
	/*
	 * May a carrier look around for work? runtime/runtime.c, before there
	 * are carriers.
	 */
	bool spins;
	/*
	 * flexsc run --without: do event loops stay on its host, do user threads
	 * stay there? runtime/runtime.c, before there are carriers.
	 */
	bool loops, sticky;
	/*
	 * May the runtime send where the program writes? A filter may forbid that.
	 * runtime/runtime.c, before there are carriers.
	 */
	bool sends;

	/*
	 * Any thread. A host has an affinity, a priority or the like of its
	 * own, which new threads are to inherit: from then on a thread returns
	 * to its host to make threads.
	 */
	atomic_bool inherited;
	/* Any thread. The process ends: user threads that return to their hosts stay. */
	atomic_bool last;
	/* There are no carriers, and no monitor: dormant.h. */
	atomic_bool dormant;
	/*
	 * Any thread; never reset. All threads have a filter that forbids what
	 * carriers do: calls/filter.h.
	 */
	atomic_bool filtered;
	/* System calls of the loops of carriers that have ended. */
	_Atomic uint64_t ended_calls;
};

extern struct runtime flexsc__runtime;

static inline bool runtime_runs(void)
{
	return flexsc__runtime.state == RUNTIME_RUNS;
}

/*
 * The signals that a thread raises itself. Where libc isn't patched, these include that of
 * its abort(): glibc 2.41's first checks whether a handler runs.
 */
static inline sigmask_t runtime_raised(void)
{
	return SIGNAL_RAISED |
	       (flexsc__runtime.unpatched ? SIGNAL_BIT(SIGABRT) : 0);
}

/*
 * Is the calling thread a child of vfork()? It shares this memory, but nothing
 * else.
 */
static inline bool runtime_is_lent(void)
{
	return raw_syscall(SYS_getpid, 0, 0, 0, 0, 0, 0) !=
	       flexsc__runtime.owner;
}

#endif /* FLEXSC_RUNTIME_STATE_H */
