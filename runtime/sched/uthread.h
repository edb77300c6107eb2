/* SPDX-License-Identifier: MIT */
/*
 * User threads and the kernel threads that run them.
 *
 * A user thread is what the program got from pthread_create(): its stack, its TLS, its
 * thread id. glibc made a kernel thread for it, which is its host. A kernel thread (struct
 * kthread) is either a host or a carrier. On a stack of its own it decides what to run,
 * and switches to a user thread and back. A user thread is always in exactly one of these
 * places:
 *
 *	host		it runs on its own kernel thread, as under NPTL
 *	carrier		it runs there; a carrier runs one at a time
 *	queue		it can run: it is in a carrier's queue or inbox
 *	wait		for a posted call, a user-level futex, or a timer
 *
 * Only flexsc__suspend() changes the place: the kernel thread continues on its own stack,
 * and runs uthread.then there. From then on another kernel thread may run the user thread.
 *
 *	host -> queue		host.c: leave, before it waits for something
 *	carrier -> host		host.c: return; signals/signals.c: called to its host
 *	carrier -> wait		wait.c, calls/ufutex.c
 *	carrier -> queue	wait.c: yield
 *	wait -> queue		post.c, wait.c, calls/ufutex.c: the wait is over
 *	queue -> carrier	carrier_run.c
 *	queue -> host		carrier_run.c: it is wanted on its host, or anchored
 *
 * The runtime runs on both kinds of stack. On a user thread's stack it has the user
 * thread's TLS, and the user thread is marked busy: no signal handler of the program
 * interrupts it. On a kernel thread's own stack it has that kernel thread's TLS, and
 * kthread.current is NULL.
 */
#ifndef FLEXSC_RUNTIME_UTHREAD_H
#define FLEXSC_RUNTIME_UTHREAD_H

#include <flexsc/flexsc.h>
#include <poll.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/checks.h"
#include "lib/base/compiler.h"
#include "runtime/arch/x86_64/context.h"
#include "runtime/arch/x86_64/vectors.h"
#include "runtime/base/sigset.h"

struct uthread;
struct carrier;
struct counters;

/* Bytes of a user thread's stack to prefetch. */
#define PREFETCH	768U

#define UTHREAD_SLOW	4U	/* uthread.slow, after a very long run */

struct kthread {
	struct kthread *self;	/* at the GS base: kthread_self() */
	void *sp;		/* of its own stack, while a user thread runs */
	uint64_t fs;		/* its own TLS */
	struct uthread *current;	/* user thread that runs here or NULL */
	struct carrier *carrier;	/* itself; NULL: it is a host */
	struct counters *counters;	/* counters/counters.h */
	int32_t tid;
};

/* Whether a host's kernel thread has its user thread to run. */
enum host_word {
	HOST_AWAY = 0,
	HOST_RESUMES,	/* the kernel thread is to resume it */
};

struct host {
	struct kthread k;
	_Atomic uint32_t word;	/* enum host_word; H1, H2 in host.c */
	void *stack;		/* of the kernel thread, while it is asleep */
	/* The program's signal mask, if "masked": the kernel has another one. */
	sigmask_t mask;
	bool masked;
	bool away;		/* for this kernel thread's signal handlers */
	/* Mask of the sleeping kernel thread, until a signal calls u to its host. */
	sigmask_t sleep_mask;
	void *borrowed;		/* a carrier's signal stack */
	long trap;		/* trap number of the last fault on a carrier */
	siginfo_t first;	/* the next signal: signals/signals.h */
};

/* Kinds of waits of a user thread. */
enum wait_kind {
	WAIT_NOT = 0,
	WAIT_CALL,	/* cb is posted to its carrier's loop */
	WAIT_TIMER,	/* cb is a timer of its carrier's loop */
	WAIT_FUTEX,	/* it is in a bucket */
};

/* Signal handlers that ran since the user thread's call was begun or restarted. */
enum handled {
	HANDLED_NOT = 0,
	HANDLED_RESTART,	/* all had SA_RESTART */
	HANDLED_INTERRUPT,
};

/* May a child use the user thread's memory? */
enum forks {
	FORKS_NOT = 0,
	FORKS_NOW,	/* until the function that makes the child is over */
	FORKS_ALWAYS,	/* a child of clone(), beside its maker */
};

/*
 * A carrier needs only the first cache line to queue a user thread and to switch to it.
 * The second has the results of a wait and of a run.
 */
struct uthread {
	struct flexsc_cb cb;
	void *sp;		/* stack pointer, while it doesn't run */
	uint64_t fs;
	struct uthread *next;	/* in its queue, inbox or list of woken ones */
	bool alive;		/* the runtime knows this thread */
	_Atomic uint8_t anchored;	/* why it may compute on its host only: anchored.h */
	bool busy;		/* inside the runtime */
	bool point;		/* in a cancellation point's call */
	bool heavy;		/* its last run was long: carrier_run.c */
	bool natively;		/* may make its loop's calls natively, on its host: sticky.h */
	/*
	 * UTHREAD_SLOW: its last run was very long (carrier_run.c). One less for each
	 * shorter run since, because a job may end with short ones.
	 */
	_Atomic uint8_t slow;
	bool site;		/* in a patched place's call */
	/*
	 * The user thread is to return to its host, and to end its wait for that: P1, P2
	 * in wait.h.
	 */
	atomic_bool wanted;
	_Atomic uint8_t wait;	/* enum wait_kind */

