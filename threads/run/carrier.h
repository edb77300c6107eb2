/* SPDX-License-Identifier: MIT */
/*
 * A carrier: the kernel thread that runs user threads on one core (OSDI 2010,
 * section 4.2), with a loop of its own for their system calls.
 *
 *	run a user thread from the queue, again and again; those whose last run
 *	was long come after the others, but for one run in four;
 *	every few of them, see which calls are complete;
 *	when the queue is empty, take half of somebody else's;
 *	when there is nothing, submit what was posted, look around for a moment
 *	(one carrier at a time does), and sleep in the loop.
 *
 * The queue is the carrier's; others take from it, under its lock. The inbox
 * is everybody's: user threads that others want to run here.
 */
#ifndef FLEXSC_THREADS_CARRIER_H
#define FLEXSC_THREADS_CARRIER_H

#include <flexsc/loop.h>

#include "lib/base/futex.h"
#include "uthread.h"

struct runqueue {
	struct lock lock;
	_Atomic uint32_t count;
	struct uthread *head, *tail;
};

/* A system call, where it is being made. */
struct stuck {
	long nr;		/* -1: none */
	uint64_t args[6];
	uint64_t sp, pc;
};

/* What a kernel thread has done so far. */
struct progress {
	uint64_t waits;		/* how often it has begun to wait */
	uint64_t ran;		/* ns */
};

struct carrier {
	struct kthread k;
	struct flexsc_loop *loop;
	struct runqueue queue;
	struct runqueue later;	/* for those that are heavy */
	unsigned int number;
	uint32_t turns;		/* since completions were looked for */
	uint32_t passed;	/* runs since one of those */
	uint32_t calls;		/* of who runs, in this run: hook.c */
	uint64_t began;		/* this run: context_ticks() */
	void *stack;		/* for signals: signals.h */
	sigmask_t open;		/* its mask, when the handler there is left */
	_Atomic sigmask_t blocked;	/* of SIGNAL_RAISED */
	/* While the program's code doesn't run here: a signal handler's, and */
	atomic_bool pipe_came;	/* there was a SIGPIPE */
	bool pipe_broke;	/* a call that was posted has ended with EPIPE */
	uint64_t switches_seen;	/* the monitor's */
	struct stuck stuck;	/* T1, T2: where it found who it sends home */
	struct progress progress;	/* when it looked last, at this run */
	int stuck_fd, status_fd;	/* flexsc__monitor_open() */
	int kept_timer;		/* flexsc__signal_timer() */
	uint64_t timed;		/* the run that the timer is for: the monitor */
	/* Others', from here on. */
	_Atomic(struct uthread *) inbox __attribute__((aligned(64)));
	_Atomic(struct uthread *) wanted;	/* whose waits are to end */
	atomic_bool idle;
	/* Send home who runs here, if that is still this run: the monitor. */
	_Atomic uint64_t preempt;
	atomic_bool called;	/* its signal is on its way: T1, T2 */
};

extern struct carrier *flexsc__carriers;
extern unsigned int flexsc__carriers_count;
/* Are there cores enough to look around for work? */
extern bool flexsc__carriers_spin;
/* Do their loops wait for one descriptor without a thread for it? */
extern bool flexsc__carriers_poll;

/*
 * Start n carriers with these options for their loops. How many there are, or
 * -errno; with the reason in why, if it isn't all of them.
 */
int flexsc__carriers_start(unsigned int n,
			   const struct flexsc_options *options, char *why,
			   size_t size);

/*
 * A thread of the runtime's, detached. From its first instruction on all that is
 * left to it of the signals is libc's SIGSETXID. Returns 0 or an error number.
 */
int flexsc__carrier_thread(pthread_t *thread, void *(*run)(void *), void *arg);

/* In a forked child: there are none. */
void flexsc__carriers_forked(void);

/* Any thread: u can run, on the carrier that is best for it. */
void flexsc__carrier_give(struct uthread *u);

/* Any thread: u's wait is over, as far as its carrier isn't concerned. */
void flexsc__carrier_return(struct uthread *u);

/* Any thread, any signal handler: have u's carrier look at its wait. */
void flexsc__carrier_want(struct uthread *u);

/* The monitor: c doesn't get on. If others wait there, somebody take them. */
void flexsc__carrier_relieve(const struct carrier *c);

/* Carriers only: u can run again, here. */
void flexsc__carrier_put(struct carrier *c, struct uthread *u);

/* Any thread: u can run again; if the caller is on a carrier, then there. */
void flexsc__carrier_ready(struct uthread *u);

#endif /* FLEXSC_THREADS_CARRIER_H */
