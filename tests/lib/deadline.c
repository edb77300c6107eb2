/* SPDX-License-Identifier: MIT */
/*
 * Deadlines: a call that isn't complete in time ends with -ETIME; no other call
 * does. The pairs (tests/lib/pairs) end each kind of call by a deadline.
 */
#include "tests/harness/harness.h"
#include "tests/lib/counted.h"

WAITING_TEST(a_call_that_is_late_ends_with_etime_and_not_early)
{
	struct reader r;
	uint64_t before;

	reader_open(&r);
	for (unsigned int ms = 1; ms <= 64; ms *= 2) {
		reader_post(&r);
		before = now_ns();
		CHECK_EQ(flexsc_loop_deadline(loop, &r.call.cb, ms * MS), 0);
		CHECK_EQ(await_call(loop, &r.call), -ETIME);
		CHECK(now_ns() - before >= ms * MS);
	}
	reader_feed(&r);
	reader_post(&r);
	CHECK_EQ(await_call(loop, &r.call), 1);
}

WAITING_TEST(a_deadline_is_replaced_by_the_next)
{
	struct reader r;

	reader_open(&r);
	reader_post(&r);
	CHECK_EQ(flexsc_loop_deadline(loop, &r.call.cb, 10 * MS), 0);
	CHECK_EQ(flexsc_loop_deadline(loop, &r.call.cb, 3600 * SECOND), 0);
	run_for(loop, 60);
	CHECK_EQ(r.call.runs, 0);
	CHECK_EQ(flexsc_loop_deadline(loop, &r.call.cb, 10 * MS), 0);
	CHECK_EQ(await_call(loop, &r.call), -ETIME);
}

WAITING_TEST(a_deadline_of_zero_removes_the_deadline)
{
	struct reader r;

	reader_open(&r);
	reader_post(&r);
	CHECK_EQ(flexsc_loop_deadline(loop, &r.call.cb, 0), 0);
	CHECK_EQ(flexsc_loop_deadline(loop, &r.call.cb, 10 * MS), 0);
	CHECK_EQ(flexsc_loop_deadline(loop, &r.call.cb, 0), 0);
	run_for(loop, 60);
	CHECK_EQ(r.call.runs, 0);
	reader_feed(&r);
	CHECK_EQ(await_call(loop, &r.call), 1);
}

/* The old deadline belongs to the earlier post, although the cb is the same. */
WAITING_TEST(a_deadline_ends_with_its_call)
{
	unsigned int ms = 150;
	struct reader r;

	reader_open(&r);
	/* On a busy machine the call may be late. The byte remains then. */
	do {
		reader_post(&r);
		CHECK_EQ(flexsc_loop_deadline(loop, &r.call.cb, ms * MS), 0);
		if (ms == 150)
			reader_feed(&r);
		ms *= 2;
	} while (await_call(loop, &r.call) == -ETIME);
	CHECK_EQ(r.call.cb.ret, 1);
	reader_post(&r);
	run_for(loop, ms);
	CHECK_EQ(r.call.runs, 0);
	reader_feed(&r);
	CHECK_EQ(await_call(loop, &r.call), 1);
}

LOOP_TEST(a_deadline_needs_a_pending_call)
{
	struct call call = CALL_INIT, timer = CALL_INIT;

	CHECK_EQ(flexsc_loop_deadline(loop, &call.cb, MS), -ENOENT);
	POST(loop, &call, SYS_getppid);
	CHECK_EQ(await_call(loop, &call), getppid());
	CHECK_EQ(flexsc_loop_deadline(loop, &call.cb, MS), -ENOENT);
	CHECK_EQ(flexsc_loop_timer(loop, &timer.cb, 20 * MS), 0);
	CHECK_EQ(flexsc_loop_deadline(loop, &timer.cb, MS), -ENOENT);
	CHECK_EQ(await_call(loop, &timer), 0);
}

