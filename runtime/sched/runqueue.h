/* SPDX-License-Identifier: MIT */
/*
 * Run queues: user threads that can run. Each carrier has two, one for user
 * threads whose last run was long. It appends and takes; other carriers take half
 * of a queue. A carrier that is alone needs no lock for its queues.
 *
 * A carrier with more user threads than it can run wakes an idle carrier.
 * "searching" is set from then until a carrier has stolen, goes to sleep, or was woken
 * and finds work of its own. So carriers are woken one after the other, not all at once.
 *
 *	Q1	a queue's length changes, then share() reads idle_count and
 *		"searching"
 *	Q2	a carrier that goes to sleep sets "idle", raises idle_count and
 *		clears "searching", then reads the lengths of all queues
 *
 * All of these are sequentially consistent but the reads of share(), and a queue's
 * length is stored with a full barrier behind it. So share() sees an idle carrier,
 * or that carrier sees the queue.
 *
 * If share() leaves the queue to the carrier that is searching already, that
 * carrier steals from it, or clears "searching" as in Q2 before it sleeps. If there
 * was no idle carrier, share() clears "searching", and the queue's carrier calls it
 * again when it takes the next user thread.
 */
#ifndef FLEXSC_RUNTIME_RUNQUEUE_H
#define FLEXSC_RUNTIME_RUNQUEUE_H

#include "lib/base/futex.h"
#include "state.h"
#include "uthread.h"

struct runqueue {
	struct lock lock;
	_Atomic uint32_t count;
	struct uthread *head, *tail;
};

static inline void runqueue_lock(struct runqueue *queue)
{
	if (!flexsc__runtime.alone)
		lock(&queue->lock);
}

static inline void runqueue_unlock(struct runqueue *queue)
{
	if (!flexsc__runtime.alone)
		unlock(&queue->lock);
}

/* With the queue's lock held. */
static inline void runqueue_count(struct runqueue *queue, uint32_t n)
{
	uint32_t count = atomic_load_explicit(&queue->count,
					      memory_order_relaxed) + n;

	if (!flexsc__runtime.alone)
		lock_assert_held(&queue->lock);
	/*
	 * Q1: share()'s relaxed loads come after this store's full barrier on
	 * x86; pairs with Q2.
	 */
	if (flexsc__runtime.alone)
		atomic_store_explicit(&queue->count, count,
				      memory_order_relaxed);
	else
		atomic_store(&queue->count, count);
}

static inline void runqueue_append(struct runqueue *queue, struct uthread *first,
				   struct uthread *last, uint32_t n)
{
	last->next = NULL;
	runqueue_lock(queue);
	if (queue->head)
		queue->tail->next = first;
	else
		queue->head = first;
	queue->tail = last;
	runqueue_count(queue, n);
	runqueue_unlock(queue);
}

/*
 * Prefetch for two at a time: finding the next user thread's stack takes a line
 * that was prefetched when its predecessor was taken.
 */
static inline void prefetch_next(const struct uthread *next)
{
	if (!next)
		return;
	prefetch(next);
	__builtin_prefetch(next->next, 1);
}

static inline struct uthread *runqueue_take(struct runqueue *queue)
{
	struct uthread *u;

	if (!atomic_load_explicit(&queue->count, memory_order_relaxed))
		return NULL;
	runqueue_lock(queue);
	u = queue->head;
	if (u) {
		queue->head = u->next;
		runqueue_count(queue, -1U);
		prefetch_next(u->next);
	}
	runqueue_unlock(queue);
	return u;
}

/* The carrier that spins before it sleeps, or NULL. */
extern _Atomic(struct carrier *) flexsc__spinner;

/* Carrier c only: u can run again, on c. */
void flexsc__runqueue_put(struct carrier *c, struct uthread *u);

/*
 * The same, called by a user thread on c: it may go on computing, so wake an idle
 * carrier.
 */
void flexsc__runqueue_put_shared(struct carrier *c, struct uthread *u);

/*
 * Carrier c only: the user thread that c runs next, from its queues or another
 * carrier's; or NULL. Those whose last run was long come after the others, except for
 * one run in four.
 */
struct uthread *flexsc__runqueue_next(struct carrier *c);

/* Carrier c only, after it has adopted "from": move the queues of "from" to c. */
void flexsc__runqueue_take_over(struct carrier *c, struct carrier *from);

/* Monitor only: c makes no progress. If its queues aren't empty, wake an idle carrier. */
void flexsc__runqueue_relieve(const struct carrier *c);

/* Is a user thread in any carrier's queue? */
bool flexsc__runqueue_any(void);

/*
 * Carrier c only: it is about to sleep. False: there is a user thread in a queue. In
 * both cases call flexsc__runqueue_busy() after that.
 */
bool flexsc__runqueue_idle(struct carrier *c);
void flexsc__runqueue_busy(struct carrier *c);

/* When all carriers have ended, or in a forked child. */
void flexsc__runqueue_forget(void);

#endif /* FLEXSC_RUNTIME_RUNQUEUE_H */
