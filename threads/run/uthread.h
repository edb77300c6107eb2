/* SPDX-License-Identifier: MIT */
/*
 * User threads and the kernel threads that run them.
 *
 * A user thread is what the program got from pthread_create(): its stack, its
 * TLS, its thread id. The kernel thread that glibc made for it is its home. A
 * kernel thread (struct kthread) is either a home or a carrier; it has a stack
 * of its own, on which it decides what to run, and switches to a user thread
 * and back. So a user thread is always on exactly one of these:
 *
 *	home		it runs on its own kernel thread, as NPTL has it
 *	a carrier	it runs there, beside nobody else
 *	a queue		it could run: a carrier's queue or inbox
 *	a wait		a posted call, a user-level futex, a timer
 *
 * A user thread changes its place only by flexsc__suspend(): the kernel thread
 * it was on continues on its own stack and does what was asked, the action.
 * From then on the user thread may already be running elsewhere.
 *
 *	home -> queue		home.c: leave, before it waits for something
 *	carrier -> home		home.c: come home
 *	carrier -> wait		wait.c
 *	wait -> queue		wait.c: it is over
 *	queue -> carrier	carrier.c
 *	queue -> home		carrier.c: it is wanted at home
 *
 * The runtime runs on both kinds of stack. On a user thread's stack it has
 * the user thread's TLS and is marked busy, so that nothing interrupts it in
 * favour of the program; on a kernel thread's own stack it has that one's TLS,
 * and "self" there is nobody.
 */
#ifndef FLEXSC_THREADS_UTHREAD_H
#define FLEXSC_THREADS_UTHREAD_H

#include <flexsc/flexsc.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "context.h"
#include "lib/base/compiler.h"

struct uthread;
struct carrier;
struct counters;

/* Bytes of a stack that are touched when its thread runs again. */
#define PREFETCH	768U

/* The kernel's set of signals: bit n is signal n + 1. */
typedef uint64_t sigmask_t;

struct kthread {
	struct kthread *self;	/* at the GS base: kthread_self() */
	void *sp;		/* of its own stack, while a user thread runs */
	uint64_t fs;		/* its own TLS */
	struct uthread *current;	/* who runs here; NULL: itself */
	struct carrier *carrier;	/* NULL: it is a home */
	struct counters *counters;	/* counters.h */
	int32_t tid;
};

/* Whether a user thread's kernel thread is the one it runs on. */
enum home_word {
	HOME_AWAY = 0,
	HOME_COMING,	/* the kernel thread is to take it up */
};

struct home {
	struct kthread k;
	_Atomic uint32_t word;	/* H1, H2 in home.c */
	void *stack;		/* where the kernel thread is parked */
	/* The program's signal mask, while "masked": the kernel has another. */
	sigmask_t mask;
	bool masked;
	bool away;		/* for signal handlers on this kernel thread */
	/* What it really blocks while away, besides what is libc's. */
	sigmask_t parked;
	void *lent;		/* a carrier's signal stack: signals.h */
	long trap;		/* the last fault on a carrier: the processor's */
	siginfo_t first;	/* what it was sent, to be handled next: there */
};

/* What a user thread waits for. */
enum wait_kind {
	WAIT_NOT = 0,
	WAIT_CALL,	/* cb is posted to its carrier's loop */
	WAIT_TIMER,	/* cb is a timer there */
	WAIT_FUTEX,	/* it is in a bucket; cb is a timer if timed */
};

/* The strongest kind of handler that ran since its call began, or began again. */
enum handled {
	HANDLED_NOT = 0,
	HANDLED_RESTART,	/* all had SA_RESTART */
	HANDLED_INTERRUPT,
};

/* The first line is all that is touched to make it run again. */
struct uthread {
	struct flexsc_cb cb;
	void *sp;		/* of its stack, while it doesn't run */
	uint64_t fs;
	struct uthread *next;	/* of the queue, inbox or bucket it is in */
	bool alive;		/* the runtime knows this thread */
	bool rooted;		/* it doesn't leave home any more */
	bool busy;		/* inside the runtime */
	bool point;		/* in a call that is a cancellation point */
	bool heavy;		/* its last run was long: carrier.c */
	bool site;		/* in one from a patched place: vectors.h */
	/* It is to come home, and to end its wait. P1, P2 in wait.h. */
	atomic_bool wanted;
	_Atomic uint8_t wait;	/* enum wait_kind */

