/* SPDX-License-Identifier: MIT */
#include "runqueue.h"

#include "carrier.h"
#include "count.h"

static _Atomic uint32_t idle_count;
static atomic_bool searching;	/* an idle carrier was woken to look for work */
_Atomic(struct carrier *) flexsc__spinner;

static uint32_t waiting(const struct carrier *c)
{
	return atomic_load_explicit(&c->queue.count, memory_order_relaxed) +
	       atomic_load_explicit(&c->later.count, memory_order_relaxed);
}

static bool wake_idle(void)
{
	for (unsigned int i = 0; i < flexsc__runtime.count; i++) {
		struct carrier *c = &flexsc__runtime.carriers[i];

		/* Pairs with the store in flexsc__runqueue_idle(): Q2. */
		if (atomic_load(&c->idle) && !atomic_load(&c->spare)) {
			flexsc_loop_wake(c->loop, NULL);
			return true;
		}
	}
	atomic_store(&searching, false);
	return false;
}

void flexsc__runqueue_share(const struct carrier *c)
{
	if (waiting(c) < 2 ||
	    !atomic_load_explicit(&idle_count, memory_order_relaxed) ||
	    atomic_load_explicit(&searching, memory_order_relaxed))
		return;
	if (!atomic_exchange(&searching, true) && wake_idle())
		COUNT_HERE(wakes, 1);
}

void flexsc__runqueue_relieve(const struct carrier *c)
{
	if (waiting(c))
		wake_idle();
}

void flexsc__runqueue_put(struct carrier *c, struct uthread *u)
{
	RULE(kthread_self()->carrier == c);
	runqueue_append(u->heavy ? &c->later : &c->queue, u, u, 1);
	flexsc__runqueue_share(c);
}

/*
 * The queue's older half, as a list of *n user threads of which *last is the
 * last.
 */
static struct uthread *halve(struct runqueue *queue, uint32_t *n,
			     struct uthread **last)
{
	struct uthread *first = NULL;
	uint32_t half;

	if (!atomic_load(&queue->count))
		return NULL;
	lock(&queue->lock);
	half = (atomic_load(&queue->count) + 1) / 2;
	*n = half;
	if (half) {
		first = queue->head;
		*last = first;
		while (--half)
			*last = (*last)->next;
		queue->head = (*last)->next;
		runqueue_count(queue, -*n);
	}
	unlock(&queue->lock);
	return first;
}

struct uthread *flexsc__runqueue_steal(struct carrier *c)
{
	for (unsigned int i = 1; i < flexsc__runtime.count; i++) {
		struct carrier *from = &flexsc__runtime.carriers[
			(c->number + i) % flexsc__runtime.count];
		struct uthread *first, *last;
		uint32_t n;

		first = halve(&from->queue, &n, &last);
		if (!first)
			first = halve(&from->later, &n, &last);
		if (!first)
			continue;
		COUNT_CARRIER(c, steals, 1);
		COUNT_CARRIER(c, stolen, n);
		if (n > 1)
			runqueue_append(&c->queue, first->next, last, n - 1);
		atomic_store(&searching, false);
		flexsc__runqueue_share(from);
		return first;
	}
	return NULL;
}

bool flexsc__runqueue_any(void)
{
	for (unsigned int i = 0; i < flexsc__runtime.count; i++)
		/* Q2: pairs with runqueue_count(), Q1. */
		if (atomic_load(&flexsc__runtime.carriers[i].queue.count) ||
		    atomic_load(&flexsc__runtime.carriers[i].later.count))
			return true;
	return false;
}

void flexsc__runqueue_take_over(struct carrier *c, struct carrier *from)
{
	struct uthread *u;

	while ((u = runqueue_take(&from->queue)) ||
	       (u = runqueue_take(&from->later)))
		flexsc__runqueue_put(c, u);
}

void flexsc__runqueue_idle(struct carrier *c)
{
	/* Q2, until the caller has looked at all queues. */
	atomic_store(&c->idle, true);
	atomic_fetch_add(&idle_count, 1);
	atomic_store(&searching, false);
}

void flexsc__runqueue_busy(struct carrier *c)
{
	/* M1: before flexsc__monitor_notice() looks whether the monitor sleeps. */
	atomic_store(&c->idle, false);
	atomic_fetch_sub(&idle_count, 1);
}

void flexsc__runqueue_forget(void)
{
	atomic_store(&idle_count, 0);
	atomic_store(&flexsc__spinner, NULL);
	atomic_store(&searching, false);
}
