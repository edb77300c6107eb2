/* SPDX-License-Identifier: MIT */
/*
 * The buckets of user-level futexes (ufutex.h). A bucket lists the user threads that
 * wait for words with the same hash. Any thread. A thread that reads u->futex.word
 * holds the bucket's lock. Only bucket_lock() reads it without the lock, to find the
 * bucket, and reads it again under the lock.
 */
#ifndef FLEXSC_RUNTIME_BUCKET_H
#define FLEXSC_RUNTIME_BUCKET_H

#include "lib/base/futex.h"
#include "runtime/sched/futex_timer.h"
#include "runtime/sched/uthread.h"

#define BUCKETS	1024U	/* bucket_of() shifts by 64 - log2(BUCKETS) */

struct bucket {
	struct lock lock;
	_Atomic uint32_t users;		/* number of waiting user threads: F1, F2 */
	_Atomic uint32_t kernels;	/* number of waiting kernel threads: F1, F2 */
	struct uthread *head, *tail;
} __attribute__((aligned(64)));

extern struct bucket flexsc__buckets[BUCKETS];

static inline struct bucket *bucket_of(const uint32_t *word)
{
	uint64_t hash = (uintptr_t)word / sizeof(*word) * 0x9e3779b97f4a7c15ULL;

	return &flexsc__buckets[hash >> 54];
}

/* Add u at the end of the bucket's list, or at its head if "first" is set. */
static inline void bucket_add(struct bucket *bucket, struct uthread *u, bool first)
{
	lock_assert_held(&bucket->lock);
	u->futex.prev = first ? NULL : bucket->tail;
	u->futex.next = first ? bucket->head : NULL;
	if (u->futex.prev)
		u->futex.prev->futex.next = u;
	else
		bucket->head = u;
	if (u->futex.next)
		u->futex.next->futex.prev = u;
	else
		bucket->tail = u;
	u->futex.queued = true;
	if (u->futex.timer)
		atomic_store_explicit(&u->futex.timer->bucket, bucket,
				      memory_order_relaxed);
}

static inline void bucket_remove(struct bucket *bucket, struct uthread *u)
{
	lock_assert_held(&bucket->lock);
	if (u->futex.prev)
		u->futex.prev->futex.next = u->futex.next;
	else
		bucket->head = u->futex.next;
	if (u->futex.next)
		u->futex.next->futex.prev = u->futex.prev;
	else
		bucket->tail = u->futex.prev;
	u->futex.queued = false;
	atomic_fetch_sub(&bucket->users, 1);
}

/* End u's wait with this result. The caller unlocks the bucket, then releases u. */
static inline void bucket_take(struct bucket *bucket, struct uthread *u, long ret)
{
	bucket_remove(bucket, u);
	if (u->futex.timer)
		atomic_store_explicit(&u->futex.timer->bucket, NULL,
				      memory_order_relaxed);
	u->ret = ret;
	u->next = NULL;
}

/*
 * Lock the bucket in which a timer's user thread waits. NULL: the wait has ended, so
 * the timer is dead. Called when the timer expires, by the timer's owner or the owner's
 * heir.
 */
static inline struct bucket *bucket_lock_timed(const struct futex_timer *timer)
{
	struct bucket *bucket;

	while ((bucket = atomic_load_explicit(&timer->bucket,
					      memory_order_relaxed))) {
		lock(&bucket->lock);
		if (atomic_load_explicit(&timer->bucket,
					 memory_order_relaxed) == bucket)
			return bucket;
		unlock(&bucket->lock);
	}
	return NULL;
}

/* Lock the bucket that u waits in. Until then, a requeue may move u to another one. */
static inline struct bucket *bucket_lock(const struct uthread *u)
{
	for (;;) {
		uint32_t *word = __atomic_load_n(&u->futex.word,
						 __ATOMIC_RELAXED);
		struct bucket *bucket = bucket_of(word);

		lock(&bucket->lock);
		if (bucket_of(u->futex.word) == bucket)
			return bucket;
		unlock(&bucket->lock);
	}
}

static inline void buckets_lock(struct bucket *a, struct bucket *b)
{
	if (a > b) {
		struct bucket *c = a;

		a = b;
		b = c;
	}
	lock(&a->lock);
	if (a != b)
		lock(&b->lock);
}

static inline void buckets_unlock(struct bucket *a, struct bucket *b)
{
	unlock(&a->lock);
	if (a != b)
		unlock(&b->lock);
}

/* Make the listed user threads ready. From here on they may run, and end. */
void flexsc__bucket_release(struct uthread *list);

/* The callback of a futex_timer. */
void flexsc__bucket_time_over(struct flexsc_cb *cb);

/* Register futex waits with sched/wait.h, before there are carriers. */
void flexsc__buckets_init(void);

/* Empty the buckets of a forked child, where no thread waits. */
void flexsc__buckets_forked(void);

#endif /* FLEXSC_RUNTIME_BUCKET_H */
