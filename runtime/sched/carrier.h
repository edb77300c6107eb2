/* SPDX-License-Identifier: MIT */
/*
 * A carrier: a kernel thread that runs user threads (OSDI 2010, section 4.2), with a
 * loop of its own for their system calls. This file has its state; carrier_run.c has
 * its main loop, and carriers.c starts and ends all carriers.
 *
 *	RUNNING		it runs user threads, or sleeps in its loop (idle)
 *	STANDING BY	it is a spare (spare.h), and runs nothing until it adopts
 *	STUCK		its user thread is in a call that no signal interrupts, and
 *			another carrier has adopted it: enum adopt, adopt.h
 *	RETIRED		it sleeps for good: retire.h
 */
#ifndef FLEXSC_RUNTIME_CARRIER_H
#define FLEXSC_RUNTIME_CARRIER_H

#include <flexsc/loop.h>

#include "lib/loop/arena.h"
#include "runqueue.h"
#include "uthread.h"

/* The system call that blocks a kernel thread, as read from /proc. */
struct stuck {
	long nr;		/* -1: none */
	uint64_t args[6];
	uint64_t sp, pc;
};

/* The progress of a kernel thread since its start. */
struct carrier_progress {
	uint64_t waits;		/* number of times it has blocked */
	uint64_t ran;		/* processor time, ns */
};

/* Has another carrier adopted this one? adopt.h lists the transitions. */
enum adopt {
	ADOPT_NOT = 0,
	ADOPT_CHECKED,	/* the monitor checks whether the carrier is stuck */
	ADOPT_REQUESTED,	/* it is stuck and needs an heir */
	ADOPT_TAKEN,	/* the heir is taking over */
	ADOPT_DONE,	/* it is the heir's ward */
	ADOPT_LEAVES,	/* it runs again, and wants its loop back */
};

struct carrier {
	struct kthread k;
	pthread_t thread;
	struct flexsc_loop *loop;
	struct flexsc_cb end;	/* completes when the carrier has to end */
	/* 1: the carrier sleeps for good. flexsc__carriers_retire() waits for this. */
	_Atomic uint32_t retired;
	bool ends;		/* "end" has completed */
	struct runqueue queue;
	struct runqueue later;	/* heavy user threads, which run later */
	bool roused;		/* it has woken up, but not looked for work yet */
	unsigned int number;
	uint32_t runs;		/* runs since the carrier last collected completions */
	uint32_t passed;	/* runs since it last took from "later" */
	uint32_t random;	/* last random number: runqueue.c */
	uint32_t calls;		/* calls made in the current run, for calls/hook.c */
	uint64_t began;		/* start of the current run, in ticks */
	uint64_t ran;		/* ticks of all runs before the current one */
	struct {		/* its CPU clock when last read, for cputime.c */
		uint64_t at;	/* context_ticks() */
		uint64_t ran;	/* ticks of all runs until that reading */
		uint64_t ns;	/* the clock's value */
	} clock;
	void *stack;		/* signal stack: signals/signals.h */
	sigmask_t open;		/* mask to restore after a signal: signals/signals.c */
	_Atomic sigmask_t blocked;	/* which signals of SIGNAL_RAISED it blocks */
	/* SIGPIPEs that arrive outside user threads' own code: signals/signals.h. */
	atomic_bool pipe_came;	/* a SIGPIPE came; set by the signal handler */
	bool pipe_broke;	/* a posted call ended with EPIPE */
	uint64_t switches_seen;	/* "switches" at the monitor's last check */
	struct stuck stuck;	/* the call that blocks its user thread */
	struct carrier_progress progress; /* at the monitor's last check */
	int stuck_fd, status_fd;	/* descriptors of files in /proc: proc.h */
	int kept_timer;		/* timer of flexsc__signal_timer() */
	uint64_t timed;		/* "switches" when the monitor set kept_timer */
	/* The carriers that this one has adopted; only this one uses the list. */
	struct carrier *wards, *next_ward;
	bool accepts;	/* counted in flexsc__poll_first_stuck: moved.c */
	struct {		/* futex_timer.h */
		struct arena all;
		uint32_t made;
		struct futex_timer *free;
	} timers;
	/* Other threads write the following fields, too. */
	_Atomic(struct uthread *) inbox __attribute__((aligned(64)));
	_Atomic(struct uthread *) rechecks;	/* threads to check: inbox.h */
	/*
	 * Set to make the carrier call flexsc__adopt_attend(): "to_adopt" or "adopt"
	 * has changed, or carriers have to retire.
	 */
	atomic_bool attend;
	/* the stuck carrier that this one has to adopt; or NULL */
	_Atomic(struct carrier *) to_adopt;
	/* the carrier that has adopted this one; or NULL: D1, D2 in adopt.h */
	_Atomic(struct carrier *) heir;
	_Atomic uint32_t adopt;		/* enum adopt */
	atomic_bool spare;	/* it runs nothing until it adopts a carrier: spare.h */
	atomic_bool idle;
	/* "switches" in the run that the monitor wants to end: identifies that run */
	_Atomic uint64_t preempt;
	/* a signal was sent whose handler will read "stuck": T1, T2 in monitor.c */
	atomic_bool called;
	_Atomic uint32_t changed;	/* N1, N2 in identity.c */
	_Atomic(struct futex_timer *) dead_timers;	/* futex_timer.h */
};

/* The carrier that acts for c: c, or its heir, or the heir's heir, and so on. */
static inline struct carrier *carrier_heir(struct carrier *c)
{
	struct carrier *heir;

	/* D2 in adopt.h. */
	while (c && (heir = atomic_load(&c->heir)))
		c = heir;
	return c;
}

/* Number of user threads in c's queues. */
static inline uint32_t runqueue_waiting(const struct carrier *c)
{
	return atomic_load_explicit(&c->queue.count, memory_order_relaxed) +
	       atomic_load_explicit(&c->later.count, memory_order_relaxed);
}

/* Does another carrier act for c? Then c's user thread has to return to its host. */
static inline bool carrier_is_ward(const struct carrier *c)
{
	return atomic_load(&c->adopt) == ADOPT_DONE;
}

/* Any thread: make c call flexsc__adopt_attend(), on its own stack. */
static inline void carrier_request_attention(struct carrier *c)
{
	atomic_store(&c->attend, true);
	flexsc_loop_wake(c->loop, NULL);
	/* Also wake c if it waits to get its loop back: get_loop_back() in adopt.c. */
	futex_wake(&c->adopt);
}

/* Carrier c, on its own stack: run user threads until c must end. In carrier_run.c. */
void flexsc__carrier_run(struct carrier *c);

#endif /* FLEXSC_RUNTIME_CARRIER_H */
