/* SPDX-License-Identifier: MIT */
/*
 * A carrier: the kernel thread that runs user threads on one core (OSDI 2010,
 * section 4.2), with a loop of its own for their system calls. What it does,
 * again and again:
 *
 *	run a user thread from the queue; user threads whose last run was long
 *	come after the others, but for one run in four;
 *	every few runs, see which calls are complete;
 *	when the queue is empty, take half of another carrier's;
 *	when there is nothing to run, submit what was posted, look around for
 *	a moment (one carrier at a time does), and sleep in the loop.
 *
 * A carrier's queue is its own; other carriers take from it, under its lock.
 * Any thread may put a user thread that is to run here into the inbox.
 */
#ifndef FLEXSC_RUNTIME_CARRIER_H
#define FLEXSC_RUNTIME_CARRIER_H

#include <flexsc/loop.h>

#include "runqueue.h"
#include "uthread.h"

/* A system call that a kernel thread is in, as /proc shows it. */
struct stuck {
	long nr;		/* -1: none */
	uint64_t args[6];
	uint64_t sp, pc;
};

/* A kernel thread's progress so far. */
struct progress {
	uint64_t waits;		/* times it has blocked */
	uint64_t ran;		/* processor time, ns */
};

struct carrier {
	struct kthread k;
	pthread_t thread;
	struct flexsc_loop *loop;
	struct flexsc_cb end;	/* is woken to end the carrier */
	_Atomic uint32_t retired;	/* 1: it has; carriers_retire() sleeps on it */
	bool ends;		/* "end" was woken; on this carrier */
	struct runqueue queue;
	struct runqueue later;	/* heavy user threads */
	unsigned int number;
	uint32_t runs;		/* runs since it looked for completions */
	uint32_t passed;	/* runs since one from "later" */
	uint32_t calls;		/* made in the current run: calls/hook.c */
	uint64_t began;		/* current run: context_ticks() */
	uint64_t ran;		/* ticks of all runs before the current */
	struct {		/* the last look at its clock: cputime.c */
		uint64_t at;	/* context_ticks() */
		uint64_t ran;	/* ticks of all runs until then */
		uint64_t ns;	/* what the clock said */
	} looked;
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
	struct stuck stuck;	/* the call to leave for home: T1, T2 */
	struct progress progress;	/* at the monitor's last look */
	int stuck_fd, status_fd;	/* flexsc__monitor_open() */
	int kept_timer;		/* flexsc__signal_timer() */
	uint64_t timed;		/* the monitor's: run kept_timer was set for */
	/* Carriers whose heir this one is: adopt.c, on this carrier. */
	struct carrier *wards, *next_ward;
	bool accepts;	/* stuck with armed accepts; counted: moved.c */
	/* Written by other threads, from here on. */
	_Atomic(struct uthread *) inbox __attribute__((aligned(64)));
	_Atomic(struct uthread *) wanted;	/* waits to be ended */
	/*
	 * What wakes this carrier for flexsc__adopt_attend(). Another carrier: it is
	 * to be adopted. This carrier itself: it was adopted and runs again, or is to
	 * retire. adopt.h describes this field and the next two.
	 */
	_Atomic(struct carrier *) asked;
	_Atomic(struct carrier *) heir;	/* has adopted this one; or NULL: D1, D2 */
	_Atomic uint32_t adopt;		/* enum adopt */
	atomic_bool spare;	/* runs nothing until it adopts: spare.h */
	atomic_bool idle;
	/*
	 * Value of "switches" for which the monitor calls the running user
	 * thread home.
	 */
	_Atomic uint64_t preempt;
	atomic_bool called;	/* a signal will read "stuck": T1, T2 */
	_Atomic uint32_t changed;	/* N1, N2 in signals/identity.c */
};

/*
 * Start n carriers whose loops have these options, and a spare. A spare that started
 * later would take descriptors, with low numbers for a moment, while the program counts
 * on the lowest free one. Returns how many carriers there are besides the spare, or
 * -errno; if one is missing, "why" says the reason.
 */
int flexsc__carriers_start(unsigned int n, bool spare,
			   const struct flexsc_options *options, char *why,
			   size_t size);

/*
 * End all carriers, spares included, and wait until they have ended. They have nothing
 * to do by now, and get nothing to do.
 */
void flexsc__carriers_end(void);

/*
 * Start one more carrier, as a spare. There is room for it in flexsc__runtime.carriers.
 * Returns 0, or -errno with the reason in "why".
 */
int flexsc__carrier_start(const struct flexsc_options *options, char *why,
			  size_t size);

/*
 * Have all carriers sleep for good, before a filter that may forbid the runtime's calls.
 * All user threads are at home, and stay. The monitor has ended, so no carrier is
 * adopted any more; no spare is made any more. The carriers' loops give up io_uring and
 * epoll sets, because a thread that waits in one makes further calls when it wakes. When
 * this returns, carriers and syscall threads sleep on futexes, or are about to. A carrier
 * that is stuck (adopt.h) does so when it is back.
 */
void flexsc__carriers_retire(void);

/*
 * Carrier c, on its own stack: retire if carriers are to. If c has an heir, or it is too
 * late to enter the kernel, c sleeps here and this doesn't return. False: carriers
 * aren't to retire.
 */
bool flexsc__carrier_retire(struct carrier *c);

/* Forget the carriers in a forked child, which has none. */
void flexsc__carriers_forked(void);

/* Any thread: u can run, on the carrier that is best for it. */
void flexsc__carrier_give(struct uthread *u);

/*
 * Any thread: u's wait is over but for what its carrier has to do
 * (flexsc__wait_over()).
 */
void flexsc__carrier_return(struct uthread *u);

/* Any thread, any signal handler: have u's carrier look at u's wait. */
void flexsc__carrier_want(struct uthread *u);

/*
 * Monitor only: c makes no progress. If user threads are queued there, wake an
 * idle carrier to take them.
 */
void flexsc__carrier_relieve(const struct carrier *c);

/*
 * Any thread, after "heir" of c was set: move what is in c's inbox and list of wanted
 * user threads to the heir's (D1, D2 in adopt.h).
 */
void flexsc__carrier_forward(struct carrier *c);

/* Heir only: move the queues of "from", which is stuck, to c. */
void flexsc__carrier_take_queues(struct carrier *c, struct carrier *from);

/* The carrier that acts for c: c itself, its heir, or the heir of that one. */
static inline struct carrier *carrier_heir(struct carrier *c)
{
	struct carrier *heir;

	/* D2 in adopt.h. */
	while (c && (heir = atomic_load(&c->heir)))
		c = heir;
	return c;
}

/* Carriers only: u can run again, on c, which is the calling carrier. */
void flexsc__carrier_put(struct carrier *c, struct uthread *u);

/* Any thread: u can run again, on the calling thread if that is a carrier. */
void flexsc__carrier_ready(struct uthread *u);

#endif /* FLEXSC_RUNTIME_CARRIER_H */
