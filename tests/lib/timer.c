/* SPDX-License-Identifier: MIT */
/*
 * Timers never expire early, expire in order, and are cheap by the hundred thousand.
 * The machine may pause at any time, so a single late expiry isn't an error.
 * tests/lib/unit/timer.c bounds lateness, with a simulated clock. Here only
 * timers_of_every_length_are_punctual does.
 */
#include "tests/harness/harness.h"

struct timed {
	struct call call;	/* first: timer_done() finds it here */
	uint64_t due;		/* the earliest time */
	uint64_t due_by;
	uint64_t late;
};

static unsigned int done, early;

static void timer_done(struct flexsc_cb *cb)
{
	struct timed *timed = (struct timed *)cb;
	uint64_t now = now_ns();

	timed->call.runs++;
	done++;
	early += cb->ret == 0 && now < timed->due;
	timed->late = now - timed->due;
}

static void arm(struct timed *timed, uint64_t ns)
{
	timed->call.cb.callback = timer_done;
	timed->due = now_ns() + ns;
	CHECK_EQ(flexsc_loop_timer(loop, &timed->call.cb, ns), 0);
	timed->due_by = now_ns() + ns;
}

LOOP_TEST(timers_fire_once_in_order_and_not_early)
{
	static struct timed timers[100];
	uint64_t before = now_ns();

	for (unsigned int i = 0; i < 100; i++)
		arm(&timers[i * 37 % 100], (i * 37 % 100) * MS);
	for (unsigned int i = 0; i < 100; i++) {
		CHECK_EQ(await_call(loop, &timers[i].call), 0);
		for (unsigned int k = i + 1; k < 100; k++)
			if (timers[k].call.runs)
				CHECK(now_ns() >= timers[k].due);
	}
	CHECK(now_ns() - before >= 99 * MS);
	CHECK_EQ(early, 0);
}

static uint64_t newest_due;

/* Expiries are in the order of their times, to the millisecond. */
static void check_order(struct flexsc_cb *cb)
{
	const struct timed *timed = (const struct timed *)cb;

	CHECK(timed->due_by + MS >= newest_due);
	newest_due = timed->due;
	done++;
}

/* The loop runs late, when all of them are due. */
LOOP_TEST(timers_that_are_due_together_keep_their_order)
{
	static struct timed timers[200];

	for (unsigned int i = 200; i-- > 0;) {
		arm(&timers[i], (i + 1) * 2 * MS);
		timers[i].call.cb.callback = check_order;
	}
	sleep_ms(410);
	CHECK(run_until(loop, &done, 200, 5000));
}

LOOP_TEST(a_timer_of_zero_fires_at_once_but_not_inside)
{
	struct timed timed = { .due = 0 };

	arm(&timed, 0);
	CHECK_EQ(timed.call.runs, 0);
	CHECK_EQ(await_call(loop, &timed.call), 0);
}

#define LENGTHS		200

/* Arms a timer of every length below a second. Returns how many have expired. */
static unsigned int fire_every_length(struct timed *timers)
{
	unsigned int n = 0;

	for (uint64_t ns = 1; ns < SECOND; ns += ns / 8 + 1, n++)
		arm(&timers[n], ns);
	CHECK(n <= LENGTHS);
	CHECK_EQ(flexsc_loop_run(loop), 0);
	return n;
}

static bool were_punctual(const struct timed *timers, unsigned int n)
{
	for (unsigned int i = 0; i < n; i++)
		if (timers[i].late >= SECOND)
			return false;
	return true;
}

/*
 * A length that the wheel handles wrongly is late in every round. A pause of the
 * machine delays the timers of one round only.
 */
LOOP_TEST(timers_of_every_length_are_punctual)
{
	static struct timed timers[LENGTHS];
	unsigned int n;

	do
		n = fire_every_length(timers);
	while (!were_punctual(timers, n));
	CHECK_EQ(done % n, 0);
	CHECK_EQ(early, 0);
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