	void (*action)(struct kthread *k, struct uthread *u);
	struct carrier *carrier;	/* the last one that ran it */
	long ret;		/* what the wait ended with */
	const uint64_t *args;	/* of the call, on its stack */
	uint64_t ns;		/* of the timer */
	unsigned int nr;
	uint16_t cause;		/* for coming home: enum cause */
	uint8_t way;		/* its call was made: enum way */
	uint8_t handled;	/* enum handled */
	bool forks;		/* a child may be using its memory: hook.c */
	atomic_bool cancelled;	/* pthread_cancel() was called */
	struct {		/* carrier.c: whom to look at */
		_Atomic uint32_t asked;	/* how often; 0: it is in no list */
		struct uthread *next;
	} want;

	struct {		/* why it doesn't leave home for now: home.h */
		uintptr_t frame;	/* 0: it does */
		uintptr_t low, high;	/* its stack, if that is a signal's */
	} stay;

	struct {		/* under the bucket's lock: ufutex.c */
		uint32_t *word;
		struct uthread *next, *prev;
		uint32_t bits;
		uint32_t value;
		bool queued;
		bool timed, expired, seen;
		uintptr_t page;	/* its own: where it waited last */
	} futex;

	/* The epoll set that it waits for: S1, S2 in polling.c. */
	_Atomic uint64_t set;

	struct home home;
	struct uthread *all_next, *all_prev;	/* runtime.c */
	bool listed;
} __attribute__((aligned(64)));

/* Whose wait a cb is of. */
static inline struct uthread *waiter_of(struct flexsc_cb *cb)
{
	return (struct uthread *)((char *)cb - offsetof(struct uthread, cb));
}

/*
 * It will run soon: have what it touches first at hand. That is its stack from
 * the saved pointer on, through the runtime's frames to the program's.
 */
static inline void prefetch(const struct uthread *u)
{
	const char *sp = u->sp;

	for (unsigned int i = 0; i < PREFETCH; i += 64)
		__builtin_prefetch(sp + i, 1);
	__builtin_prefetch(&u->action, 1);
}

/* The calling user thread; one that isn't alive is none. */
extern __thread struct uthread flexsc__self
	__attribute__((tls_model("initial-exec")));

/* Where the caller runs. Read it again after every flexsc__suspend(). */
static inline struct kthread *kthread_self(void)
{
	return context_gs_word();
}

/*
 * The same for a thread that may be none of ours: NULL then. A new thread has
 * its maker's base until it has begun.
 */
static inline struct kthread *kthread_known(void)
{
	struct kthread *k = context_gs() ? kthread_self() : NULL;
	uint64_t fs = context_fs();

	if (k && k->fs != fs && (!k->current || k->current->fs != fs))
		return NULL;
	return k;
}

static inline bool at_home(void)
{
	return !kthread_self()->carrier;
}

/*
 * Let the kernel thread do "action" on its own stack, without this user
 * thread; returns when somebody runs it again.
 */
static inline void flexsc__switch_out(struct uthread *u,
				      void (*action)(struct kthread *,
						     struct uthread *))
{
	const struct kthread *k = kthread_self();

	u->action = action;
	flexsc__switch(&u->sp, k->sp, k->fs);
}

void flexsc__vectors_suspend(struct uthread *u,
			     void (*action)(struct kthread *,
					    struct uthread *));

static inline void flexsc__suspend(struct uthread *u,
				   void (*action)(struct kthread *,
						  struct uthread *))
{
	if (u->site)
		flexsc__vectors_suspend(u, action);
	else
		flexsc__switch_out(u, action);
}

/* On a kernel thread's own stack: run u until it suspends. */
static inline void flexsc__resume(struct kthread *k, struct uthread *u)
{
	k->current = u;
	flexsc__switch(&k->sp, u->sp, u->fs);
	k->current = NULL;
	u->action(k, u);
}

#endif /* FLEXSC_THREADS_UTHREAD_H */
