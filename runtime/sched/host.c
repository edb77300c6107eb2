/* SPDX-License-Identifier: MIT */
#include "host.h"

#include <signal.h>

#include "carrier.h"
#include "count.h"
#include "inbox.h"
#include "lib/base/futex.h"
#include "stacks.h"
#include "resent_signals.h"
#include "state.h"

static long set_mask(int how, const sigmask_t *mask, sigmask_t *old)
{
	return raw_syscall(SYS_rt_sigprocmask, (uint64_t)how, PTR(mask),
			   PTR(old), sizeof(*mask), 0, 0);
}

/* The kernel thread's own stack begins here when u leaves home first. */
static void home_main(void *arg)
{
	struct uthread *u = arg;
	struct home *home = &u->home;

	home->k.current = NULL;
	u->then(&home->k, u);
	for (;;) {
		/*
		 * H2: acquires the user thread's stack from the carrier that it
		 * was on; pairs with H1.
		 */
		while (atomic_load_explicit(&home->word,
					    memory_order_acquire) == HOME_AWAY)
			futex_wait(&home->word, HOME_AWAY, UINT64_MAX);
		flexsc__resume(&home->k, u);
	}
}

void flexsc__home_init(struct uthread *u, void *stack, sigmask_t mask)
{
	struct home *home = &u->home;

	u->fs = context_fs();
	home->stack = stack;
	home->mask = mask;
	home->k = (struct kthread){
		.self = &home->k,
		.fs = u->fs,
		.current = u,
		.tid = (int32_t)raw_syscall(SYS_gettid, 0, 0, 0, 0, 0, 0),
		.sp = context_init(stack_top(&flexsc__small, stack), home_main, u),
	};
	home->k.counters = counters_of_home(home->k.tid);
	COUNT(&home->k, started, 1);
	context_set_gs(&home->k);
	set_mask(SIG_SETMASK, &home->mask, NULL);
}

void flexsc__home_fini(struct uthread *u)
{
	flexsc__stack_put(&flexsc__small, u->home.lent);
	COUNT(&u->home.k, ended, 1);
	flexsc__stack_put(&flexsc__small, u->home.stack);
	u->home.lent = NULL;
	u->home.stack = NULL;
}

static void leave(struct kthread *k, struct uthread *u)
{
	COUNT(k, departures, 1);
	atomic_store_explicit(&u->home.word, HOME_AWAY, memory_order_relaxed);
	flexsc__inbox_give(u);
}

bool flexsc__leaves(const struct uthread *u)
{
	return u->then == leave;
}

void flexsc__leave(struct uthread *u)
{
	sigmask_t mask;

	if (!at_home())
		return;
	/* A signal that arrives from here on calls u home. */
	u->home.away = true;
	atomic_signal_fence(memory_order_seq_cst);
	set_mask(SIG_BLOCK, NULL, &mask);
	/* Such a signal has blocked all others and noted the program's mask. */
	if (!u->home.masked) {
		u->home.mask = mask;
		u->home.masked = true;
	}
	u->home.sleep_mask = u->home.mask;
	flexsc__stack_put(&flexsc__small, u->home.lent);
	u->home.lent = NULL;
	flexsc__suspend(u, leave);
	flexsc__settle(u);
}

void flexsc__send_home(struct uthread *u)
{
	/* H1: releases the user thread's stack; pairs with H2. */
	atomic_store_explicit(&u->home.word, HOME_COMING,
			      memory_order_release);
	futex_wake(&u->home.word);
}

static void home_return(struct kthread *k, struct uthread *u)
{
	RULE(k->carrier);
	counters_coupling(u->cause);
	flexsc__send_home(u);
}

void flexsc__come_home(struct uthread *u)
{
	RULE(u == &flexsc__self && u->busy);
	if (!at_home())
		flexsc__suspend(u, home_return);
	else if (!atomic_load_explicit(&u->wanted, memory_order_relaxed))
		return;
	flexsc__settle(u);
}

void flexsc__bring_home(void)
{
	struct uthread *u = &flexsc__self;

	if (!u->alive || u->busy)
		return;
	flexsc__enter(u);
	flexsc__come_home(u);
	flexsc__exit(u);
}

void flexsc__settle(struct uthread *u)
{
	if (!at_home())
		return;
	u->home.away = false;
	atomic_store(&u->wanted, false);
	/* The signals that u was called home for run their handlers here. */
	u->busy = false;
	if (u->home.masked) {
		u->home.masked = false;
		flexsc__queued_unmask(u, u->home.mask);
		set_mask(SIG_SETMASK, &u->home.mask, NULL);
	}
	u->busy = true;
}

sigmask_t flexsc__settle_in_frame(struct uthread *u)
{
	const sigmask_t all = ~0ULL;
	sigmask_t mask;

	set_mask(SIG_SETMASK, &all, NULL);
	mask = u->home.mask;
	flexsc__queued_unmask(u, mask);
	u->home.masked = false;
	u->home.away = false;
	atomic_store(&u->wanted, false);
	u->busy = false;
	return mask;
}

/* Staying. */

static bool is_left(const struct uthread *u, uintptr_t sp)
{
	uintptr_t frame = u->stay.frame;

	if (sp >= u->stay.low && sp < u->stay.high)
		return sp > frame;
	if (u->stay.high)
		return true;
	/*
	 * A thread's TLS is above its stack, so an address beyond it is on
	 * another stack; the first thread's TLS is elsewhere.
	 */
	return sp > frame && (sp < u->fs || u->fs < frame);
}

void flexsc__stay_left(struct uthread *u, uintptr_t sp)
{
	if (u->stay.frame && is_left(u, sp))
		u->stay.frame = 0;
}

struct stay flexsc__stay_begin(struct uthread *u, uintptr_t low,
			       uintptr_t high)
{
	uintptr_t frame = (uintptr_t)__builtin_frame_address(0);

	flexsc__stay_left(u, frame);
	if (u->stay.frame)
		return (struct stay){ false };
	if (frame < low || frame >= high)
		low = high = 0;
	u->stay.low = low;
	u->stay.high = high;
	u->stay.frame = frame;
	return (struct stay){ true };
}

void flexsc__stay_end(struct uthread *u, struct stay stay)
{
	if (stay.outermost)
		u->stay.frame = 0;
}

bool flexsc__stay_goes_on(struct uthread *u)
{
	flexsc__stay_left(u, (uintptr_t)__builtin_frame_address(0));
	return u->stay.frame;
}

bool flexsc__stays(struct uthread *u)
{
	if (!at_home())
		return false;
	return flexsc__stay_goes_on(u) || u->rooted ||
	       atomic_load_explicit(&u->tied, memory_order_relaxed) ||
	       atomic_load_explicit(&flexsc__runtime.last,
				    memory_order_relaxed) ||
	       atomic_load_explicit(&flexsc__runtime.rests,
				    memory_order_relaxed);
}
