/* SPDX-License-Identifier: MIT */
/* Callbacks that count, and reads of one byte, each of which waits on its own pipe. */
#ifndef FLEXSC_TESTS_COUNTED_H
#define FLEXSC_TESTS_COUNTED_H

#include "tests/harness/harness.h"

static unsigned int done;	/* how many callbacks have run, of all calls */

static inline void count_done(struct flexsc_cb *cb)
{
	done++;
}

static inline void count_call(struct flexsc_cb *cb)
{
	call_done(cb);
	done++;
}

struct reader {
	struct call call;	/* first: count_call() finds it here */
	int p[2];
	char c;
};

static inline void reader_open(struct reader *r)
{
	CHECK_EQ(pipe2(r->p, O_CLOEXEC), 0);
	r->call = (struct call){ .cb = { .callback = count_call } };
}

static inline void reader_post(struct reader *r)
{
	r->call.runs = 0;
	POST(loop, &r->call, SYS_read, r->p[0], &r->c, 1);
}

static inline void reader_feed(struct reader *r)
{
	CHECK_EQ(write(r->p[1], "x", 1), 1);
}

#endif /* FLEXSC_TESTS_COUNTED_H */
