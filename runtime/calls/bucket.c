/* SPDX-License-Identifier: MIT */
/*
 * The ends of waits in buckets: by a wake-up, an interruption, or a time limit. The
 * bucket's lock decides which of them ends a wait.
 */
#include "bucket.h"

#include <errno.h>

#include "runtime/sched/inbox.h"
#include "runtime/sched/wait.h"

struct bucket flexsc__buckets[BUCKETS];

void flexsc__bucket_release(struct uthread *list)
{
	struct uthread *next;

	for (; list; list = next) {
		next = list->next;
		if (list->futex.timer)
			flexsc__futex_timer_end(list->futex.timer);
		atomic_store(&list->wait, WAIT_NOT);
		flexsc__inbox_ready(list);
	}
}

void flexsc__bucket_time_over(struct flexsc_cb *cb)
{
	struct futex_timer *timer = futex_timer_of(cb);
	struct bucket *bucket = bucket_lock_timed(timer);
	struct uthread *u;

	if (!bucket)
		return;
	u = timer->u;
	bucket_take(bucket, u, -ETIMEDOUT);
	unlock(&bucket->lock);
	flexsc__bucket_release(u);
}

static void bucket_interrupt(struct carrier *c, struct uthread *u)
{
	struct bucket *bucket = bucket_lock(u);
	bool interrupted;

	/* A waker may have woken u meanwhile, so u may wait on another carrier. */
	interrupted = u->futex.queued && carrier_heir(u->carrier) == c;
	if (interrupted)
		bucket_take(bucket, u, -EINTR);
	unlock(&bucket->lock);
	if (interrupted)
		flexsc__bucket_release(u);
}

static void bucket_move_limit(struct carrier *s, struct carrier *c,
			      struct uthread *u)
{
	struct bucket *bucket = bucket_lock(u);
	struct futex_timer *timer = u->futex.timer;
	bool fails = false;

	/*
	 * A waker may have woken u before the lock was taken. In that case the timer
	 * may be dead, or belong to another wait, and must not change.
	 */
	if (timer && atomic_load(&timer->bucket) == bucket && timer->u == u &&
	    timer->owner == c) {
		__atomic_store_n(&u->carrier, s, __ATOMIC_RELAXED);
		fails = !flexsc__futex_timer_move(timer, s);
		/* If there is no memory for the new timer, u waits on its host. */
		if (fails)
			bucket_take(bucket, u, NO_ENTRY);
	}
	unlock(&bucket->lock);
	if (fails)
		flexsc__bucket_release(u);
}

static const struct wait_ops bucket_waits = {
	.interrupt = bucket_interrupt,
	.move_limit = bucket_move_limit,
};

void flexsc__buckets_init(void)
{
	flexsc__wait_futexes(&bucket_waits);
}

void flexsc__buckets_forked(void)
{
	for (unsigned int i = 0; i < BUCKETS; i++)
		flexsc__buckets[i] = (struct bucket){ 0 };
}
