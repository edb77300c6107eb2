/* SPDX-License-Identifier: MIT */
#include "futex_timer.h"

#include "lib/loop/event.h"
#include "lib/run/handover.h"

/*
 * Take a free timer, or allocate one. A timer's memory stays mapped while carriers run,
 * because other threads may still read a timer that its owner has freed.
 */
static struct futex_timer *take(struct carrier *c)
{
	struct arena *all = &c->timers.all;
	struct futex_timer *timer = c->timers.free;

	if (timer) {
		c->timers.free = timer->next;
		return timer;
	}
	if (!all->base && flexsc__arena_init(all, sizeof(*timer), ARENA_MAX))
		return NULL;
	if (c->timers.made == all->count && flexsc__arena_grow(all))
		return NULL;
	return (struct futex_timer *)all->base + c->timers.made++;
}

static void give_back(struct carrier *c, struct futex_timer *timer)
{
	timer->next = c->timers.free;
	c->timers.free = timer;
}

struct futex_timer *flexsc__futex_timer_start(struct carrier *c,
					      struct uthread *u,
					      void (*over)(struct flexsc_cb *cb),
					      uint64_t ns)
{
	struct futex_timer *timer = take(c);

	if (!timer)
		return NULL;
	timer->cb.callback = over;
	if (flexsc_loop_timer(c->loop, &timer->cb, ns)) {
		give_back(c, timer);
		return NULL;
	}
	timer->u = u;
	timer->owner = c;
	return timer;
}

void flexsc__futex_timer_end(struct futex_timer *timer)
{
	_Atomic(struct futex_timer *) *dead = &timer->owner->dead_timers;
	struct futex_timer *head = atomic_load_explicit(dead,
							memory_order_relaxed);

	/* K1: releases the timer; pairs with K2. */
	do {
		timer->next = head;
	} while (!atomic_compare_exchange_weak_explicit(dead, &head, timer,
							memory_order_release,
							memory_order_relaxed));
}

bool flexsc__futex_timer_move(struct futex_timer *timer, struct carrier *s)
{
	uint64_t ns;
	bool taken;

	taken = flexsc__handover_take(timer->owner->loop, &timer->cb, false, &ns);
	RULE(taken);
	if (!taken || flexsc_loop_timer(s->loop, &timer->cb, ns))
		return false;
	timer->owner = s;
	return true;
}

void flexsc__futex_timers_free_dead(struct carrier *c)
{
	struct futex_timer *timer, *next;

	if (!atomic_load_explicit(&c->dead_timers, memory_order_relaxed))
		return;
	/* K2: acquires the timers; pairs with K1. */
	timer = atomic_exchange_explicit(&c->dead_timers, NULL,
					 memory_order_acquire);
	for (; timer; timer = next) {
		next = timer->next;
		flexsc__timer_release(c->loop, &timer->cb);
		give_back(c, timer);
	}
}

void flexsc__futex_timers_fini(struct carrier *c)
{
	flexsc__arena_fini(&c->timers.all);
}
