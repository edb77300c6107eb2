/* SPDX-License-Identifier: MIT */
#include "queue.h"

#include <flexsc/ecb.h>
#include "study/rtsignal/rtsignal.h"
#include <string.h>

#include "lib/base/checks.h"

/* A reference is an entry's index + 1; 0: none. */
static struct queued entries[RTSIG_QUEUE_MAX];

/*
 * The first free entry, and in the upper half how often it changed: a thread that
 * was interrupted never takes a new head for the old one.
 */
static uint64_t vacant;

static struct queue {
	uint32_t newest;		/* any: pushed */
	uint32_t oldest, last;		/* the owner's */
} queues[FLEXSC_ECB_GROUPS];

/* Groups with a list that was pushed to, or with an entry of the owner's. */
static uint32_t pushed;
static uint32_t turned;

/* Others may look at a link that isn't theirs any more: see rtsig__queue_get(). */
static void link_set(uint32_t entry, uint32_t next)
{
	__atomic_store_n(&entries[entry - 1].link, next, __ATOMIC_RELAXED);
}

static uint64_t vacant_next(uint64_t head, uint32_t entry)
{
	return ((head >> 32) + 1) << 32 | entry;
}

uint32_t rtsig__queue_get(void)
{
	uint64_t head = __atomic_load_n(&vacant, __ATOMIC_ACQUIRE), next;

	do {
		if (!(uint32_t)head)
			return 0;
		next = vacant_next(head,
				   __atomic_load_n(&entries[(uint32_t)head - 1]
							   .link,
						   __ATOMIC_RELAXED));
	} while (!__atomic_compare_exchange_n(&vacant, &head, next, true,
					      __ATOMIC_ACQUIRE,
					      __ATOMIC_ACQUIRE));
	return (uint32_t)head;
}

void rtsig__queue_put(uint32_t entry)
{
	uint64_t head = __atomic_load_n(&vacant, __ATOMIC_RELAXED);

	do {
		link_set(entry, (uint32_t)head);
	} while (!__atomic_compare_exchange_n(&vacant, &head,
					      vacant_next(head, entry), true,
					      __ATOMIC_RELEASE,
					      __ATOMIC_RELAXED));
}

void rtsig__queue_push(uint32_t group, uint32_t entry,
			const struct queued *queued)
{
	uint32_t *newest = &queues[group].newest;
	uint32_t old = __atomic_load_n(newest, __ATOMIC_RELAXED);
	struct queued *mine = &entries[entry - 1];

	mine->code = queued->code;
	mine->pid = queued->pid;
	mine->uid = queued->uid;
	mine->value = queued->value;
	do {
		link_set(entry, old);
	} while (!__atomic_compare_exchange_n(newest, &old, entry, true,
					      __ATOMIC_RELEASE,
					      __ATOMIC_RELAXED));
	__atomic_fetch_or(&pushed, 1U << group, __ATOMIC_SEQ_CST);
}

static void queue_say(uint32_t groups)
{
	__atomic_store_n(&turned, groups, __ATOMIC_RELAXED);
}

/* The pushed entries become the end of the owner's part. */
static void queue_turn(uint32_t group)
{
	struct queue *queue = &queues[group];
	uint32_t newest = __atomic_exchange_n(&queue->newest, 0,
					      __ATOMIC_ACQUIRE);
	uint32_t last = newest, oldest = 0;

	if (!newest)
		return;
	while (newest) {
		uint32_t older = entries[newest - 1].link;

		link_set(newest, oldest);
		oldest = newest;
		newest = older;
	}
	if (queue->oldest)
		link_set(queue->last, oldest);
	else
		queue->oldest = oldest;
	queue->last = last;
	queue_say(turned | 1U << group);
}

uint32_t rtsig__queue_ready(void)
{
	uint32_t groups = 0;

	/* Before the lists: an entry that is pushed later sets its bit again. */
	if (__atomic_load_n(&pushed, __ATOMIC_RELAXED))
		groups = __atomic_exchange_n(&pushed, 0, __ATOMIC_SEQ_CST);
	for (; groups; groups &= groups - 1)
		queue_turn((uint32_t)__builtin_ctz(groups));
	return turned;
}

uint32_t rtsig__queue_pending(void)
{
	return __atomic_load_n(&turned, __ATOMIC_RELAXED) |
	       __atomic_load_n(&pushed, __ATOMIC_SEQ_CST);
}

struct queued rtsig__queue_take(uint32_t group)
{
	struct queue *queue = &queues[group];
	uint32_t entry = queue->oldest;
	struct queued queued;

	RULE(turned & 1U << group);
	queued = entries[entry - 1];
	queue->oldest = queued.link;
	if (!queue->oldest)
		queue_say(turned & ~(1U << group));
	rtsig__queue_put(entry);
	return queued;
}

void rtsig__queue_reset(void)
{
	for (uint32_t entry = 1; entry <= RTSIG_QUEUE_MAX; entry++)
		link_set(entry, entry - 1);
	vacant = vacant_next(vacant, RTSIG_QUEUE_MAX);
	memset(queues, 0, sizeof(queues));
	pushed = 0;
	turned = 0;
}
