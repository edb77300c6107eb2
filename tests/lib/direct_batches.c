/* SPDX-License-Identifier: MIT */
/*
 * Batches of direct calls (lib/loop/direct.h): more calls than a ring or a turn
 * takes, calls mixed with other ones, and calls beside others that change their
 * descriptors. Each engine has to pass.
 */
#include "known.h"

/* Many calls. */

#define MOST	5000U	/* more calls than a ring or a turn takes */

static struct call many[4 * MOST];

LOOP_TEST(more_calls_than_a_ring_takes_are_posted_at_once)
{
	struct call other = CALL_INIT;
	int p[2];

	known_pair(p);
	for (unsigned int round = 0; round < 4; round++) {
		init(many, MOST, count_call);
		for (unsigned int i = 0; i < MOST; i++) {
			POST(loop, &many[i], SYS_close, -1 - (int)(i % 7));
			if (i % 1000 == round)
				CHECK_EQ(flexsc_loop_submit(loop), 0);
		}
		POST(loop, &other, SYS_getppid);
		CHECK_EQ(flexsc_loop_run(loop), 0);
		check_each_once(many, MOST);
		for (unsigned int i = 0; i < MOST; i++)
			CHECK_EQ(many[i].cb.ret, -EBADF);
	}
	CHECK_EQ(other.runs, 4);
	CHECK_EQ(stats_of(loop).outstanding, 0);
}

/* More results arrive at once than the kernel's completion queue holds. */
WAITING_TEST_LIMIT(more_reads_wait_than_results_have_room, 60)
{
	unsigned int n = 4 * MOST;
	int p[2];

	known_pair(p);
	init(many, n, count_call);
	for (unsigned int i = 0; i < n; i += MOST) {
		post_reads(many + i, MOST, p[0]);
		CHECK_EQ(flexsc_loop_submit(loop), 0);
	}
	for (unsigned int i = 0; i < 16; i++)
		CHECK_EQ(flexsc_loop_cancel(loop, &many[i * 1000].cb), 0);
	/* A byte that arrives before the cancellation goes to the read. */
	CHECK(run_until(loop, &done, 16, 10000));
	feed(p[1], n - 16);
	CHECK_EQ(flexsc_loop_run(loop), 0);
	check_bytes(many, n, p[0], n - 16);
}

static unsigned int posted;

static void post_two(struct flexsc_cb *cb)
{
	struct call *call = (struct call *)cb;

	call->runs++;
	done++;
	for (unsigned int i = 0; i < 2 && posted < 4 * MOST; i++) {
		POST(loop, &many[posted], SYS_close, -1);
		posted++;
	}
	/* Some callbacks submit, whether there is room in the ring or not. */
	if (done % 777 == 0)
		CHECK_EQ(flexsc_loop_submit(loop), 0);
}

LOOP_TEST(callbacks_post_while_results_are_taken)
{
	init(many, 4 * MOST, post_two);
	posted = 700;
	for (unsigned int i = 0; i < posted; i++)
		POST(loop, &many[i], SYS_close, -1);
	CHECK_EQ(flexsc_loop_run(loop), 0);
	check_each_once(many, 4 * MOST);
}

static void post_many(struct flexsc_cb *cb)
{
	count_call(cb);
	for (; posted < MOST; posted++) {
		POST(loop, &many[posted], SYS_close, -1);
		if (posted % 1500 == 0)
			CHECK_EQ(flexsc_loop_submit(loop), 0);
	}
}

LOOP_TEST(one_callback_posts_more_than_a_ring_takes)
{
	init(many, MOST, post_many);
	posted = CALLS;
	for (unsigned int i = 0; i < posted; i++)
		POST(loop, &many[i], SYS_close, -1);
	CHECK_EQ(flexsc_loop_run(loop), 0);
	check_each_once(many, MOST);
}

static unsigned int ticks;

static void tick(struct flexsc_cb *cb)
{
	ticks++;
	flexsc_loop_stop(loop);
}

static void post_again(struct flexsc_cb *cb)
{
	done++;
	POST(loop, (struct call *)cb, SYS_close, -1);
}

/* An endless series of calls delays neither timers nor wake-ups. */
LOOP_TEST(a_timer_comes_among_calls_that_never_end)
{
	struct flexsc_cb timer = { .callback = tick }, wake = timer;

	init(many, MOST, post_again);
	for (unsigned int i = 0; i < MOST; i++)
		POST(loop, &many[i], SYS_close, -1);
	CHECK(run_until(loop, &done, 1, 10000));
	CHECK_EQ(flexsc_loop_timer(loop, &timer, 5 * MS), 0);
	CHECK_EQ(flexsc_loop_run(loop), 0);
	CHECK_EQ(ticks, 1);
	CHECK_EQ(flexsc_loop_wake(loop, &wake), 0);
	CHECK_EQ(flexsc_loop_run(loop), 0);
	CHECK_EQ(ticks, 2);
	for (unsigned int i = 0; i < MOST; i++)
		many[i].cb.callback = count_call;
	CHECK_EQ(flexsc_loop_run(loop), 0);
	CHECK_EQ(stats_of(loop).outstanding, 0);
}

