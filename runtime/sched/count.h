/* SPDX-License-Identifier: MIT */
/* Incrementing counters in the blocks of kernel threads (counters/counters.h). */
#ifndef FLEXSC_RUNTIME_COUNT_H
#define FLEXSC_RUNTIME_COUNT_H

#include "runtime/counters/counters.h"
#include "uthread.h"

/* Add to a counter in the block of k, which is the calling kernel thread. */
static inline void counters_add(const struct kthread *k, uint64_t *counter,
				uint64_t n)
{
	if (k->carrier)
		counters_own(counter, n);
	else
		__atomic_fetch_add(counter, n, __ATOMIC_RELAXED);
}

#define COUNT(k, field, n)	counters_add(k, &(k)->counters->field, n)
#define COUNT_CARRIER(c, field, n) \
	counters_own(&(c)->k.counters->field, n)
#define COUNT_HERE(field, n)	COUNT(kthread_self(), field, n)

/* Count a call of u, by the way in which it was made. */
static inline void counters_call(const struct uthread *u)
{
	COUNT_HERE(ways[u->way], 1);
}

#endif /* FLEXSC_RUNTIME_COUNT_H */
