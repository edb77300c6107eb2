/* SPDX-License-Identifier: MIT */
/* The global state of the runtime. Each comment names the writer of a field. */
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
	RUNTIME_NOT = 0,	/* the program has not created a thread yet */
	RUNTIME_STARTS,
	RUNTIME_RUNS,
	RUNTIME_CANT,
};

struct runtime {
	/* Written by runtime/runtime.c, while the process has one thread. */
	enum runtime_state state;
	long owner;		/* id of this process */
	bool unpatched;		/* libc isn't patched; never reset */

	/*
	 * The first function that a forked child calls; NULL before the process creates
	 * a thread. runtime/runtime.c.
	 */
	void (*forked)(void);

	/* Written by carriers.c, while it starts carriers, and in a forked child. */
	struct carrier *carriers;
	_Atomic uint32_t count;	/* number of carriers; grows with each new spare */
	uint32_t room;		/* capacity of the array */
	size_t carriers_size;	/* the same in bytes, for kthread_is_carrier() */
	/*
	 * Does only one carrier use queues? Then they need no locks. An adoption clears
	 * the field at a moment when no carrier uses a queue: adopt.c.
	 */
	bool alone;
	/* Loops can wait for a descriptor without a syscall thread (io_uring). */
	bool polls;
	bool module;		/* The loops use the kernel module. */
	bool makes_ready;	/* copy of the loops' field of the same name */
	/* May carriers spin? runtime/runtime.c, before carriers start. */
	bool spins;
	/*
	 * flexsc run --without: may event loops, and sticky user threads, stay on their
	 * hosts? runtime/runtime.c, before carriers start.
	 */
	bool loops, sticky;
	/*
	 * May the runtime use sendto(2) instead of write(2) on sockets? A seccomp
	 * filter may forbid that. runtime/runtime.c, before carriers start.
	 */
	bool sends;

	/*
	 * Any thread. A host has an affinity, a priority or the like that new threads
	 * must inherit. So user threads return to their hosts to create threads.
	 */
	atomic_bool inherited;
	/* Any thread. The process ends, so user threads on their hosts stay there. */
	atomic_bool last;
	/* dormant.c, runtime/runtime.c. Carriers and monitor have ended for now. */
	atomic_bool dormant;
	/*
	 * Any thread; never reset. A seccomp filter of all threads forbids calls that
	 * carriers need: calls/filter.h.
	 */
	atomic_bool filtered;
	/*
	 * Any thread, only if CONTEXT_SELF_IN_TLS: number of threads that are being
	 * created and still have their creator's signal mask.
	 */
	_Atomic uint32_t births;
	/* System calls that the loops of ended carriers made. */
	_Atomic uint64_t ended_calls;
};

extern struct runtime flexsc__runtime;

static inline bool runtime_runs(void)
{
	return flexsc__runtime.state == RUNTIME_RUNS;
}

/*
 * The signals that a thread raises itself. If libc isn't patched, they include SIGABRT:
 * glibc 2.41's abort() first raises it for a handler of the program's.
 */
static inline sigmask_t runtime_raised(void)
{
	return SIGNAL_RAISED |
	       (flexsc__runtime.unpatched ? SIGNAL_BIT(SIGABRT) : 0);
}

/* Is the caller a child of vfork()? Such a child shares only this memory. */
static inline bool runtime_is_lent(void)
{
	return raw_syscall(SYS_getpid, 0, 0, 0, 0, 0, 0) !=
	       flexsc__runtime.owner;
}

#endif /* FLEXSC_RUNTIME_STATE_H */