/* Calls that io_uring must not get because of an earlier call in the batch. */

/*
 * Each engine may order two calls of a batch as it likes. Does this one keep their
 * order?
 */
static bool keeps_order(void)
{
	return !strcmp(test_engine(), "uring") ||
	       !strcmp(test_engine(), "sync");
}

/* The uring engine makes this change before the other calls of the batch. */
LOOP_TEST(a_read_posted_after_o_nonblock_does_not_wait)
{
	struct call calls[2];
	int p[2];
	char c;

	if (!keeps_order())
		SKIP("the engine runs two calls of a batch in any order");
	known_pair(p);
	init(calls, 2, count_call);
	CHECK_EQ(flexsc__call3(loop, &calls[0].cb, SYS_fcntl,
				   (uint64_t)p[0], F_SETFL,
				   O_RDWR | O_NONBLOCK), 0);
	POST(loop, &calls[1], SYS_read, p[0], &c, 1);
	CHECK_EQ(flexsc_loop_run(loop), 0);
	check_each_once(calls, 2);
	CHECK_EQ(calls[1].cb.ret, -EAGAIN);
}

#define LONG	1000000U

/* A write that has begun continues with a duplicate. */
WAITING_TEST(a_close_in_the_batch_of_a_long_write_takes_nothing_away)
{
	static char bytes[LONG];
	struct iovec all = { bytes, LONG };
	struct call calls[2];
	int p[2];
	unsigned int got = 0;

	if (!keeps_order())
		SKIP("the engine runs two calls of a batch in any order");
	known_pair(p);
	CHECK_EQ(DO(loop, SYS_write, p[1], "w", 1), 1);
	CHECK_EQ(left(p[0]), 1);
	init(calls, 2, count_call);
	POST(loop, &calls[0], SYS_writev, p[1], &all, 1);
	POST(loop, &calls[1], SYS_close, p[1]);
	for (unsigned int i = 0; i < 10000 && done < 2; i++) {
		CHECK(flexsc_loop_dispatch(loop) >= 0);
		got += left(p[0]);
		flexsc_loop_wait(loop, MS);
	}
	check_each_once(calls, 2);
	CHECK_EQ(calls[0].cb.ret, LONG);
	CHECK_EQ(calls[1].cb.ret, 0);
	CHECK_EQ(got + left(p[0]), LONG);
	CHECK_EQ(fcntl(p[1], F_GETFD), -1);
}

LOOP_TEST(a_mixed_batch_gives_each_call_its_own_result)
{
	char bytes[CALLS];
	int p[2];

	known_pair(p);
	for (unsigned int round = 0; round < 50; round++) {
		init(many, 5 * CALLS, count_call);
		feed(p[1], 3 * CALLS);
		for (unsigned int i = 0; i < CALLS; i++) {
			struct call *c = &many[5 * i];

			POST(loop, &c[0], SYS_close, -1);
			POST(loop, &c[1], SYS_read, p[0], &bytes[i], 1);
			POST(loop, &c[2], SYS_recvfrom, p[0], &bytes[i], 2);
			POST(loop, &c[3], SYS_fsync, p[0]);
			POST(loop, &c[4], SYS_getppid);
			if (i % 9 == 0)
				CHECK_EQ(flexsc_loop_cancel(loop, &c[3].cb), 0);
		}
		CHECK_EQ(flexsc_loop_run(loop), 0);
		check_each_once(many, 5 * CALLS);
		for (unsigned int i = 0; i < CALLS; i++) {
			const struct call *c = &many[5 * i];

			CHECK_EQ(c[0].cb.ret, -EBADF);
			CHECK_EQ(c[1].cb.ret, 1);
			CHECK(c[2].cb.ret == 2 || c[2].cb.ret == 1);
			CHECK_EQ(c[3].cb.ret, i % 9 ? -EINVAL : -ECANCELED);
			CHECK_EQ(c[4].cb.ret, getppid());
		}
		left(p[0]);
	}
}

LOOP_TEST(known_calls_are_counted)
{
	struct flexsc_stats before, after;
	struct call calls[CALLS];
	bool uring = !strcmp(test_engine(), "uring");

	CHECK_EQ(DO(loop, SYS_close, -1), -EBADF);
	before = stats_of(loop);
	init(calls, CALLS, count_call);
	for (unsigned int i = 0; i < CALLS; i++)
		POST(loop, &calls[i], SYS_close, -1);
	CHECK_EQ(stats_of(loop).outstanding, CALLS);
	CHECK_EQ(flexsc_loop_cancel(loop, &calls[5].cb), 0);
	CHECK_EQ(flexsc_loop_run(loop), 0);
	after = stats_of(loop);
	CHECK_EQ(after.posted - before.posted, CALLS);
	CHECK_EQ(after.completed - before.completed, CALLS);
	CHECK_EQ(after.cancelled - before.cancelled, 1);
	CHECK_EQ(after.batches - before.batches, 1);
	CHECK_EQ(after.batched - before.batched, CALLS);
	if (uring)
		CHECK_EQ(after.by_uring - before.by_uring, CALLS - 1);
	CHECK_EQ(after.outstanding, 0);
}
