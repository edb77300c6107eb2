/* SPDX-License-Identifier: MIT */
/*
 * flexsc_loop_harvest() returns completed cbs as an array: each cb once, with its
 * result, and without running callbacks.
 */
#include "tests/harness/harness.h"

#define SOME	64U

static struct flexsc_cb *done[SOME];

static void never(struct flexsc_cb *cb)
{
	(void)cb;
	CHECK(!"called back");
}

/* Harvests n cbs into "done", "room" at a time. */
static void harvest(unsigned int n, unsigned int room)
{
	unsigned int had = 0;

	while (had < n) {
		int got = flexsc_loop_harvest(loop, done + had,
					      room < n - had ? room : n - had);

		CHECK(got >= 0 && (unsigned int)got <= room);
		for (int i = 0; i < got; i++)
			CHECK_EQ(done[had + (unsigned int)i]->flags, 0);
		had += (unsigned int)got;
		if (!got)
			CHECK(flexsc_loop_wait(loop, FLEXSC_FOREVER) >= 0);
	}
	CHECK_EQ(had, n);
}

LOOP_TEST(each_kind_of_cb_is_harvested)
{
	struct flexsc_cb call = { .callback = never }, timer = call,
			 signal_cb = call, wake = call;
	unsigned int seen = 0;

	CHECK_EQ(flexsc_loop_getppid(loop, &call), 0);
	CHECK_EQ(flexsc_loop_timer(loop, &timer, MS), 0);
	CHECK_EQ(flexsc_loop_signal(loop, &signal_cb, SIGUSR1), 0);
	CHECK_EQ(flexsc_loop_wake(loop, &wake), 0);
	CHECK_EQ(raise(SIGUSR1), 0);
	harvest(4, SOME);
	for (unsigned int i = 0; i < 4; i++)
		seen |= 1U << (done[i] == &call	       ? 0 :
			       done[i] == &timer     ? 1 :
			       done[i] == &signal_cb ? 2 :
						       3);
	CHECK_EQ(seen, 15);
	CHECK_EQ(call.ret, getppid());
	CHECK_EQ(timer.ret, 0);
	CHECK_EQ(signal_cb.ret, SIGUSR1);
	CHECK_EQ(wake.ret, 0);
	CHECK_EQ(flexsc_loop_harvest(loop, done, SOME), 0);
	CHECK_EQ(flexsc_loop_run(loop), 0);
}

LOOP_TEST(no_more_than_asked_for_and_the_oldest_first)
{
	struct flexsc_cb cbs[10];

	for (unsigned int i = 0; i < 10; i++) {
		cbs[i] = (struct flexsc_cb){ .callback = never };
		CHECK_EQ(flexsc_loop_wake(loop, &cbs[i]), 0);
	}
	CHECK_EQ(flexsc_loop_harvest(loop, NULL, 0), 0);
	harvest(10, 3);
	for (unsigned int i = 0; i < 10; i++)
		CHECK(done[i] == &cbs[i]);
	CHECK_EQ(flexsc_loop_harvest(loop, done, SOME), 0);
}

LOOP_TEST(calls_come_out_once_each)
{
	struct call calls[SOME];

	for (unsigned int i = 0; i < SOME; i++) {
		calls[i] = (struct call){ .cb = { .callback = never } };
		POST(loop, &calls[i], SYS_getppid);
	}
	harvest(SOME, 5);
	for (unsigned int i = 0; i < SOME; i++)
		CHECK_EQ(calls[i].cb.ret, getppid());
	CHECK_EQ(stats_of(loop).outstanding, 0);
}

static void count_run(struct flexsc_cb *cb)
{
	CHECK_EQ(cb->flags, 0);
	((struct call *)cb)->runs++;
}

LOOP_TEST(a_call_without_cb_is_consumed)
{
	for (unsigned int i = 0; i < 3000; i++)
		CHECK_EQ(flexsc_loop_getppid(loop, NULL), 0);
	while (stats_of(loop).outstanding)
		CHECK_EQ(flexsc_loop_harvest(loop, done, SOME), 0);
	CHECK_EQ(stats_of(loop).completed, 3000);
}

static void harvest_inside(struct flexsc_cb *cb)
{
	CHECK_EQ(flexsc_loop_harvest(loop, done, SOME), -EDEADLK);
	count_run(cb);
}

