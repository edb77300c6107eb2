/* SPDX-License-Identifier: MIT */
/*
 * Run queues: user threads that are ready to run. Each carrier has two, one of them for
 * user threads whose last run was long. The carrier appends and takes; other carriers
 * steal half of a queue. If there is only one carrier, its queues need no locks.
 *
 * A carrier with more user threads than it can run wakes an idle carrier. "searching"
 * is set from then until a carrier has stolen, goes to sleep, or wakes up and finds
 * work of its own. So carriers are woken one after the other, not all at once.
 *
 *	Q1	a queue's length changes, then share() reads idle_count and
 *		"searching"
 *	Q2	a carrier that goes to sleep sets "idle", raises idle_count and
 *		clears "searching", then reads the lengths of all queues
 *
 * All of these are sequentially consistent. So share() sees the idle carrier, or that
 * carrier sees the queue.
 *
 * If a carrier is searching already, share() leaves the queue to it. That carrier
 * steals from the queue, or clears "searching" as in Q2 before it sleeps. If no carrier
 * is idle, share() clears "searching", and the queue's carrier calls it again when it
 * takes the next user thread.
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

/* Add n to the queue's length. Called with the queue's lock held. */
static inline void runqueue_count(struct runqueue *queue, uint32_t n)
{
	uint32_t count = atomic_load_explicit(&queue->count,
					      memory_order_relaxed) + n;

	if (!flexsc__runtime.alone)
		lock_assert_held(&queue->lock);
	/* Q1: before the loads in share(); pairs with Q2. */
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
 * Prefetch the stack of the next user thread, and the structure of the thread after it,
 * which has the address of that thread's stack.
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

/* The carrier that is spinning before it goes to sleep; NULL: no carrier spins. */
extern _Atomic(struct carrier *) flexsc__spinner;

/* Carrier c only: enqueue u, which is ready, on c. */
void flexsc__runqueue_put(struct carrier *c, struct uthread *u);

/*
 * As flexsc__runqueue_put(), called by a user thread on c. This user thread may
 * continue to compute, so wake an idle carrier.
 */
void flexsc__runqueue_put_shared(struct carrier *c, struct uthread *u);

/*
 * Carrier c only: take the next user thread to run, from its queues or another
 * carrier's; or NULL. User threads whose last run was long come after the others,
 * except for one run in four.
 */
struct uthread *flexsc__runqueue_next(struct carrier *c);

/* Carrier c only, after it has adopted "from": move the queues of "from" to c. */
void flexsc__runqueue_take_over(struct carrier *c, struct carrier *from);

/*
 * Monitor only: c makes no progress. Unless its queues are empty, wake an idle carrier.
 */
void flexsc__runqueue_relieve(const struct carrier *c);

/* Is a user thread in any carrier's queue? */
bool flexsc__runqueue_any(void);

/*
 * Carrier c only, before it sleeps: become idle. False: a queue isn't empty, so don't
 * sleep. Call flexsc__runqueue_busy() afterwards in both cases.
 */
bool flexsc__runqueue_idle(struct carrier *c);
void flexsc__runqueue_busy(struct carrier *c);

/* When all carriers have ended, and in a forked child: reset the global state. */
void flexsc__runqueue_forget(void);

#endif /* FLEXSC_RUNTIME_RUNQUEUE_H */