LOOP_TEST(a_call_that_is_complete_in_time_has_its_result)
{
	for (unsigned int i = 0; i < 1000; i++) {
		struct call call = CALL_INIT;

		POST(loop, &call, SYS_getppid);
		CHECK_EQ(flexsc_loop_deadline(loop, &call.cb, 60 * SECOND), 0);
		CHECK_EQ(await_call(loop, &call), getppid());
	}
	CHECK_EQ(flexsc_loop_run(loop), 0);
}

WAITING_TEST(a_deadline_in_the_far_future_is_no_overflow)
{
	static const uint64_t far[] = { UINT64_MAX, UINT64_MAX - 1, INT64_MAX,
					1ULL << 62 };
	struct reader r;

	reader_open(&r);
	reader_post(&r);
	for (unsigned int i = 0; i < 4; i++) {
		CHECK_EQ(flexsc_loop_deadline(loop, &r.call.cb, far[i]), 0);
		run_for(loop, 10);
		CHECK_EQ(r.call.runs, 0);
	}
	reader_feed(&r);
	CHECK_EQ(await_call(loop, &r.call), 1);
}

WAITING_TEST(a_cancelled_call_is_not_late)
{
	struct reader r;

	reader_open(&r);
	reader_post(&r);
	run_for(loop, 10);
	CHECK_EQ(flexsc_loop_deadline(loop, &r.call.cb, 3600 * SECOND), 0);
	CHECK_EQ(flexsc_loop_cancel(loop, &r.call.cb), 0);
	CHECK(is_cancelled(await_call(loop, &r.call)));
}

WAITING_TEST(a_call_that_waits_for_another_has_a_deadline)
{
	struct call next = CALL_INIT;
	struct reader r;

	reader_open(&r);
	reader_post(&r);
	POST_AFTER(loop, &r.call, FLEXSC_CHAIN_ALWAYS, &next, SYS_getppid);
	CHECK_EQ(flexsc_loop_deadline(loop, &next.cb, 10 * MS), 0);
	CHECK_EQ(await_call(loop, &next), -ETIME);
	CHECK_EQ(r.call.runs, 0);
	reader_feed(&r);
	CHECK_EQ(await_call(loop, &r.call), 1);
}

/*
 * A deadline applies to the call, not to the wait for its predecessor. So the
 * deadline continues when the call starts.
 */
WAITING_TEST(a_deadline_outlives_the_wait_for_another_call)
{
	struct reader first, second;

	reader_open(&first);
	reader_open(&second);
	reader_post(&first);
	POST_AFTER(loop, &first.call, 0, &second.call, SYS_read, second.p[0],
		   &second.c, 1);
	CHECK_EQ(flexsc_loop_deadline(loop, &second.call.cb, 50 * MS), 0);
	reader_feed(&first);
	CHECK_EQ(await_call(loop, &first.call), 1);
	CHECK_EQ(await_call(loop, &second.call), -ETIME);
}

#define MANY_READS	2000

WAITING_TEST(many_deadlines_end_the_right_calls)
{
	static struct reader r[MANY_READS];

	for (unsigned int i = 0; i < MANY_READS; i++) {
		reader_open(&r[i]);
		reader_post(&r[i]);
		CHECK_EQ(flexsc_loop_deadline(loop, &r[i].call.cb,
			 i % 2 ? 3600 * SECOND : test_random() % (100 * MS) + 1),
			 0);
	}
	CHECK(run_until(loop, &done, MANY_READS / 2, 10000));
	for (unsigned int i = 0; i < MANY_READS; i++) {
		CHECK_EQ(r[i].call.runs, i % 2 == 0);
		CHECK_EQ(r[i].call.runs ? r[i].call.cb.ret : -ETIME, -ETIME);
	}
	for (unsigned int i = 1; i < MANY_READS; i += 2)
		reader_feed(&r[i]);
	CHECK(run_until(loop, &done, MANY_READS, 10000));
	for (unsigned int i = 1; i < MANY_READS; i += 2)
		CHECK_EQ(r[i].call.cb.ret, 1);
	CHECK_EQ(stats_of(loop).cancelled, MANY_READS / 2);
}
