/* SPDX-License-Identifier: MIT */
/* The published counters. Owner only, except for count_shared(). */
#ifndef FLEXSC_STATS_INTERNAL_H
#define FLEXSC_STATS_INTERNAL_H

#include <stdint.h>

#include "loop.h"

int flexsc__stats_init(struct flexsc_loop *loop);
void flexsc__stats_fini(struct flexsc_loop *loop);
void flexsc__stats_publish(const struct flexsc_loop *loop);
void flexsc__stats_batch(struct flexsc_loop *loop, uint32_t calls);
/*
 * A syscall thread, if the loop has "stats_cores": count calls that it has executed
 * since its last report for the core where it runs.
 */
void flexsc__stats_executed(struct flexsc_loop *loop, uint64_t calls);
/* Called when a call without a cb has ended with ret: count it if it failed. */
void flexsc__stats_unreported(struct flexsc_loop *loop, int64_t ret);

static inline void stats_set(uint64_t *where, uint64_t value)
{
	__atomic_store_n(where, value, __ATOMIC_RELAXED);
}

/* Publish the counters of calls, which the owner keeps in struct flexsc_loop. */
static inline void stats_count(const struct flexsc_loop *loop)
{
	stats_set(&loop->stats->posted, loop->posted);
	stats_set(&loop->stats->completed, loop->completed);
	stats_set(&loop->stats->outstanding, loop->posted - loop->completed);
	stats_set(&loop->stats->waiting, loop->waiting);
}

/*
 * Called once per turn. Publishes all counters if the loop's memory has grown since the
 * last turn.
 */
static inline void stats_publish(struct flexsc_loop *loop)
{
	uint32_t grown = loop->entries.count + loop->staged.count +
			 loop->wheel.timers.count;

	if (grown == loop->grown) {
		stats_count(loop);
		return;
	}
	loop->grown = grown;
	flexsc__stats_publish(loop);
}

/*
 * Add to a counter that only one thread writes. A plain addition suffices; the store is
 * atomic for readers. count_shared() is for counters that syscall threads share.
 */
static inline void count(uint64_t *counter, uint64_t n)
{
	__atomic_store_n(counter, *counter + n, __ATOMIC_RELAXED);
}

static inline void count_shared(uint64_t *counter, uint64_t n)
{
	__atomic_fetch_add(counter, n, __ATOMIC_RELAXED);
}

#endif /* FLEXSC_STATS_INTERNAL_H */
