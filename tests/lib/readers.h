/* SPDX-License-Identifier: MIT */
/*
 * Reads that wait, more of them than a loop has threads: for blocking.c and
 * receiving.c.
 */
#ifndef FLEXSC_READERS_H
#define FLEXSC_READERS_H

#include "tests/lib/counted.h"

#define PIPES	200

static struct reader readers[PIPES];

static inline void post_reads(unsigned int n)
{
	for (unsigned int i = 0; i < n; i++) {
		reader_open(&readers[i]);
		reader_post(&readers[i]);
	}
	run_for(loop, 10);
	CHECK_EQ(done, 0);
}

static inline void feed(unsigned int i)
{
	char c = (char)('a' + i % 26);

	CHECK_EQ(write(readers[i].p[1], &c, 1), 1);
}

static inline void check_fed(unsigned int i)
{
	CHECK_EQ(readers[i].call.runs, 1);
	CHECK_EQ(readers[i].call.cb.ret, 1);
	CHECK_EQ(readers[i].c, 'a' + i % 26);
}

#endif /* FLEXSC_READERS_H */
