/* SPDX-License-Identifier: MIT */
/*
 * Timers of a loop never expire early, and are cheap by the hundred thousand. The
 * machine may pause at any time, so a late expiry isn't an error here.
 * tests/lib/unit/timer.c checks the order and the lateness of timers of every length,
 * with a simulated clock.
 */
#include "tests/harness/harness.h"

struct timed {
	struct call call;	/* first: timer_done() finds it here */
	uint64_t due;		/* the earliest time */
};

static unsigned int done, early;

static void timer_done(struct flexsc_cb *cb)
{
	struct timed *timed = (struct timed *)cb;
	uint64_t now = now_ns();

	timed->call.runs++;
	done++;
	early += cb->ret == 0 && now < timed->due;
}

static void arm(struct timed *timed, uint64_t ns)
{
	timed->call.cb.callback = timer_done;
	timed->due = now_ns() + ns;
	CHECK_EQ(flexsc_loop_timer(loop, &timed->call.cb, ns), 0);
}

LOOP_TEST(a_timer_of_zero_fires_at_once_but_not_inside)
{
	struct timed timed = { .due = 0 };

	arm(&timed, 0);
	CHECK_EQ(timed.call.runs, 0);
	CHECK_EQ(await_call(loop, &timed.call), 0);
}

LOOP_TEST(a_timer_in_the_far_future_is_no_overflow)
{
	static const uint64_t far[] = { UINT64_MAX, UINT64_MAX - 1, INT64_MAX,
		(uint64_t)INT64_MAX + 1, 1ULL << 62, 1ULL << 53, 1ULL << 44 };
	struct timed timers[7], near = { .due = 0 };

	for (unsigned int i = 0; i < 7; i++) {
		timers[i] = (struct timed){ .due = 0 };
		arm(&timers[i], far[i]);
	}
	arm(&near, 20 * MS);
	CHECK_EQ(await_call(loop, &near.call), 0);
	run_for(loop, 50);
	CHECK_EQ(done, 1);
	for (unsigned int i = 0; i < 7; i++) {
		CHECK_EQ(flexsc_loop_cancel(loop, &timers[i].call.cb), 0);
		CHECK_EQ(await_call(loop, &timers[i].call), -ECANCELED);
	}
}

#define HUNDRED_THOUSAND	MANY(100000)

LOOP_TEST_LIMIT(a_hundred_thousand_timers_fire_once_each, 40)
{
	struct timed *timers = calloc(HUNDRED_THOUSAND, sizeof(*timers));

	CHECK(timers);
	for (unsigned int i = 0; i < HUNDRED_THOUSAND; i++)
		arm(&timers[i], test_random() % (500 * MS) + 100 * MS);
	for (unsigned int i = 0; i < HUNDRED_THOUSAND; i += 3) {
		int ret = flexsc_loop_cancel(loop, &timers[i].call.cb);

		CHECK_EQ(ret, 0);
	}
	CHECK(run_until(loop, &done, HUNDRED_THOUSAND, 20000));
	CHECK_EQ(flexsc_loop_run(loop), 0);
	CHECK_EQ(done, HUNDRED_THOUSAND);
	CHECK_EQ(early, 0);
	for (unsigned int i = 0; i < HUNDRED_THOUSAND; i++) {
		CHECK_EQ(timers[i].call.runs, 1);
		CHECK_EQ(timers[i].call.cb.ret, i % 3 ? 0 : -ECANCELED);
	}
	CHECK_EQ(stats_of(loop).timers, HUNDRED_THOUSAND);
	test_end_loop();
	free(timers);
}

static void rearm(struct flexsc_cb *cb)
{
	struct timed *timed = (struct timed *)cb;

	CHECK_EQ(cb->ret, 0);
	CHECK(now_ns() >= timed->due);
	if (++done == 100)
		return;
	timed->due = now_ns() + MS;
	CHECK_EQ(flexsc_loop_timer(loop, cb, MS), 0);
}

LOOP_TEST(a_timer_is_armed_again_in_its_callback)
{
	struct timed timed = { .call = { .cb = { .callback = rearm } } };

	CHECK_EQ(flexsc_loop_timer(loop, &timed.call.cb, MS), 0);
	CHECK_EQ(flexsc_loop_run(loop), 0);
	CHECK_EQ(done, 100);
}

/* Meanwhile the wheel stood still. It must not run timers that aren't due yet. */
LOOP_TEST(a_timer_armed_after_a_long_pause_is_not_early)
{
	struct timed a = { .due = 0 }, b = { .due = 0 };

	arm(&a, MS);
	CHECK_EQ(await_call(loop, &a.call), 0);
	sleep_ms(500);
	arm(&b, 100 * MS);
	run_for(loop, 50);
	CHECK_EQ(await_call(loop, &b.call), 0);
	CHECK_EQ(early, 0);
}

