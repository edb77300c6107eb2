/* SPDX-License-Identifier: MIT */
#include "host.h"

#include <signal.h>

#include "lib/base/futex.h"
#include "carrier.h"
#include "count.h"
#include "inbox.h"
#include "resent_signals.h"
#include "stacks.h"
#include "state.h"
#include "sticky.h"

/*
 * The first function on the host's own stack, entered when u leaves the host for the
 * first time.
 */
static void host_main(void *arg)
{
	struct uthread *u = arg;
	struct host *host = &u->host;

	host->k.current = NULL;
	u->then(&host->k, u);
	for (;;) {
		/*
		 * H2: acquires the user thread's stack from its last carrier; pairs
		 * with H1.
		 */
		while (atomic_load_explicit(&host->word,
					    memory_order_acquire) == HOST_AWAY)
			futex_wait(&host->word, HOST_AWAY, UINT64_MAX);
		flexsc__resume(&host->k, u);
	}
}

void flexsc__host_init(struct uthread *u, void *stack, sigmask_t mask)
{
	struct host *host = &u->host;

	u->tp = context_tp();
	u->computes_on_host = true;
	u->natively = flexsc__runtime.loops;
	u->sticky.loop_needs = STICKY_LOOP_WAITS;
	host->stack = stack;
	host->mask = mask;
	host->k = (struct kthread){
		.self = &host->k,
		.tp = u->tp,
		.current = u,
		.tid = (int32_t)raw_syscall(SYS_gettid, 0, 0, 0, 0, 0, 0),
		.sp = context_init(stack_top(&flexsc__small, stack), host_main, u),
	};
	host->k.counters = counters_of_host(host->k.tid);
	COUNT(&host->k, started, 1);
	context_set_self(&host->k);
	signal_mask(SIG_SETMASK, &host->mask, NULL);
}

void flexsc__host_fini(struct uthread *u)
{
	flexsc__stack_put(&flexsc__small, u->host.borrowed);
	COUNT(&u->host.k, ended, 1);
	flexsc__stack_put(&flexsc__small, u->host.stack);
	u->host.borrowed = NULL;
	u->host.stack = NULL;
}

static void leave(struct kthread *k, struct uthread *u)
{
	COUNT(k, departures, 1);
	atomic_store_explicit(&u->host.word, HOST_AWAY, memory_order_relaxed);
	flexsc__inbox_give(u);
}

/*
 * Same as leave(), but a function of its own, so that flexsc__leaves_host() returns
 * false.
 */
static void leave_to_run(struct kthread *k, struct uthread *u)
{
	leave(k, u);
}

bool flexsc__leaves_host(const struct uthread *u)
{
	return u->then == leave;
}

static void leave_host(struct uthread *u,
		       void (*then)(struct kthread *, struct uthread *))
{
	sigmask_t mask;

	if (!on_host())
		return;
	/* The handler of a signal that arrives from here on calls u to the host. */
	u->host.away = true;
	atomic_signal_fence(memory_order_seq_cst);
	signal_mask(SIG_BLOCK, NULL, &mask);
	/* If such a handler has run, it has blocked all signals and saved u's mask. */
	if (!u->host.masked) {
		u->host.mask = mask;
		u->host.masked = true;
	}
	u->host.sleep_mask = u->host.mask;
	flexsc__stack_put(&flexsc__small, u->host.borrowed);
	u->host.borrowed = NULL;
	u->computes_on_host = false;
	flexsc__suspend(u, then);
	flexsc__settle(u);
}

void flexsc__leave_host(struct uthread *u)
{
	leave_host(u, leave);
}

void flexsc__leave_host_to_run(struct uthread *u)
{
	leave_host(u, leave_to_run);
}

void flexsc__send_to_host(struct uthread *u)
{
	/* H1: releases the user thread's stack; pairs with H2. */
	atomic_store_explicit(&u->host.word, HOST_RESUMES,
			      memory_order_release);
	futex_wake(&u->host.word);
}

static void return_to_host(struct kthread *k, struct uthread *u)
{
	RULE(k->carrier);
	counters_return(u->cause);
	flexsc__send_to_host(u);
}

void flexsc__return_to_host(struct uthread *u)
{
	RULE(u == &flexsc__self && u->busy);
	if (!on_host())
		flexsc__suspend(u, return_to_host);
	else if (!atomic_load_explicit(&u->wanted, memory_order_relaxed))
		return;
	flexsc__settle(u);
}

void flexsc__bring_to_host(void)
{
	struct uthread *u = &flexsc__self;

	if (!u->alive || u->busy)
		return;
	flexsc__enter(u);
	flexsc__return_to_host(u);
	flexsc__exit(u);
}

void flexsc__settle(struct uthread *u)
{
	if (!on_host())
		return;
	u->host.away = false;
	atomic_store(&u->wanted, false);
	/* Let the signals that called u to its host arrive, and their handlers run. */
	u->busy = false;
	if (u->host.masked) {
		u->host.masked = false;
		flexsc__resent_unmask(u, u->host.mask);
		signal_mask(SIG_SETMASK, &u->host.mask, NULL);
	}
	u->busy = true;
}

sigmask_t flexsc__settle_in_frame(struct uthread *u)
{
	const sigmask_t all = ~0ULL;
	sigmask_t mask;

	signal_mask(SIG_SETMASK, &all, NULL);
	mask = u->host.mask;
	flexsc__resent_unmask(u, mask);
	u->host.masked = false;
	u->host.away = false;
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
	 * A thread's TLS is above its stack, so an address beyond the TLS is on another
	 * stack. The first thread's TLS isn't above its stack, so compare only with the
	 * frame.
	 */
	return sp > frame && (sp < u->tp || u->tp < frame);
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
	if (!on_host())
		return false;
	return flexsc__stay_goes_on(u) || u->host_only ||
	       atomic_load_explicit(&u->anchored, memory_order_relaxed) ||
	       atomic_load_explicit(&flexsc__runtime.last,
				    memory_order_relaxed) ||
	       atomic_load_explicit(&flexsc__runtime.dormant,
				    memory_order_relaxed);
}
