/* SPDX-License-Identifier: MIT */
/*
 * The instructions that a call takes in user mode. Only optimized builds without
 * checks have to meet the bounds.
 */
#include "tests/harness/harness.h"
#include "tests/lib/counted.h"
#include "tests/harness/steps.h"

#define BATCH	64U

static struct flexsc_cb cbs[BATCH];
static void make_batch(struct flexsc_loop *loop, unsigned int nr, int fd,
		       unsigned int batch)
{
	static char byte;

	for (unsigned int i = 0; i < batch; i++) {
		cbs[i].callback = count_done;
		flexsc__call3(loop, &cbs[i], nr, (uint64_t)fd,
				  (uintptr_t)&byte, 1);
	}
	flexsc_loop_run(loop);
}

/* Runs in the traced process. This number of batches is made between two stops. */
static void make_batches(unsigned int nr, int fd, unsigned int batch,
			 unsigned int batches)
{
	struct flexsc_loop *loop = test_loop();

	for (unsigned int i = 0; i < 3; i++)
		make_batch(loop, nr, fd, batch);
	steps_begin();
	for (unsigned int i = 0; i < batches; i++)
		make_batch(loop, nr, fd, batch);
	steps_mark();
	CHECK_EQ(done, (3 + batches) * batch);
	CHECK_EQ(flexsc_loop_destroy(loop), 0);
}

static uint64_t instructions(unsigned int nr, int fd, unsigned int batch,
			     unsigned int batches)
{
	int child = test_fork();

	if (!child) {
		make_batches(nr, fd, batch, batches);
		test_leave();
	}
	return steps_of(child);
}

/* Results may come in two turns, so only one of three tries has to meet the bound. */
static void takes_at_most(uint64_t most, unsigned int nr, int fd,
			  unsigned int batch)
{
	for (unsigned int i = 0; i < 3; i++) {
		uint64_t one = instructions(nr, fd, batch, 1);
		uint64_t three = instructions(nr, fd, batch, 3);
		uint64_t n = (three - one) / (2 * batch);

		test_note("%u: %lu instructions, %u in a batch", nr,
			  (unsigned long)n, batch);
		if (three > one && n <= most)
			return;
	}
	CHECK(!"few instructions");
}

/* A program that uses io_uring directly takes 80. */
TEST_LIMIT(a_close_takes_few_instructions, 60)
{
	takes_at_most(140, SYS_close, -1, BATCH);
}

TEST_LIMIT(a_read_takes_few_instructions, 60)
{
	int fd = open("/dev/zero", O_RDONLY | O_CLOEXEC);

	CHECK(fd >= 0);
	takes_at_most(150, SYS_read, fd, BATCH);
}

/* One turn of a loop, with a single call in it. */
TEST_LIMIT(a_turn_takes_few_instructions, 60)
{
	takes_at_most(640, SYS_close, -1, 1);
}
