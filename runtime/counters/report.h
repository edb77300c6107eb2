/* SPDX-License-Identifier: MIT */
/*
 * The counters of flexsc run as text. Any thread of the counted process, or of another
 * one. Nothing is allocated.
 */
#ifndef FLEXSC_RUNTIME_REPORT_H
#define FLEXSC_RUNTIME_REPORT_H

#include <stddef.h>
#include <stdint.h>

#include "run_page.h"

#define REPORT_BYTES	16384U
#define REPORT_CARRIERS	64U	/* carriers that have a line */

/* Sum of all blocks. The "tid" of the sum is meaningless. */
struct counters flexsc__report_total(const struct run_page *page);

/* Number of calls of user threads, whatever way they were made. */
uint64_t flexsc__report_calls(const struct counters *total);

/* Times that user threads returned to their hosts, for any cause. */
uint64_t flexsc__report_returns(const struct run_page *page);

/*
 * Mode switches that the program would have made natively, less those that were made
 * instead. "loops" is how many system calls the carriers' loops made.
 */
int64_t flexsc__report_avoided(const struct run_page *page,
			       const struct counters *total, uint64_t loops);

/* Name of a cause: "clone3", "(signal)" and so on; "-" without a cause. */
const char *flexsc__report_cause(unsigned int cause);

/* The cause with the largest number; CAUSES if all numbers are 0. */
unsigned int flexsc__report_top(const uint64_t causes[CAUSES]);

/*
 * The whole report. Returns its length. "page" should be a copy: if it changes
 * meanwhile, sums are wrong.
 */
size_t flexsc__report(char *text, size_t size, const struct run_page *page,
		      uint64_t loops, uint64_t now);

#endif /* FLEXSC_RUNTIME_REPORT_H */
