/* SPDX-License-Identifier: MIT */
/*
 * User threads, and the kernel threads that run them.
 *
 * A user thread is what the program gets from pthread_create(): a stack, TLS and a
 * thread id. The kernel thread that glibc makes for it is its host. A kernel thread
 * (struct kthread) is either a host or a carrier. On a stack of its own, a kernel
 * thread decides what to run, and switches to a user thread and back. A user thread is
 * always in exactly one place:
 *
 *	host		its own kernel thread runs it, as under NPTL
 *	carrier		a carrier runs it, which runs one user thread at a time
 *	queue		it is ready to run, in a carrier's queue or inbox
 *	wait		it waits for a posted call, a user-level futex, or a timer
 *
 * A user thread that runs leaves its place only by flexsc__suspend(): the kernel thread
 * continues on its own stack, and calls uthread.then there. From then on another kernel
 * thread may run the user thread.
 *
 *	host -> queue		host.c: leave, before a wait
 *	carrier -> host		host.c: return; signals/signals.c: called to its host
 *	carrier -> wait		wait.c, calls/ufutex.c
 *	carrier -> queue	wait.c: yield
 *	wait -> queue		post.c, wait.c, calls/bucket.c: the wait is over
 *	queue -> carrier	carrier_run.c
 *	queue -> host		carrier_run.c: it is wanted on its host, or anchored
 *
 * The runtime runs on both kinds of stack. On a user thread's stack, the runtime has
 * that user thread's TLS, and the user thread is marked busy: no signal handler of the
 * program interrupts it. On a kernel thread's own stack, the runtime has that kernel
 * thread's TLS, and kthread.current is NULL.
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
#include "runtime/arch/context.h"
#include "runtime/arch/vectors.h"
#include "runtime/base/sigset.h"
#include "state.h"

struct uthread;
struct watch;
struct carrier;
struct counters;

#define PREFETCH	768U	/* bytes of a stack that a switch prefetches */

#define UTHREAD_SLOW	4U	/* value of uthread.slow after a very long run */

struct kthread {
	struct kthread *self;	/* arch/context.h */
	void *sp;		/* its own stack pointer, while a user thread runs */
	uint64_t tp;		/* thread pointer: its own TLS */
	struct uthread *current;	/* the user thread that it runs, or NULL */
	struct carrier *carrier;	/* the carrier that it is; NULL: a host */
	struct counters *counters;	/* counters/counters.h */
	int32_t tid;
};

/* Values of host.word. */
enum host_word {
	HOST_AWAY = 0,
	HOST_RESUMES,	/* the kernel thread resumes its user thread */
};

struct host {
	struct kthread k;
	_Atomic uint32_t word;	/* enum host_word; H1, H2 in host.c */
	void *stack;		/* the kernel thread sleeps on it */
	/*
	 * The program's signal mask, if "masked" is set; the kernel has another mask
	 * then.
	 */
	sigmask_t mask;
	bool masked;
	/* the user thread is away, or about to leave; for signal handlers */
	bool away;
	/* the sleeping host runs libc's handler: kthread_near() */
	atomic_bool handles;
	/* the kernel thread runs libc's handler, which may call abort() */
	bool changes;
	/* The sleeping kernel thread's mask, until a signal calls u to its host. */
	sigmask_t sleep_mask;
	void *borrowed;		/* a carrier's signal stack: signals/signals.c */
	long trap;		/* trap number of the last fault on a carrier */
	siginfo_t first;	/* the oldest resent signal: resent_signals.h */
};

enum wait_kind {
	WAIT_NOT = 0,
	WAIT_CALL,	/* cb is posted to its carrier's loop */
	WAIT_TIMER,	/* cb is a timer of its carrier's loop */
	WAIT_FUTEX,	/* u is in a bucket: calls/bucket.h */
};

/* Signal handlers that ran since the user thread's call began or was restarted. */
enum handled {
	HANDLED_NOT = 0,
	HANDLED_RESTART,	/* all had SA_RESTART */
	HANDLED_INTERRUPT,
};

/* Can a child process use the memory of the user thread? */
enum forks {
	FORKS_NOT = 0,
	FORKS_NOW,	/* until the function that makes the child returns */
	FORKS_ALWAYS,	/* also later: clone() made a child that runs beside its parent */
};

