/* SPDX-License-Identifier: MIT */
/* The published counters. Owner only, but for count_shared(). */
#ifndef FLEXSC_STATS_INTERNAL_H
#define FLEXSC_STATS_INTERNAL_H

#include <stdint.h>

struct flexsc_loop;

int flexsc__stats_init(struct flexsc_loop *loop);
void flexsc__stats_fini(struct flexsc_loop *loop);
void flexsc__stats_publish(const struct flexsc_loop *loop);
void flexsc__stats_batch(struct flexsc_loop *loop, uint32_t calls);

/*
 * A counter has one writer, so a plain sum does, stored whole for readers.
 * Counters that syscall threads count take an atomic sum.
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
