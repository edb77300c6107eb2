/* SPDX-License-Identifier: MIT */
#include "runqueue.h"

#include "carrier.h"
#include "count.h"

/* After this many runs from "queue", a user thread from "later" runs. */
#define PASSED		3U
/* One take in eight, at random, first swaps the first two user threads of "queue". */
#define MIX		(1U << 29)

static _Atomic uint32_t idle_count;
static atomic_bool searching;	/* an idle carrier was woken, to steal a queue */
_Atomic(struct carrier *) flexsc__spinner;

static bool wake_idle(void)
{
	for (unsigned int i = 0; i < flexsc__runtime.count; i++) {
		struct carrier *c = &flexsc__runtime.carriers[i];

		/* Pairs with the store to "idle" in flexsc__runqueue_idle(): Q2. */
		if (atomic_load(&c->idle) && !atomic_load(&c->spare)) {
			flexsc_loop_wake(c->loop, NULL);
			return true;
		}
	}
	atomic_store(&searching, false);
	return false;
}

/* Wake an idle carrier if at least this many user threads are queued on c. */
static inline void share(const struct carrier *c, uint32_t least)
{
	/* Q1 */
	if (runqueue_waiting(c) < least || !atomic_load(&idle_count) ||
	    atomic_load(&searching))
		return;
	if (!atomic_exchange(&searching, true) && wake_idle())
		COUNT_HERE(wakes, 1);
}

void flexsc__runqueue_relieve(const struct carrier *c)
{
	if (runqueue_waiting(c))
		wake_idle();
}

void flexsc__runqueue_put(struct carrier *c, struct uthread *u)
{
	RULE(kthread_self()->carrier == c);
	runqueue_append(u->heavy ? &c->later : &c->queue, u, u, 1);
}

void flexsc__runqueue_put_shared(struct carrier *c, struct uthread *u)
{
	flexsc__runqueue_put(c, u);
	share(c, 2);
}

/* Take the queue's older half: a list of *n user threads that ends with *last. */
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

/* Take half of another carrier's queue. Returns its first user thread, or NULL. */
static struct uthread *steal(struct carrier *c)
{
	for (unsigned int i = 1; i < flexsc__runtime.count; i++) {
		struct carrier *from = &flexsc__runtime.carriers[
			(c->number + i) % flexsc__runtime.count];
		struct runqueue *to = &c->queue;
		struct uthread *first, *last;
		uint32_t n;

		first = halve(&from->queue, &n, &last);
		if (!first) {
			to = &c->later;
			first = halve(&from->later, &n, &last);
		}
		if (!first)
			continue;
		COUNT_CARRIER(c, steals, 1);
		COUNT_CARRIER(c, stolen, n);
		if (n > 1)
			runqueue_append(to, first->next, last, n - 1);
		atomic_store(&searching, false);
		share(from, 2);
		return first;
	}
	return NULL;
}

/*
 * Swap the queue's first two user threads. Without such swaps, a pool's workers would
 * run in the same order in every turn, and the first one could take all work of each
 * turn.
 */
static void mix(struct runqueue *queue)
{
	struct uthread *first, *second;

	/* Only c appends, so a count that c reads without the lock is never too low. */
	if (atomic_load_explicit(&queue->count, memory_order_relaxed) < 2)
		return;
	runqueue_lock(queue);
	first = queue->head;
	second = first ? first->next : NULL;
	if (second) {
		first->next = second->next;
		second->next = first;
		queue->head = second;
		if (queue->tail == second)
			queue->tail = first;
	}
	runqueue_unlock(queue);
}

/*
 * Take from "queue", or from "later" if that is empty. After PASSED runs from "queue",
 * try "later" first.
 */
static struct uthread *take(struct carrier *c)
{
	struct uthread *u = NULL;

	c->random = c->random * 1664525 + 1013904223;
	if (c->random < MIX)
		mix(&c->queue);
	if (c->passed >= PASSED)
		u = runqueue_take(&c->later);
	if (!u)
		u = runqueue_take(&c->queue);
	if (u)
		c->passed++;
	else
		u = runqueue_take(&c->later);
	if (c->passed > PASSED)
		c->passed = 0;
	return u;
}

struct uthread *flexsc__runqueue_next(struct carrier *c)
{
	struct uthread *u = take(c);
	const bool roused = c->roused;

	c->roused = false;
	if (!u)
		return steal(c);
	/* c was woken to steal, but has work of its own: let another carrier search. */
	if (roused)
		atomic_store(&searching, false);
	share(c, 1);
	return u;
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

bool flexsc__runqueue_idle(struct carrier *c)
{
	/* Q2 */
	atomic_store(&c->idle, true);
	atomic_fetch_add(&idle_count, 1);
	atomic_store(&searching, false);
	return !flexsc__runqueue_any();
}

void flexsc__runqueue_busy(struct carrier *c)
{
	/* M1: clear "idle", then call flexsc__monitor_notice(). Pairs with M2. */
	atomic_store(&c->idle, false);
	atomic_fetch_sub(&idle_count, 1);
	c->roused = true;
}

void flexsc__runqueue_forget(void)
{
	atomic_store(&idle_count, 0);
	atomic_store(&flexsc__spinner, NULL);
	atomic_store(&searching, false);
}
