/* SPDX-License-Identifier: MIT */
#include "timers.h"

#include "cpuclock.h"
#include "lib/base/futex.h"

/*
 * The list of all timers. It changes under the lock; without the lock, one may
 * look whether it is empty.
 */
_Atomic(struct timer *) flexsc__timers;
static struct lock timers_lock;

static struct timer *first(void)
{
	return atomic_load_explicit(&flexsc__timers, memory_order_relaxed);
}

static void set_first(struct timer *timer)
{
	atomic_store_explicit(&flexsc__timers, timer, memory_order_relaxed);
}

void flexsc__timers_add(struct timer *timer)
{
	lock(&timers_lock);
	timer->next = first();
	set_first(timer);
	unlock(&timers_lock);
}

int32_t flexsc__timers_tid(timer_t id)
{
	const struct timer *timer;
	int32_t tid;

	lock(&timers_lock);
	for (timer = first(); timer && timer->id != id; timer = timer->next)
		;
	tid = timer ? timer->tid : 0;
	unlock(&timers_lock);
	return tid;
}

bool flexsc__timers_on(int32_t tid)
{
	const struct timer *timer;

	if (!timers_any())
		return false;
	lock(&timers_lock);
	for (timer = first(); timer && timer->tid != tid; timer = timer->next)
		;
	unlock(&timers_lock);
	return timer;
}

static struct timer *unlink_one(timer_t id)
{
	struct timer *timer = first(), *before = NULL;

	for (; timer && timer->id != id; timer = timer->next)
		before = timer;
	if (timer && before)
		before->next = timer->next;
	else if (timer)
		set_first(timer->next);
	return timer;
}

struct timer *flexsc__timers_take(timer_t id)
{
	struct timer *timer, *same = NULL;

	lock(&timers_lock);
	timer = unlink_one(id);
	if (timer)
		for (same = first(); same && same->tid != timer->tid;)
			same = same->next;
	/* With its last timer, the thread may leave its host again. */
	if (timer && !same)
		flexsc__cpuclock_release(timer->tid);
	unlock(&timers_lock);
	return timer;
}

void flexsc__timers_forked(void)
{
	set_first(NULL);
	timers_lock = (struct lock){ 0 };
}