/*
 * Enqueueing a user thread and switching to it need the first cache line only. The
 * second one has results of waits and runs.
 */
struct uthread {
	struct flexsc_cb cb;
	void *sp;		/* stack pointer, while it doesn't run */
	uint64_t tp;
	/* the next one in a queue, an inbox or a list of woken threads */
	struct uthread *next;
	bool alive;		/* false: the thread isn't a user thread */
	/* enum anchor: why it may compute on its host only */
	_Atomic uint8_t anchored;
	bool busy;		/* inside the runtime */
	bool point;		/* its call is a cancellation point */
	bool heavy;		/* its last run was long: carrier_run.c */
	/* it is an event loop, and makes calls natively: sticky.h */
	bool natively;
	/* it is on its host, but not for a wait: it may leave to compute */
	bool computes_on_host;
	/*
	 * UTHREAD_SLOW after a very long run (carrier_run.c). Each shorter run
	 * subtracts one, because the last runs of a long job may be short.
	 */
	_Atomic uint8_t slow;
	bool site;		/* it makes a call from a patched place in libc */
	/* It has to end its wait and return to its host: P1, P2 in wait.h. */
	atomic_bool wanted;
	_Atomic uint8_t wait;	/* enum wait_kind */

	void (*then)(struct kthread *k, struct uthread *u);
	struct carrier *carrier;	/* the carrier that ran it last */
	long ret;		/* result of the wait */
	const uint64_t *args;	/* arguments of its call, on its stack */
	uint64_t ns;		/* duration of its timer or time limit */
	uint64_t ran;		/* ticks on carriers, before this run */
	unsigned int nr;
	uint16_t cause;		/* why it returns to its host: enum cause */
	uint8_t way;		/* how its call was made: enum way */
	uint8_t handled;	/* enum handled */
	uint8_t forks;		/* enum forks: calls/hook.c */
	atomic_bool cancelled;	/* pthread_cancel() was called */
	bool host_only;		/* it never leaves its host again */
	/* in seccomp's strict mode, where it isn't "alive": calls/strict.h */
	bool strict;
	struct watch *watch;	/* notices its end in strict mode, or NULL */
	atomic_bool installs;	/* it is installing a seccomp filter: calls/filter.c */
	/* number of its own seccomp filter, or 0: calls/filter.c */
	uint32_t filter;

	struct {		/* sticky.h */
		uint32_t away;	/* waits since it last returned to its host for a wait */
		uint32_t left;	/* remaining waits of its grant */
		uint32_t grant;	/* initial value of "left" */
		uint32_t loop_waits;	/* waits in a row for any of many descriptors */
		/* number of such waits that make it an event loop */
		uint32_t loop_needs;
		uint32_t barren;	/* such waits since it last received or sent */
		uint32_t ignored;	/* hand-overs that don't count */
		/* hand-overs that don't count after a wait that needs the host */
		uint32_t needs_host;
	} sticky;
	/* requests to check whether its wait has to end: inbox.h */
	struct {
		/* 0: the thread is in no list of rechecks */
		_Atomic uint32_t requests;
		struct uthread *next;
	} recheck;

	struct {		/* why it stays on its host for now: host.h */
		/* frame of the function that needs the host; or 0 */
		uintptr_t frame;
		/* bounds of the signal stack that "frame" is on */
		uintptr_t low, high;
	} stay;

	struct {		/* protected by the bucket's lock: calls/bucket.h */
		uint32_t *word;
		struct uthread *next, *prev;
		uint32_t bits;
		uint32_t value;
		bool queued;
		bool timed;
		uintptr_t page;	/* page of the last word that it waited for */
		const uint32_t *turn;	/* word for which it was last woken */
		/*
		 * how often in a row it was woken for the lock at "turn", but found
		 * the lock taken
		 */
		uint8_t again;
		/* how often in a row another thread took the semaphore first */
		uint8_t lost_semaphore;
		struct futex_timer *timer;	/* its time limit, or NULL */
	} futex;

	/* count of closings when it posted its call: closings.h */
	uint32_t closings;
	struct {		/* poll_first.h */
		struct pollfd poll;	/* the poll that precedes its call */
		/* the call's arguments, with a copy of the descriptor */
		uint64_t args[6];
	} poll_first;

	/* highest value that its CPU clock has shown, in ns: cpuclock.c */
	_Atomic uint64_t clock_shown;

