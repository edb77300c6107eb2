/* SPDX-License-Identifier: MIT */
/*
 * A carrier: the kernel thread that runs user threads on one core (OSDI 2010,
 * section 4.2), with a loop of its own for their system calls. This is its state;
 * carrier_run.c has what it does, and carriers.h starts and ends all carriers.
 *
 *	RUNNING		runs user threads, or sleeps in its loop (idle)
 *	STANDING BY	a spare (spare.h): it runs nothing until it adopts
 *	STUCK		its user thread is in a call that no signal interrupts;
 *			another carrier has adopted it: enum adopt, adopt.h
 *	RETIRED		it sleeps for good: retire.h
 */
#ifndef FLEXSC_RUNTIME_CARRIER_H
#define FLEXSC_RUNTIME_CARRIER_H

#include <flexsc/loop.h>

#include "lib/loop/arena.h"
#include "runqueue.h"
#include "uthread.h"

/* A system call that a kernel thread is in, as /proc shows it. */
struct stuck {
	long nr;		/* -1: none */
	uint64_t args[6];
	uint64_t sp, pc;
};

/* A kernel thread's progress so far. */
struct carrier_progress {
	uint64_t waits;		/* times it has blocked */
	uint64_t ran;		/* processor time, ns */
};

/* Whether another carrier has adopted this one. adopt.h has the transitions. */
enum adopt {
	ADOPT_NOT = 0,
	ADOPT_CHECKED,	/* the monitor checks whether it is stuck */
	ADOPT_REQUESTED,	/* it is stuck; another carrier is to be its heir */
	ADOPT_TAKEN,	/* the heir takes over */
	ADOPT_DONE,	/* it is its heir's ward */
	ADOPT_LEAVES,	/* it runs again, and waits for its loop */
};

struct carrier {
	struct kthread k;
	pthread_t thread;
	struct flexsc_loop *loop;
	struct flexsc_cb end;	/* wakes the loop to end the carrier */
	_Atomic uint32_t retired; /* 1: it is; flexsc__carriers_retire() waits */
	bool ends;		/* "end" was woken; on this carrier */
	struct runqueue queue;
	struct runqueue later;	/* heavy user threads */
	bool roused;		/* it has slept, and has not looked for work since */
	unsigned int number;
	uint32_t runs;		/* runs since the last look for completions */
	uint32_t passed;	/* runs since the last one from "later" */
	uint32_t random;	/* the last random number: runqueue.c */
	uint32_t calls;		/* made in the current run: calls/hook.c */
	uint64_t began;		/* current run: context_ticks() */
	uint64_t ran;		/* ticks of all runs before the current */
	struct {		/* the last reading of its clock: cputime.c */
		uint64_t at;	/* context_ticks() */
		uint64_t ran;	/* ticks of all runs until then */
		uint64_t ns;	/* the clock's value */
	} clock;
	void *stack;		/* signal stack: signals/signals.h */
	sigmask_t open;		/* to restore: signals/signals.c */
	_Atomic sigmask_t blocked;	/* signals of SIGNAL_RAISED */
	/*
	 * Found by a SIGPIPE's handler while no user thread's own code runs
	 * here, and by the loop's completions: signals/signals.h.
	 */
	atomic_bool pipe_came;	/* a SIGPIPE came */
	bool pipe_broke;	/* a posted call ended with EPIPE */
	uint64_t switches_seen;	/* the monitor's: "switches" at its last look */
	struct stuck stuck;	/* the call to leave for the host: T1, T2 */
	struct carrier_progress progress; /* at the monitor's last look */
	int stuck_fd, status_fd;	/* its files in /proc: proc.h */
	int kept_timer;		/* flexsc__signal_timer() */
	uint64_t timed;		/* the monitor's: run kept_timer was set for */
	/* Carriers whose heir this one is: adopt.c, on this carrier. */
	struct carrier *wards, *next_ward;
	bool accepts;	/* stuck with armed accepts; counted: moved.c */
	struct {		/* futex_timer.h */
		struct arena all;
		uint32_t made;
		struct futex_timer *free;
	} timers;
	/* Written by other threads, from here on. */
	_Atomic(struct uthread *) inbox __attribute__((aligned(64)));
	_Atomic(struct uthread *) rechecks;	/* whose waits to check: inbox.h */
	/*
	 * Call flexsc__adopt_attend(): "to_adopt" or "adopt" has changed, or the
	 * carriers are to retire.
	 */
	atomic_bool attend;
	_Atomic(struct carrier *) to_adopt;	/* a stuck carrier; or NULL */
	_Atomic(struct carrier *) heir;	/* has adopted this one; or NULL: D1, D2 */
	_Atomic uint32_t adopt;		/* enum adopt */
	atomic_bool spare;	/* runs nothing until it adopts: spare.h */
	atomic_bool idle;
	/*
	 * Value of "switches" for which the monitor calls the running user
	 * thread to its host.
	 */
	_Atomic uint64_t preempt;
	atomic_bool called;	/* a signal will read "stuck": T1, T2 */
	_Atomic uint32_t changed;	/* N1, N2 in signals/identity.c */
	_Atomic(struct futex_timer *) dead_timers;	/* futex_timer.h */
};

/* The carrier that acts for c: c itself, its heir, or the heir of that one. */
static inline struct carrier *carrier_heir(struct carrier *c)
{
	struct carrier *heir;

	/* D2 in adopt.h. */
	while (c && (heir = atomic_load(&c->heir)))
		c = heir;
	return c;
}

/* How many user threads are in c's queues? */
static inline uint32_t runqueue_waiting(const struct carrier *c)
{
	return atomic_load_explicit(&c->queue.count, memory_order_relaxed) +
	       atomic_load_explicit(&c->later.count, memory_order_relaxed);
}

/* Does another carrier act for c? Then c's user thread has to go to its host. */
static inline bool carrier_is_ward(const struct carrier *c)
{
	return atomic_load(&c->adopt) == ADOPT_DONE;
}

/* Any thread: have c call flexsc__adopt_attend(), on its own stack. */
static inline void carrier_request_attention(struct carrier *c)
{
	atomic_store(&c->attend, true);
	flexsc_loop_wake(c->loop, NULL);
	/* It may wait for its loop instead: get_loop_back() in adopt.c. */
	futex_wake(&c->adopt);
}

/* carrier_run.c: carrier c, on its own stack, runs user threads until it is to end. */
void flexsc__carrier_run(struct carrier *c);

#endif /* FLEXSC_RUNTIME_CARRIER_H */
