/* SPDX-License-Identifier: MIT */
#include "inbox.h"

#include "carrier_signal.h"
#include "runqueue.h"

/* c's inbox or list of rechecks has grown: wake c, or pass the list to its heir. */
static void notify(struct carrier *c)
{
	/* D2: c may have an heir, which has emptied the list; pairs with D1. */
	if (atomic_load(&c->heir))
		flexsc__inbox_forward(c);
	else
		flexsc_loop_wake(c->loop, NULL);
}

static void put_in_box(struct carrier *c, struct uthread *u)
{
	struct uthread *head;

	c = carrier_heir(c);
	head = atomic_load_explicit(&c->inbox, memory_order_relaxed);
	/* I1: releases the user thread; pairs with I2. */
	do {
		u->next = head;
	} while (!atomic_compare_exchange_weak(&c->inbox, &head, u));
	notify(c);
}

/* The next carrier that is not a spare, round robin. */
static struct carrier *any_carrier(void)
{
	static _Atomic unsigned int next;
	const unsigned int n = flexsc__runtime.count;
	struct carrier *c;

	for (unsigned int i = 0; i < n; i++) {
		c = &flexsc__runtime.carriers[atomic_fetch_add(&next, 1) % n];
		if (!atomic_load_explicit(&c->spare, memory_order_relaxed))
			return c;
	}
	return &flexsc__runtime.carriers[0];
}

/*
 * Prefer the carrier that spins, because waking it needs no system call. If it has just
 * stopped spinning, put_in_box() wakes its loop.
 */
void flexsc__inbox_give(struct uthread *u)
{
	struct carrier *c = atomic_load_explicit(&flexsc__spinner,
						 memory_order_relaxed);

	if (!c)
		c = u->carrier;
	if (!c || atomic_load_explicit(&c->spare, memory_order_relaxed))
		c = any_carrier();
	put_in_box(c, u);
}

void flexsc__inbox_ready(struct uthread *u)
{
	const struct kthread *k = kthread_near();

	if (k && k->carrier)
		flexsc__runqueue_put_shared(k->carrier, u);
	else
		flexsc__inbox_give(u);
}

struct uthread *flexsc__inbox_take(struct carrier *c)
{
	struct uthread *u, *next, *oldest = NULL;

	/* I2: acquires the user threads; pairs with I1. */
	u = atomic_exchange_explicit(&c->inbox, NULL, memory_order_acquire);
	for (; u; u = next) {
		next = u->next;
		u->next = oldest;
		oldest = u;
	}
	return oldest;
}

/* If c runs u, interrupt u: while u computes, c doesn't check its list of rechecks. */
static void signal_if_runs(const struct carrier *c, const struct uthread *u)
{
	/*
	 * If u has been suspended meanwhile, the signal has no effect. No signal is
	 * sent if c is about to run u, because c has read "wanted" already and hasn't
	 * set "current" yet. Then u goes to its host with its next call, or when the
	 * monitor calls it.
	 */
	if (__atomic_load_n(&c->k.current, __ATOMIC_SEQ_CST) == u)
		flexsc__signal_carrier(c);
}

void flexsc__inbox_pass(struct carrier *last, struct uthread *u)
{
	struct carrier *c = carrier_heir(last);
	struct uthread *head;

	head = atomic_load_explicit(&c->rechecks, memory_order_relaxed);
	/* V1: releases the link; pairs with V2 in carrier_run.c. */
	do {
		u->recheck.next = head;
	} while (!atomic_compare_exchange_weak(&c->rechecks, &head, u));
	notify(c);
	signal_if_runs(c, u);
	/* If "last" is stuck, it still runs its user thread, which may be u. */
	if (c != last)
		signal_if_runs(last, u);
}

void flexsc__inbox_forward(struct carrier *c)
{
	struct uthread *u, *next;

	for (u = atomic_exchange(&c->inbox, NULL); u; u = next) {
		next = u->next;
		put_in_box(c, u);
	}
	for (u = atomic_exchange(&c->rechecks, NULL); u; u = next) {
		next = u->recheck.next;
		flexsc__inbox_pass(c, u);
	}
}

void flexsc__inbox_recheck(struct uthread *u)
{
	struct carrier *c = u->carrier;

	/* V3: pairs with V4 in carrier_run.c. */
	if (c && !atomic_fetch_add(&u->recheck.requests, 1))
		flexsc__inbox_pass(c, u);
}
