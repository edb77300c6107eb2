/* SPDX-License-Identifier: MIT */
/*
 * Direct calls (lib/loop/direct.h) in each of their states: not submitted, in the
 * kernel, and complete but not dispatched. Each engine has to pass, with and without
 * such calls.
 */
#include "known.h"
/* The harness uses these names, too. */
#define call loop_call
#define call_done loop_call_done
#include "lib/engine/uring.h"
#undef call
#undef call_done

/* Cancellation. */

LOOP_TEST(a_known_read_cancelled_before_it_starts_reads_nothing)
{
	struct call calls[CALLS];
	int p[2];

	known_pair(p);
	feed(p[1], CALLS);
	init(calls, CALLS, count_call);
	post_reads(calls, CALLS, p[0]);
	for (unsigned int i = 0; i < CALLS; i += 2)
		CHECK_EQ(flexsc_loop_cancel(loop, &calls[i].cb), 0);
	CHECK_EQ(flexsc_loop_cancel(loop, &calls[0].cb), -ENOENT);
	CHECK_EQ(flexsc_loop_run(loop), 0);
	for (unsigned int i = 0; i < CALLS; i++)
		CHECK_EQ(calls[i].cb.ret, i % 2 ? 1 : -ECANCELED);
	check_bytes(calls, CALLS, p[0], CALLS);
	CHECK_EQ(stats_of(loop).cancelled, CALLS / 2);
	CHECK_EQ(stats_of(loop).outstanding, 0);
}

LOOP_TEST(a_close_cancelled_before_it_starts_closes_nothing)
{
	struct call calls[2];
	int p[2];

	known_pair(p);
	init(calls, 2, count_call);
	POST(loop, &calls[0], SYS_close, p[0]);
	POST(loop, &calls[1], SYS_close, p[1]);
	CHECK_EQ(flexsc_loop_cancel_fd(loop, p[0]), 1);
	CHECK_EQ(flexsc_loop_run(loop), 0);
	check_each_once(calls, 2);
	CHECK_EQ(calls[0].cb.ret, -ECANCELED);
	CHECK_EQ(calls[1].cb.ret, 0);
	CHECK(fcntl(p[0], F_GETFD) >= 0);
	CHECK_EQ(fcntl(p[1], F_GETFD), -1);
}

/* The program may reuse a cb as soon as its callback has run. */
LOOP_TEST(a_cb_may_be_posted_again_right_after_its_cancellation)
{
	struct call calls[2];
	int p[2];

	known_pair(p);
	feed(p[1], 2);
	init(calls, 2, count_call);
	post_reads(calls, 2, p[0]);
	CHECK_EQ(flexsc_loop_cancel(loop, &calls[1].cb), 0);
	CHECK(flexsc_loop_dispatch(loop) > 0);
	CHECK_EQ(calls[1].runs, 1);
	post_reads(&calls[1], 1, p[0]);
	CHECK_EQ(flexsc_loop_run(loop), 0);
	CHECK_EQ(calls[1].runs, 2);
	CHECK_EQ(calls[1].cb.ret, 1);
	CHECK_EQ(done, 3);
}

WAITING_TEST(known_reads_that_wait_are_cancelled)
{
	struct call calls[CALLS];
	int p[2];

	known_pair(p);
	init(calls, CALLS, count_call);
	post_reads(calls, CALLS, p[0]);
	run_for(loop, 20);
	for (unsigned int i = 0; i < CALLS / 2; i++)
		CHECK_EQ(flexsc_loop_cancel(loop, &calls[i].cb), 0);
	CHECK(run_until(loop, &done, CALLS / 2, 5000));
	CHECK_EQ(flexsc_loop_cancel_fd(loop, p[0]), CALLS / 2);
	CHECK_EQ(flexsc_loop_cancel_fd(loop, p[0]), 0);
	CHECK_EQ(flexsc_loop_run(loop), 0);
	check_bytes(calls, CALLS, p[0], 0);
	CHECK_EQ(stats_of(loop).cancelled, CALLS);
}

static struct call *the_calls;

static void cancel_all(struct flexsc_cb *cb)
{
	count_call(cb);
	for (unsigned int i = 0; done == 1 && i < CALLS; i++)
		flexsc_loop_cancel(loop, &the_calls[i].cb);
}

