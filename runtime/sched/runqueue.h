/* SPDX-License-Identifier: MIT */
/*
 * A carrier's queue of user threads that can run. The carrier puts and takes;
 * other carriers take half of it. A carrier that is alone needs no lock for it.
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
	 * Q1: before a look whether carriers are idle (share()), whose relaxed
	 * load comes after this store's full barrier on x86; pairs with Q2.
	 */
	if (flexsc__runtime.alone)
		atomic_store_explicit(&queue->count, count,
				      memory_order_relaxed);
	else
		atomic_store(&queue->count, count);
}

static inline void runqueue_put(struct runqueue *queue, struct uthread *first,
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
 * Prefetch for two at a time: to find the next user thread's stack takes a line
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

/*
 * The queue's older half, as a list of *n user threads of which *last is the
 * last.
 */
static inline struct uthread *
runqueue_halve(struct runqueue *queue, uint32_t *n, struct uthread **last)
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

#endif /* FLEXSC_RUNTIME_RUNQUEUE_H */
