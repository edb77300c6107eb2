/* SPDX-License-Identifier: MIT */
/*
 * Counting what the runtime does. A carrier counts with plain stores in a block of its
 * own. There is no race: the block is used only by code on the carrier's own stack, and
 * by the user thread that it runs, inside the runtime, where no handler of the program
 * runs. Host threads share blocks and add atomically; the cost doesn't matter where
 * system calls are made anyway.
 */
#ifndef FLEXSC_RUNTIME_COUNTERS_H
#define FLEXSC_RUNTIME_COUNTERS_H

#include "run_page.h"

extern struct run_page *flexsc__run_page;

/* Create a page for n carriers, including spares, before they start. 0 or -ENOMEM. */
int flexsc__counters_start(unsigned int n);
/* Let other processes read the page. Sets the engine's name and number of carriers. */
void flexsc__counters_publish(const char *engine, unsigned int carriers);
/* Monitor only: set the number of stuck carriers. */
void flexsc__counters_stuck(uint32_t n);
/* Set the number of spares made so far. */
void flexsc__counters_spares(uint32_t n);
/* In a forked child: drop the page, which is the parent's. */
void flexsc__counters_forked(void);

/*
 * The process ends: show the counters if flexsc run --stats requested it. No effect in
 * a child. "calls" is how many system calls the loops made.
 */
void flexsc__counters_show(uint64_t calls);

static inline struct counters *counters_of_carrier(unsigned int number)
{
	return &flexsc__run_page->blocks[number];
}

static inline struct counters *counters_of_host(int32_t tid)
{
	return &flexsc__run_page->blocks[flexsc__run_page->room +
					 (uint32_t)tid % RUN_PAGE_HOSTS];
}

/* Add to a counter in the calling carrier's block. */
static inline void counters_own(uint64_t *counter, uint64_t n)
{
	__atomic_store_n(counter, *counter + n, __ATOMIC_RELAXED);
}

/* The cause of a return to the host for a call. */
static inline uint16_t counters_cause(long nr)
{
	return nr >= 0 && nr < CAUSE_CALLS ? (uint16_t)nr : CAUSE_UNKNOWN;
}

static inline void counters_return(unsigned int cause)
{
	__atomic_fetch_add(&flexsc__run_page->causes[cause], 1,
			   __ATOMIC_RELAXED);
}

#endif /* FLEXSC_RUNTIME_COUNTERS_H */
