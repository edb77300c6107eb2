/* SPDX-License-Identifier: MIT */
#include "wheel.h"

#include <errno.h>

/*
 * The first elements are list heads: one per bucket, and two for due timers. Index 0 is
 * the head of bucket 0 of level 0, so no timer has the index TIMER_NONE (0).
 */
#define BUCKETS		WHEEL_DUE_CBS
#define FIRST		(WHEEL_DUE_DEADLINES + 1)

#define TICK_MAX	((1ULL << (64 - WHEEL_TICK_BITS)) - 1)

static bool list_empty(const struct wheel *wheel, uint32_t head)
{
	return wheel_timer(wheel, head)->next == head;
}

static void list_init(struct wheel *wheel, uint32_t head)
{
	struct timer *timer = wheel_timer(wheel, head);

	timer->next = head;
	timer->prev = head;
}

static void list_append(struct wheel *wheel, uint32_t head, uint32_t timer)
{
	uint32_t last = wheel_timer(wheel, head)->prev;

	wheel_timer(wheel, timer)->next = head;
	wheel_timer(wheel, timer)->prev = last;
	wheel_timer(wheel, timer)->bucket = head;
	wheel_timer(wheel, last)->next = timer;
	wheel_timer(wheel, head)->prev = timer;
}

/*
 * Remove a timer from its list. If it was the last one, clear the bucket's bit in
 * "used".
 */
static void list_remove(struct wheel *wheel, uint32_t timer)
{
	struct timer *t = wheel_timer(wheel, timer);
	uint32_t bucket = t->bucket;

	wheel_timer(wheel, t->prev)->next = t->next;
	wheel_timer(wheel, t->next)->prev = t->prev;
	if (bucket < BUCKETS && list_empty(wheel, bucket))
		wheel->used[bucket / WHEEL_BUCKETS] &=
			~(1ULL << bucket % WHEEL_BUCKETS);
}

static unsigned int wheel_level(uint64_t now, uint64_t expiry)
{
	uint64_t differ = (now ^ expiry) | (WHEEL_BUCKETS - 1);

	return (63 - (unsigned int)__builtin_clzll(differ)) / WHEEL_BITS;
}

static void wheel_due(struct wheel *wheel, uint32_t timer)
{
	if (wheel_timer(wheel, timer)->kind != TIMER_CB) {
		list_append(wheel, WHEEL_DUE_DEADLINES, timer);
		return;
	}
	list_append(wheel, WHEEL_DUE_CBS, timer);
	/* Prefetch the cb: completing the timer writes to it next. */
	__builtin_prefetch((void *)(uintptr_t)wheel_timer(wheel, timer)->owner,
			   1);
}

/* Put a timer into the bucket for its expiry. The bucket also depends on wheel->now. */
static void wheel_place(struct wheel *wheel, uint32_t timer)
{
	uint64_t expiry = wheel_timer(wheel, timer)->expiry;
	unsigned int level, bucket;

	if (expiry <= wheel->now) {
		wheel_due(wheel, timer);
		return;
	}
	level = wheel_level(wheel->now, expiry);
	bucket = (expiry >> level * WHEEL_BITS) % WHEEL_BUCKETS;
	list_append(wheel, level * WHEEL_BUCKETS + bucket, timer);
	wheel->used[level] |= 1ULL << bucket;
}

int flexsc__wheel_init(struct wheel *wheel, uint64_t now)
{
	int err;

	*wheel = (struct wheel){ .now = now >> WHEEL_TICK_BITS };
	err = flexsc__arena_init(&wheel->timers, sizeof(struct timer), ARENA_MAX);
	while (!err && wheel->timers.count <= FIRST)
		err = flexsc__arena_grow(&wheel->timers);
	if (err) {
		flexsc__arena_fini(&wheel->timers);
		return -ENOMEM;
	}
	for (uint32_t i = 0; i < FIRST; i++)
		list_init(wheel, i);
	for (uint32_t i = FIRST; i < wheel->timers.count; i++)
		wheel_timer(wheel, i)->next =
			i + 1 < wheel->timers.count ? i + 1 : TIMER_NONE;
	wheel->free = FIRST;
	return 0;
}

void flexsc__wheel_fini(struct wheel *wheel)
{
	flexsc__arena_fini(&wheel->timers);
}

static int wheel_grow(struct wheel *wheel)
{
	uint32_t first = wheel->timers.count;
	int err = flexsc__arena_grow(&wheel->timers);

	if (err)
		return -ENOMEM;
	for (uint32_t i = first; i < wheel->timers.count; i++)
		wheel_timer(wheel, i)->next =
			i + 1 < wheel->timers.count ? i + 1 : TIMER_NONE;
	wheel->free = first;
	return 0;
}