/* Some of them are complete by then, but not dispatched. */
LOOP_TEST(a_callback_cancels_the_rest_of_its_batch)
{
	struct call calls[CALLS];
	int p[2];

	known_pair(p);
	feed(p[1], CALLS);
	init(calls, CALLS, cancel_all);
	the_calls = calls;
	post_reads(calls, CALLS, p[0]);
	CHECK_EQ(flexsc_loop_run(loop), 0);
	check_bytes(calls, CALLS, p[0], CALLS);
}

static int the_fd, cancelled;

static void cancel_fd(struct flexsc_cb *cb)
{
	count_call(cb);
	if (done == 1)
		cancelled = flexsc_loop_cancel_fd(loop, the_fd);
}

/* A complete call isn't pending, so flexsc_loop_cancel_fd() doesn't count it. */
LOOP_TEST(a_callback_cancels_the_other_calls_on_a_descriptor)
{
	struct call calls[CALLS];
	int64_t ended = 0;
	int p[2];

	known_pair(p);
	feed(p[1], CALLS / 2);
	if (!strcmp(test_engine(), "sync"))
		feed(p[1], CALLS / 2);
	init(calls, CALLS, cancel_fd);
	the_fd = p[0];
	post_reads(calls, CALLS, p[0]);
	CHECK_EQ(flexsc_loop_run(loop), 0);
	for (unsigned int i = 0; i < CALLS; i++)
		ended += is_cancelled(calls[i].cb.ret);
	CHECK(cancelled >= ended);
	/*
	 * A call that completes while it is being cancelled counts as cancelled, and
	 * has a result. With uring, and without a polling thread, no call does.
	 */
	if (!strcmp(test_engine(), "uring") && !getenv("FLEXSC_TEST_SQPOLL"))
		CHECK_EQ(cancelled, CALLS / 2);
	check_each_once(calls, CALLS);
}

/* The end of a loop, and stops. */

WAITING_TEST(a_loop_is_destroyed_with_calls_in_each_state)
{
	struct call calls[3 * CALLS];
	int p[2], q[2];

	known_pair(p);
	known_pair(q);
	init(calls, 3 * CALLS, count_call);
	/* Reads in the kernel, complete reads, and reads that aren't submitted. */
	post_reads(calls, CALLS, p[0]);
	feed(q[1], CALLS);
	post_reads(calls + CALLS, CALLS, q[0]);
	CHECK_EQ(flexsc_loop_submit(loop), 0);
	CHECK_EQ(flexsc_loop_wait(loop, 3600 * SECOND), 1);
	post_reads(calls + 2 * CALLS, CALLS, p[0]);
	CHECK_EQ(done, 0);
	test_end_loop();
	check_each_once(calls, 3 * CALLS);
	for (unsigned int i = 0; i < 3 * CALLS; i++)
		CHECK(i / CALLS == 1 ? calls[i].cb.ret == 1 ||
					       is_cancelled(calls[i].cb.ret) :
				       is_cancelled(calls[i].cb.ret));
}

static void stop_at_ten(struct flexsc_cb *cb)
{
	count_call(cb);
	if (done == 10)
		CHECK_EQ(flexsc_loop_stop(loop), 0);
}

LOOP_TEST(calls_that_a_stop_leaves_complete_in_the_next_run)
{
	struct call calls[CALLS];

	init(calls, CALLS, stop_at_ten);
	for (unsigned int i = 0; i < CALLS; i++)
		POST(loop, &calls[i], SYS_close, -1);
	CHECK_EQ(flexsc_loop_run(loop), 0);
	CHECK_EQ(done, 10);
	CHECK_EQ(stats_of(loop).outstanding, CALLS - 10);
	/* A wait reports them, too. */
	CHECK_EQ(flexsc_loop_wait(loop, 3600 * SECOND), 1);
	CHECK_EQ(done, 10);
	CHECK_EQ(flexsc_loop_run(loop), 0);
	check_each_once(calls, CALLS);
	for (unsigned int i = 0; i < CALLS; i++)
		CHECK_EQ(calls[i].cb.ret, -EBADF);
}

WAITING_TEST(a_wait_that_finds_no_call_returns_0)
{
	struct call calls[1];
	int p[2];

	known_pair(p);
	init(calls, 1, count_call);
	post_reads(calls, 1, p[0]);
	CHECK_EQ(flexsc_loop_wait(loop, 10 * MS), 0);
	feed(p[1], 1);
	CHECK_EQ(flexsc_loop_wait(loop, 3600 * SECOND), 1);
	CHECK_EQ(done, 0);
	CHECK_EQ(flexsc_loop_dispatch(loop), 1);
	check_each_once(calls, 1);
	CHECK_EQ(flexsc_loop_wait(loop, 0), 0);
}

