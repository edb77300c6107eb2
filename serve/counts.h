/* SPDX-License-Identifier: MIT */
/*
 * A worker's counters. Only the worker's thread changes them, and any thread may
 * read them. Each one is consistent by itself, so relaxed accesses suffice.
 */
#ifndef SERVE_COUNTS_H
#define SERVE_COUNTS_H

#include <stdatomic.h>
#include <stdint.h>

#define COUNTS_CLASSES	5	/* 1xx to 5xx */

struct counts {
	_Atomic uint64_t responses[COUNTS_CLASSES];
	_Atomic uint64_t sent;		/* bytes, with heads */
	_Atomic uint64_t accepted;	/* connections */
	_Atomic uint64_t closed;
};

static inline uint64_t counts_read(const _Atomic uint64_t *counter)
{
	return atomic_load_explicit(counter, memory_order_relaxed);
}

/*
 * Add to a counter. A locked instruction isn't needed, because only one thread
 * writes.
 */
static inline void counts_add(_Atomic uint64_t *counter, uint64_t n)
{
	atomic_store_explicit(counter, counts_read(counter) + n,
			      memory_order_relaxed);
}

#endif /* SERVE_COUNTS_H */