	struct guard *guard;	/* guard of the epoll set that it waits for, or NULL */

	struct host host;
	struct uthread *all_next, *all_prev;	/* list of all: uthreads.c */
	struct uthread *tid_next;	/* by thread id: uthreads.c */
	bool listed;
} __attribute__((aligned(64)));

/* The user thread that contains this cb. */
static inline struct uthread *waiter_of(struct flexsc_cb *cb)
{
	return (struct uthread *)((char *)cb - offsetof(struct uthread, cb));
}

/*
 * Prefetch the part of u's stack that u touches first: from the saved stack pointer
 * through the runtime's frames to the program's.
 */
static inline void prefetch(const struct uthread *u)
{
	const char *sp = u->sp;

	for (unsigned int i = 0; i < PREFETCH; i += 64)
		__builtin_prefetch(sp + i, 1);
	__builtin_prefetch(&u->then, 1);
}

/* The calling user thread. If not "alive", the calling thread is no user thread. */
extern __thread struct uthread flexsc__self
	__attribute__((tls_model("initial-exec")));

/* The kernel thread that runs the caller. flexsc__suspend() may change it. */
static inline struct kthread *kthread_self(void)
{
	return context_self();
}

/*
 * kthread_known() for processors where the TLS contains the pointer to the kernel
 * thread, "self". The TLS may be that of another thread: a sleeping host uses the TLS
 * of its user thread, which a carrier may run. A child of vfork() uses the TLS of its
 * parent.
 */
static inline struct kthread *kthread_by_id(struct kthread *self)
{
	const int32_t tid = (int32_t)raw_syscall(SYS_gettid, 0, 0, 0, 0, 0, 0);

	/*
	 * While a thread becomes a host, its TLS has a thread id before it has that
	 * pointer.
	 */
	if (!self)
		return NULL;
	if (flexsc__self.host.k.tid == tid)
		return &flexsc__self.host.k;
	return self->tid == tid ? self : NULL;
}

/* Is k the self of a carrier? Reads nothing of k, whose memory may be unmapped. */
static inline bool kthread_is_carrier(const struct kthread *k)
{
	return (uintptr_t)k - (uintptr_t)flexsc__runtime.carriers <
	       flexsc__runtime.carriers_size;
}

/*
 * Any thread: the kernel thread that the caller is or runs on, or NULL if it is neither
 * a host nor a carrier. On x86-64 a new thread inherits the pointer "self" of its
 * creator. If the creator was a host, its memory may be unmapped. If it was a carrier,
 * the carrier may run another user thread, whose memory may be unmapped next.
 */
static inline struct kthread *kthread_known(void)
{
	struct kthread *k = context_self_if_any();
	const struct uthread *u = &flexsc__self;
	const uint64_t tp = context_tp();

	if (CONTEXT_SELF_IN_TLS)
		return kthread_by_id(k);
	if (!k || (k != &u->host.k && !kthread_is_carrier(k)))
		return NULL;
	return k->tp == tp || k->current == u ? k : NULL;
}

/* As kthread_known(), without a system call. Must not be called on a new thread. */
static inline struct kthread *kthread_near(void)
{
	if (CONTEXT_SELF_IN_TLS &&
	    !atomic_load_explicit(&flexsc__self.host.handles, memory_order_relaxed))
		return context_self_if_any();
	return kthread_known();
}

/* Is the caller not u, but a signal handler on u's sleeping host, with u's TLS? */
static inline bool kthread_is_asleep(const struct uthread *u)
{
	if (!CONTEXT_SELF_IN_TLS)
		return !kthread_self()->carrier && u->host.away;
	return atomic_load_explicit(&u->host.handles, memory_order_relaxed) &&
	       u->host.away && kthread_known() == &u->host.k;
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

	flexsc__switch(&u->sp, k->sp, k->tp);
}

/*
 * Suspend u, the calling user thread: its kernel thread calls "then" on its own stack.
 * Returns when a kernel thread resumes u.
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

/* Run u until it is suspended. On the kernel thread's own stack. */
static inline void flexsc__resume(struct kthread *k, struct uthread *u)
{
	k->current = u;
	context_lend_self(u->tp, k);
	flexsc__switch(&k->sp, u->sp, u->tp);
	k->current = NULL;
	u->then(k, u);
}

#endif /* FLEXSC_RUNTIME_UTHREAD_H */