LOOP_TEST(a_forked_child_leaves_its_parents_calls_alone)
{
	struct call calls[CALLS], other = CALL_INIT;
	int child, p[2];

	known_pair(p);
	feed(p[1], CALLS);
	init(calls, CALLS, count_call);
	post_reads(calls, CALLS, p[0]);
	child = test_fork();
	if (!child) {
		CHECK_EQ(flexsc_loop_call(loop, &other.cb,
					  ARGS(SYS_close, -1)), -ESTALE);
		CHECK_EQ(flexsc_loop_cancel(loop, &calls[0].cb), -ESTALE);
		test_end_loop();
		CHECK_EQ(done, 0);
		test_leave();
	}
	test_reap(child);
	CHECK_EQ(flexsc_loop_run(loop), 0);
	check_bytes(calls, CALLS, p[0], CALLS);
}

WAITING_TEST(deadlines_end_known_reads)
{
	struct call calls[CALLS];
	int p[2];

	known_pair(p);
	init(calls, CALLS, count_call);
	post_reads(calls, CALLS, p[0]);
	for (unsigned int i = 0; i < CALLS; i++)
		CHECK_EQ(flexsc_loop_deadline(loop, &calls[i].cb,
					      i % 2 ? 20 * MS : 100 * SECOND),
			 0);
	CHECK(run_until(loop, &done, CALLS / 2, 5000));
	feed(p[1], CALLS / 2);
	CHECK_EQ(flexsc_loop_run(loop), 0);
	check_each_once(calls, CALLS);
	for (unsigned int i = 0; i < CALLS; i++)
		CHECK_EQ(calls[i].cb.ret, i % 2 ? -ETIME : 1);
}

LOOP_TEST(chains_follow_known_calls)
{
	struct call calls[4];
	int p[2];

	known_pair(p);
	feed(p[1], 1);
	init(calls, 4, count_call);
	post_reads(calls, 1, p[0]);
	POST_AFTER(loop, &calls[0], FLEXSC_CHAIN_ARG(0), &calls[1], SYS_dup, -1);
	POST(loop, &calls[2], SYS_close, -1);
	POST_AFTER(loop, &calls[2], 0, &calls[3], SYS_getppid);
	CHECK_EQ(flexsc_loop_run(loop), 0);
	check_each_once(calls, 4);
	CHECK_EQ(calls[0].cb.ret, 1);
	CHECK(calls[1].cb.ret > 1);	/* descriptor 1 was duplicated */
	CHECK_EQ(calls[2].cb.ret, -EBADF);
	CHECK_EQ(calls[3].cb.ret, -ECANCELED);
	/* A complete call can't be followed. */
	CHECK_EQ(flexsc_loop_getppid_after(loop, &calls[3].cb, &calls[0].cb, 0),
		 -ENOENT);
}

#ifndef IORING_NOP_INJECT_RESULT
#define IORING_NOP_INJECT_RESULT	1
#endif

/* Makes the kernel return this result instead of executing the newest request. */
static void inject(int32_t res)
{
	const struct ring *ring = &uring_of(loop)->ring;
	struct io_uring_sqe *sqe = &ring->sqes[(ring->tail - 1) & ring->mask];
	const uint64_t name = sqe->user_data;

	io_uring_prep_nop(sqe);
	sqe->user_data = name;
	sqe->len = (uint32_t)res;
	sqe->rw_flags = IORING_NOP_INJECT_RESULT;
}

/* The kernel's internal codes -ERESTARTSYS to -ERESTART_RESTARTBLOCK are 512 to 516. */
LOOP_TEST(a_code_for_restarting_is_an_interruption)
{
	struct call call;
	int p[2];

	if (strcmp(test_engine(), "uring") != 0)
		SKIP("only io_uring returns the kernel's internal codes");
	known_pair(p);
	for (int code = 511; code <= 517; code++) {
		init(&call, 1, count_call);
		post_reads(&call, 1, p[0]);
		inject(-code);
		CHECK_EQ(flexsc_loop_run(loop), 0);
		check_each_once(&call, 1);
		if (!call.cb.ret)
			SKIP("Linux before 6.10 can't inject results");
		CHECK_EQ(call.cb.ret, code == 511 || code == 517 ? -code : -EINTR);
	}
}