WAITING_TEST(a_timer_wakes_a_loop_that_waits_for_a_call)
{
	struct call call = CALL_INIT;
	struct timed timed = { .due = 0 };
	char c;
	int p[2];

	CHECK_EQ(pipe(p), 0);
	POST(loop, &call, SYS_read, p[0], &c, 1);
	arm(&timed, 50 * MS);
	CHECK_EQ(await_call(loop, &timed.call), 0);
	CHECK_EQ(early, 0);
	CHECK_EQ(call.runs, 0);
	test_end_loop();
}

/* A pending timer is posted again. */

static struct timed second;

LOOP_TEST(a_pending_timer_that_is_posted_again_is_replaced)
{
	struct timed later = { .due = 0 }, sooner = { .due = 0 };

	arm(&later, MS);
	arm(&later, 3600 * SECOND);
	arm(&later, 50 * MS);
	arm(&sooner, 3600 * SECOND);
	arm(&sooner, MS);
	CHECK_EQ(flexsc_loop_run(loop), 0);
	CHECK_EQ(early, 0);
	CHECK_EQ(later.call.runs, 1);
	CHECK_EQ(sooner.call.runs, 1);
	CHECK_EQ(stats_of(loop).timers, 5);
}

LOOP_TEST(a_replaced_timer_can_be_cancelled_and_ends_with_the_loop)
{
	struct timed cancelled = { .due = 0 }, left = { .due = 0 };

	for (unsigned int i = 0; i < 10; i++) {
		arm(&cancelled, (i + 1) * MS);
		arm(&left, 3600 * SECOND);
	}
	CHECK_EQ(flexsc_loop_cancel(loop, &cancelled.call.cb), 0);
	CHECK_EQ(await_call(loop, &cancelled.call), -ECANCELED);
	run_for(loop, 30);
	CHECK_EQ(done, 1);
	test_end_loop();
	CHECK_EQ(left.call.runs, 1);
	CHECK_EQ(left.call.cb.ret, -ECANCELED);
}

static void put_off_second(struct flexsc_cb *cb)
{
	call_done(cb);
	if (!second.call.runs)
		arm(&second, 30 * MS);
}

/* Both timers are due at the same time, and the first one's callback runs first. */
LOOP_TEST(a_due_timer_can_be_replaced_until_its_callback)
{
	struct call first = { .cb = { .callback = put_off_second } };

	CHECK_EQ(flexsc_loop_timer(loop, &first.cb, MS), 0);
	arm(&second, MS);
	sleep_ms(5);
	CHECK_EQ(await_call(loop, &first), 0);
	CHECK_EQ(second.call.runs, 0);
	CHECK_EQ(flexsc_loop_run(loop), 0);
	CHECK_EQ(second.call.runs, 1);
	CHECK_EQ(early, 0);
}

static void cancel_second(struct flexsc_cb *cb)
{
	call_done(cb);
	CHECK_EQ(flexsc_loop_cancel(loop, &second.call.cb), 0);
	CHECK_EQ(flexsc_loop_cancel(loop, &second.call.cb), -ENOENT);
}

LOOP_TEST(a_due_timer_can_be_cancelled_until_its_callback)
{
	struct call first = { .cb = { .callback = cancel_second } };

	CHECK_EQ(flexsc_loop_timer(loop, &first.cb, MS), 0);
	arm(&second, MS);
	sleep_ms(5);
	CHECK_EQ(flexsc_loop_run(loop), 0);
	CHECK_EQ(second.call.runs, 1);
	CHECK_EQ(second.call.cb.ret, -ECANCELED);
}

#define IDLE	100

/* A server does this with its clients' idle time limits. */
LOOP_TEST(timers_that_are_put_off_at_random_fire_once_each)
{
	static struct timed timers[IDLE];

	for (unsigned int i = 0; i < MANY(20000); i++) {
		unsigned int n = (unsigned int)(test_random() % IDLE);

		if (timers[n].call.runs)
			continue;
		arm(&timers[n], test_random() % (20 * MS));
		if (i % 16 == 0)
			CHECK(flexsc_loop_dispatch(loop) >= 0);
	}
	for (unsigned int i = 0; i < IDLE; i++)
		if (!timers[i].call.runs)
			arm(&timers[i], test_random() % (20 * MS));
	CHECK_EQ(flexsc_loop_run(loop), 0);
	for (unsigned int i = 0; i < IDLE; i++)
		CHECK_EQ(timers[i].call.runs, 1);
	CHECK_EQ(early, 0);
}

