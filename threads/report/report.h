/* SPDX-License-Identifier: MIT */
/*
 * The counters of flexsc run as text. Any thread, of the process itself or of
 * another; allocates nothing.
 */
#ifndef FLEXSC_THREADS_REPORT_H
#define FLEXSC_THREADS_REPORT_H

#include <stddef.h>
#include <stdint.h>

#include "run_page.h"

#define REPORT_BYTES	16384U
#define REPORT_CARRIERS	64U	/* that have a line */

/* Of all blocks; "tid" means nothing. */
struct counters flexsc__report_total(const struct run_page *page);

/* Calls of user threads, in all ways. */
uint64_t flexsc__report_calls(const struct counters *total);

/* User threads that went home, for all causes. */
uint64_t flexsc__report_couplings(const struct run_page *page);

/*
 * Mode switches that the program would have made natively, less those that
 * were made instead; "loops": those of its carriers' loops.
 */
int64_t flexsc__report_avoided(const struct run_page *page,
			       const struct counters *total, uint64_t loops);

/* "clone3", "(signal)" and the like; "-": there is no such cause. */
const char *flexsc__report_cause(unsigned int cause);

/* The cause with the most couplings of these; CAUSES: there are none. */
unsigned int flexsc__report_top(const uint64_t causes[CAUSES]);

/*
 * All of it, with an end of line each; how long it is. The sums are right if
 * the page is a copy, that doesn't change.
 */
size_t flexsc__report(char *text, size_t size, const struct run_page *page,
		      uint64_t loops, uint64_t now);

#endif /* FLEXSC_THREADS_REPORT_H */