TEST(misuse_is_refused)
{
	struct call call = { .cb = { .callback = harvest_inside } };
	int pid;

	CHECK_EQ(flexsc_loop_harvest(NULL, done, SOME), -ENXIO);
	loop = test_loop();
	CHECK_EQ(flexsc_loop_harvest(loop, NULL, 1), -EINVAL);
	CHECK_EQ(flexsc_loop_harvest(loop, done, ~0U), -EINVAL);
	POST(loop, &call, SYS_getppid);
	CHECK(run_until(loop, &call.runs, 1, 10000));
	pid = test_fork();
	if (!pid) {
		CHECK_EQ(flexsc_loop_harvest(loop, done, SOME), -ESTALE);
		test_leave();
	}
	test_reap(pid);
}

/* Calls don't delay timers, and timers don't delay calls, however small the array is. */
LOOP_TEST(calls_and_timers_take_turns)
{
	struct flexsc_cb calls[8], timers[8];
	unsigned int n[2] = { 0 };

	for (unsigned int i = 0; i < 8; i++) {
		calls[i] = (struct flexsc_cb){ .callback = never };
		timers[i] = (struct flexsc_cb){ .callback = never };
		CHECK_EQ(flexsc_loop_getppid(loop, &calls[i]), 0);
		CHECK_EQ(flexsc_loop_timer(loop, &timers[i], 0), 0);
	}
	while (n[0] < 1000 || n[1] < 1000) {
		struct flexsc_cb *cb;
		bool is_timer;

		if (!flexsc_loop_harvest(loop, &cb, 1))
			continue;
		is_timer = cb >= timers && cb < timers + 8;
		n[is_timer]++;
		CHECK_EQ(is_timer ? flexsc_loop_timer(loop, cb, 0) :
				    flexsc_loop_getppid(loop, cb), 0);
	}
	for (unsigned int i = 0; i < 8; i++) {
		calls[i].callback = NULL;
		timers[i].callback = NULL;
	}
	test_end_loop();
}

LOOP_TEST(a_chain_goes_on_when_its_first_call_is_harvested)
{
	struct flexsc_cb first = { .callback = never }, second = first;

	CHECK_EQ(flexsc_loop_getppid(loop, &first), 0);
	CHECK_EQ(flexsc_loop_getpid_after(loop, &second, &first, 0), 0);
	harvest(1, 1);
	CHECK(done[0] == &first);
	harvest(1, 1);
	CHECK(done[0] == &second);
	CHECK_EQ(second.ret, getpid());
}

TEST(cancelled_and_late_calls_are_harvested)
{
	struct flexsc_cb calls[2];
	char c;
	int p[2];

	NEEDS_WAITING_ENGINE();
	CHECK_EQ(pipe(p), 0);
	loop = test_loop();
	for (unsigned int i = 0; i < 2; i++) {
		calls[i] = (struct flexsc_cb){ .callback = never };
		CHECK_EQ(flexsc_loop_read(loop, &calls[i], p[0], &c, 1), 0);
	}
	CHECK_EQ(flexsc_loop_deadline(loop, &calls[0], MS), 0);
	harvest(1, SOME);
	CHECK(done[0] == &calls[0]);
	CHECK_EQ(calls[0].ret, -ETIME);
	CHECK_EQ(flexsc_loop_cancel(loop, &calls[1]), 0);
	harvest(1, SOME);
	CHECK(done[0] == &calls[1]);
	CHECK(is_cancelled(calls[1].ret));
}

/* Neither do callbacks that run when the loop is destroyed. */
LOOP_TEST(callbacks_of_calls_have_no_flags)
{
	struct call calls[4] = { 0 };

	for (unsigned int i = 0; i < 4; i++)
		calls[i].cb.callback = count_run;
	POST(loop, &calls[0], SYS_getppid);
	CHECK_EQ(flexsc_loop_timer(loop, &calls[1].cb, 0), 0);
	CHECK_EQ(flexsc_loop_wake(loop, &calls[2].cb), 0);
	CHECK_EQ(flexsc_loop_timer(loop, &calls[3].cb, 3600 * SECOND), 0);
	CHECK(run_until(loop, &calls[0].runs, 1, 10000));
	CHECK(run_until(loop, &calls[1].runs, 1, 10000));
	CHECK(run_until(loop, &calls[2].runs, 1, 10000));
	test_end_loop();
	CHECK_EQ(calls[3].runs, 1);
	CHECK_EQ(calls[3].cb.ret, -ECANCELED);
}