	void (*then)(struct kthread *k, struct uthread *u);
	struct carrier *carrier;	/* the last one that ran it */
	long ret;		/* result of the wait */
	const uint64_t *args;	/* of its call, on its stack */
	uint64_t ns;		/* of its timer or time limit */
	uint64_t ran;		/* ticks on carriers, before this run */
	unsigned int nr;
	uint16_t cause;		/* why it returns to its host: enum cause */
	uint8_t way;		/* how its call was made: enum way */
	uint8_t handled;	/* enum handled */
	uint8_t forks;		/* enum forks: calls/hook.c */
	atomic_bool cancelled;	/* pthread_cancel() was called */
	bool host_only;		/* it never leaves its host again */
	atomic_bool installs;	/* a filter for all threads: calls/filter.c */
	uint32_t filter;	/* number of its own: calls/filter.c */

	struct {		/* sticky.h */
		uint32_t away;	/* waits since it last returned to its host for one */
		uint32_t left;	/* waits that it is still to make on its host */
		uint32_t grant;	/* what "left" was at first */
		uint32_t loop_waits;	/* waits for any of many, with no other */
		uint32_t loop_needs;	/* so many of them make an event loop */
		uint32_t barren;	/* waits for any of many since a transfer */
		uint32_t ignored;	/* hand-overs that don't count */
		uint32_t needs_host;	/* likewise, after a wait that needs the host */
	} sticky;
	struct {		/* its carrier is to check its wait: inbox.h */
		_Atomic uint32_t requests;	/* 0: it is in no list */
		struct uthread *next;
	} recheck;

	struct {		/* why it stays on its host for now: host.h */
		uintptr_t frame;	/* of a function; 0: it may leave */
		uintptr_t low, high;	/* signal stack that "frame" is on */
	} stay;

	struct {		/* under the bucket's lock: calls/ufutex.c */
		uint32_t *word;
		struct uthread *next, *prev;
		uint32_t bits;
		uint32_t value;
		bool queued;
		bool timed;
		uintptr_t page;	/* page of a word it has waited for */
		struct futex_timer *timer;	/* of its wait, if timed; or NULL */
	} futex;

	uint32_t closings;	/* of its call's descriptor: closings.h */
	struct {		/* poll_first.h */
		struct pollfd poll;	/* of a call that polls first */
		uint64_t args[6];	/* of such a call, on a copy of its descriptor */
	} poll_first;

	_Atomic uint64_t clock_shown;	/* ns that its clock has shown: cputime.c */

	struct guard *guard;	/* of the epoll set that it waits for, or NULL */

	struct host host;
	struct uthread *all_next, *all_prev;	/* list of all: uthreads.c */
	struct uthread *tid_next;	/* by thread id: uthreads.c */
	bool listed;
} __attribute__((aligned(64)));

/* The user thread whose wait this cb is. */
static inline struct uthread *waiter_of(struct flexsc_cb *cb)
{
	return (struct uthread *)((char *)cb - offsetof(struct uthread, cb));
}

/*
 * u will run soon: prefetch the part of its stack that it touches first, from the saved
 * pointer through the runtime's frames to the program's.
 */
static inline void prefetch(const struct uthread *u)
{
	const char *sp = u->sp;

	for (unsigned int i = 0; i < PREFETCH; i += 64)
		__builtin_prefetch(sp + i, 1);
	__builtin_prefetch(&u->then, 1);
}

/* The calling user thread. If it isn't alive, the thread is no user thread. */
extern __thread struct uthread flexsc__self
	__attribute__((tls_model("initial-exec")));

/*
 * The kernel thread that the calling user thread runs on. Read it again after
 * every flexsc__suspend().
 */
static inline struct kthread *kthread_self(void)
{
	return context_gs_word();
}

/*
 * Any thread: the kernel thread that it is or runs on, or NULL if the runtime doesn't
 * know it. A new thread has its maker's GS base until it sets its own, but another FS
 * base.
 */
static inline struct kthread *kthread_known(void)
{
	struct kthread *k = context_gs() ? kthread_self() : NULL;
	uint64_t fs = context_fs();

	if (k && k->fs != fs && (!k->current || k->current->fs != fs))
		return NULL;
	return k;
}

static inline bool on_host(void)
{
	return !kthread_self()->carrier;
}

/* Switch from the user thread to its kernel thread's own stack. */
static inline void uthread_switch_out(void *arg)
{
	const struct kthread *k = kthread_self();
	struct uthread *u = arg;

	flexsc__switch(&u->sp, k->sp, k->fs);
}

/*
 * Have the kernel thread run "then" on its own stack, without this user
 * thread. Returns when a kernel thread runs the user thread again.
 */
static inline void flexsc__suspend(struct uthread *u,
				   void (*then)(struct kthread *,
						  struct uthread *))
{
	RULE(u->busy && kthread_self()->current == u);
	u->then = then;
	if (u->site)
		flexsc__vectors_around(uthread_switch_out, u);
	else
		uthread_switch_out(u);
}

/* Run u until u is suspended. On a kernel thread's own stack. */
static inline void flexsc__resume(struct kthread *k, struct uthread *u)
{
	k->current = u;
	flexsc__switch(&k->sp, u->sp, u->fs);
	k->current = NULL;
	u->then(k, u);
}

#endif /* FLEXSC_RUNTIME_UTHREAD_H */
