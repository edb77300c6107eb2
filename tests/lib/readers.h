/* SPDX-License-Identifier: MIT */
/* Reads that wait, more of them than a loop has threads: blocking.c, receiving.c. */
#ifndef FLEXSC_READERS_H
#define FLEXSC_READERS_H

#include "tests/harness/harness.h"

#define PIPES	200

/* A pipe with a read of one byte posted on it. */
struct reader {
	struct call call;	/* first: call_done() finds it here */
	int p[2];
	char c;
};

static struct reader readers[PIPES];
static unsigned int finished;

static inline void reader_done(struct flexsc_cb *cb)
{
	((struct call *)cb)->runs++;
	finished++;
}

static inline void post_reads(unsigned int n)
{
	for (unsigned int i = 0; i < n; i++) {
		struct reader *r = &readers[i];

		CHECK_EQ(pipe2(r->p, O_CLOEXEC), 0);
		r->call.cb.callback = reader_done;
		POST(loop, &r->call, SYS_read, r->p[0], &r->c, 1);
	}
	run_for(loop, 10);
	CHECK_EQ(finished, 0);
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