int flexsc__wheel_arm(struct wheel *wheel, uint64_t now, uint64_t ns,
	      enum timer_kind kind, uint64_t owner, uint32_t *timer)
{
	uint64_t at, expiry;
	struct timer *t;

	if (wheel->free == TIMER_NONE && wheel_grow(wheel))
		return -ENOMEM;
	/*
	 * The expiry is rounded up, so that a timer never fires early. An overflowing
	 * sum becomes the last tick.
	 */
	if (__builtin_add_overflow(now, ns, &at) ||
	    __builtin_add_overflow(at, (1ULL << WHEEL_TICK_BITS) - 1, &at))
		expiry = TICK_MAX;
	else
		expiry = at >> WHEEL_TICK_BITS;
	*timer = wheel->free;
	t = wheel_timer(wheel, *timer);
	wheel->free = t->next;
	t->expiry = expiry;
	t->owner = owner;
	t->kind = kind;
	wheel_place(wheel, *timer);
	wheel->armed++;
	return 0;
}

void flexsc__wheel_cancel(struct wheel *wheel, uint32_t timer)
{
	list_remove(wheel, timer);
	wheel_timer(wheel, timer)->owner = 0;
	wheel_timer(wheel, timer)->next = wheel->free;
	wheel->free = timer;
	wheel->armed--;
}

/*
 * Returns the tick at which the earliest non-empty bucket begins, and the level and
 * number of that bucket. Lower levels are searched first: all their buckets precede the
 * next bucket of a higher level.
 */
static uint64_t wheel_earliest(const struct wheel *wheel, unsigned int *level,
			       unsigned int *bucket)
{
	for (*level = 0; *level < WHEEL_LEVELS; (*level)++) {
		unsigned int shift = *level * WHEEL_BITS;
		uint64_t begin;

		/*
		 * On every level, the numbers of all non-empty buckets are higher than
		 * the digit of wheel->now, so the lowest number is the earliest bucket.
		 */
		if (!wheel->used[*level])
			continue;
		*bucket = (unsigned int)__builtin_ctzll(wheel->used[*level]);
		begin = wheel->now >> shift >> WHEEL_BITS << WHEEL_BITS;
		return (begin | *bucket) << shift;
	}
	return UINT64_MAX;
}

/*
 * Called when a bucket's time has come: move its timers to lower levels, or make them
 * due.
 */
static void wheel_spill(struct wheel *wheel, unsigned int level,
			unsigned int bucket)
{
	uint32_t head = level * WHEEL_BUCKETS + bucket;

	while (!list_empty(wheel, head)) {
		uint32_t timer = wheel_timer(wheel, head)->next;

		/*
		 * Prefetch: timers that are neighbours in the list are scattered in
		 * memory.
		 */
		__builtin_prefetch(
			wheel_timer(wheel, wheel_timer(wheel, timer)->next));
		list_remove(wheel, timer);
		wheel_place(wheel, timer);
	}
}

void flexsc__wheel_advance(struct wheel *wheel, uint64_t now)
{
	uint64_t until = now >> WHEEL_TICK_BITS;
	unsigned int level, bucket;

	for (;;) {
		uint64_t begin = wheel_earliest(wheel, &level, &bucket);

		if (begin > until)
			break;
		wheel->now = begin;
		wheel_spill(wheel, level, bucket);
	}
	if (until > wheel->now)
		wheel->now = until;
}

void flexsc__wheel_set(struct wheel *wheel, uint64_t now)
{
	wheel->now = now >> WHEEL_TICK_BITS;
}

int flexsc__wheel_pop(struct wheel *wheel, uint32_t due, struct timer *timer)
{
	uint32_t index = wheel_timer(wheel, due)->next;

	if (index == due)
		return 0;
	*timer = *wheel_timer(wheel, index);
	flexsc__wheel_cancel(wheel, index);
	return 1;
}

uint64_t flexsc__wheel_next(const struct wheel *wheel, uint64_t now)
{
	unsigned int level, bucket;
	uint64_t begin;

	if (!list_empty(wheel, WHEEL_DUE_DEADLINES) ||
	    !list_empty(wheel, WHEEL_DUE_CBS))
		return 0;
	begin = wheel_earliest(wheel, &level, &bucket);
	if (begin == UINT64_MAX)
		return UINT64_MAX;
	begin <<= WHEEL_TICK_BITS;
	return begin > now ? begin - now : 0;
}
