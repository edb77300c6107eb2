/* SPDX-License-Identifier: MIT */
/* The loop itself: options, run and stop, wait and dispatch, misuse, and fairness. */
#include "tests/harness/harness.h"
#include "tests/lib/counted.h"

/* Options. */

static int create_with(struct flexsc_options options)
{
	struct flexsc_loop *made = (void *)1;
	int ret;

	options.size = sizeof(options);
	ret = flexsc_loop_create(&made, &options);
	if (ret == 0)
		CHECK_EQ(flexsc_loop_destroy(made), 0);
	else
		CHECK(made == (void *)1);
	return ret;
}

TEST(unknown_options_are_einval)
{
	CHECK_EQ(create_with((struct flexsc_options){ .engine = "warp" }), -EINVAL);
	CHECK_EQ(create_with((struct flexsc_options){ .flags = 2 }), -EINVAL);
	CHECK_EQ(create_with((struct flexsc_options){ .reserved = 1 }), -EINVAL);
	CHECK_EQ(create_with((struct flexsc_options){ .flags = 1u << 31 }),
		 -EINVAL);
	CHECK_EQ(create_with((struct flexsc_options){ .max_threads = 2 }), 0);
}

TEST(cores_are_checked)
{
	static const char *const bad[] = { "x", "1-", "-1", "3-1", "0,,1", "0,",
		",0", "0-", "0x1", " ", "99999", "1e3", "0;1",
		"99999999999999999999" };
	const int cpu = first_core();
	char good[32];

	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++)
		if (create_with((struct flexsc_options){ .kernel_cores = bad[i] }) !=
		    -EINVAL)
			test_fail(__FILE__, __LINE__, "cores \"%s\" were accepted", bad[i]);
	snprintf(good, sizeof(good), "%d", cpu);
	CHECK_EQ(create_with((struct flexsc_options){ .kernel_cores = good }), 0);
	snprintf(good, sizeof(good), "%d-%d", cpu, cpu);
	CHECK_EQ(create_with((struct flexsc_options){ .kernel_cores = good }), 0);
}

/* An engine may create threads long after the loop was created. */
TEST(the_list_of_cores_may_be_overwritten)
{
	struct flexsc_options options = FLEXSC_OPTIONS_INIT;
	struct flexsc_loop *made = NULL;
	struct flexsc_cb cb = { .callback = count_done };
	char list[32];

	snprintf(list, sizeof(list), "%d", first_core());
	options.kernel_cores = list;
	CHECK_EQ(flexsc_loop_create(&made, &options), 0);
	strcpy(list, "none");
	CHECK_EQ(flexsc_loop_chdir(made, &cb, "."), 0);
	CHECK_EQ(flexsc_loop_run(made), 0);
	CHECK_EQ(cb.ret, 0);
	CHECK_EQ(flexsc_loop_destroy(made), 0);
}

/* Options of a newer program are accepted if the unknown ones are zero. */
TEST(the_size_of_the_options_is_checked)
{
	struct {
		struct flexsc_options options;
		uint64_t later[4];
	} newer;
	struct flexsc_loop *made = NULL;

	memset(&newer, 0, sizeof(newer));
	newer.options.size = sizeof(newer);
	CHECK_EQ(flexsc_loop_create(&made, &newer.options), 0);
	CHECK_EQ(flexsc_loop_destroy(made), 0);
	made = NULL;
	newer.later[3] = 1;
	CHECK_EQ(flexsc_loop_create(&made, &newer.options), -EINVAL);
	newer.options.size = 0;
	CHECK_EQ(flexsc_loop_create(&made, &newer.options), -EINVAL);
	newer.options.size = sizeof(size_t) - 1;
	CHECK_EQ(flexsc_loop_create(&made, &newer.options), -EINVAL);
	CHECK(!made);
}

TEST(engines_are_listed_and_probed)
{
	char why[256] = "untouched";
	bool sync = false;
	unsigned int n = 0;

	for (const char *name; (name = flexsc_engine_name(n)); n++) {
		int ret = flexsc_engine_probe(name, why, sizeof(why));

		CHECK(ret == 0 || (ret == -EOPNOTSUPP && *why));
		CHECK(!strchr(why, '\n'));
		sync |= strcmp(name, "sync") == 0;
	}
	CHECK(n >= 3 && sync);
	CHECK(!flexsc_engine_name(n) && !flexsc_engine_name(UINT32_MAX));
	CHECK_EQ(flexsc_engine_probe("warp", why, sizeof(why)), -EINVAL);
	CHECK_EQ(flexsc_engine_probe(NULL, why, sizeof(why)), -EINVAL);
	CHECK_EQ(flexsc_engine_probe("sync", NULL, 0), 0);
}

TEST(the_engine_asked_for_is_used)
{
	struct flexsc_options options = FLEXSC_OPTIONS_INIT;

	unsetenv("FLEXSC_ENGINE");
	options.engine = test_engine();
	loop = test_loop_with(&options);
	CHECK_EQ(strcmp(flexsc_loop_engine(loop), test_engine()), 0);
	test_end_loop();
	setenv("FLEXSC_ENGINE", test_engine(), 1);
	loop = test_loop();
	CHECK_EQ(strcmp(flexsc_loop_engine(loop), test_engine()), 0);
	test_end_loop();
	setenv("FLEXSC_ENGINE", "warp", 1);
	CHECK_EQ(create_with((struct flexsc_options){ .engine = NULL }), -EINVAL);
	CHECK_EQ(create_with((struct flexsc_options){ .engine = "sync" }), 0);
}

TEST(a_loop_on_the_best_engine_has_no_why)
{
	char why[256] = "";

	if (flexsc_engine_probe(flexsc_engine_name(0), why, sizeof(why)))
		SKIP("%s: %s", flexsc_engine_name(0), why);
	unsetenv("FLEXSC_ENGINE");
	loop = test_loop();
	CHECK_EQ(strcmp(flexsc_loop_engine(loop), flexsc_engine_name(0)), 0);
	CHECK(!flexsc_loop_why(loop));
}

TEST(a_thread_has_one_default_loop)
{
	struct flexsc_loop *first, *other;

	CHECK(!flexsc_loop_default());
	CHECK_EQ(flexsc_init(), 0);
	first = flexsc_loop_default();
	CHECK(first);
	CHECK_EQ(flexsc_init(), -EEXIST);
	CHECK(flexsc_loop_default() == first);
	CHECK_EQ(flexsc_fini(), 0);
	CHECK(!flexsc_loop_default());
	CHECK_EQ(flexsc_init(), 0);
	CHECK_EQ(flexsc_fini(), 0);
	other = test_loop();
	CHECK_EQ(flexsc_loop_set_default(other), 0);
	CHECK(flexsc_loop_default() == other);
	CHECK_EQ(flexsc_init(), -EEXIST);
	CHECK_EQ(flexsc_loop_set_default(NULL), 0);
	CHECK(!flexsc_loop_default());
	CHECK_EQ(flexsc_loop_destroy(other), 0);
}

LOOP_TEST(waiting_ends_with_its_time_and_not_earlier)
{
	for (unsigned int ms = 0; ms <= 64; ms = ms * 2 + 1) {
		uint64_t before = now_ns();

		CHECK_EQ(flexsc_loop_wait(loop, ms * MS), 0);
		CHECK(now_ns() - before >= ms * MS);
	}
}

LOOP_TEST(waiting_ends_when_something_is_ready)
{
	struct call call = CALL_INIT, timer = CALL_INIT;

	POST(loop, &call, SYS_getppid);
	CHECK_EQ(flexsc_loop_wait(loop, FLEXSC_FOREVER), 1);
	CHECK_EQ(call.runs, 0);
	CHECK_EQ(flexsc_loop_wait(loop, FLEXSC_FOREVER), 1);
	CHECK_EQ(flexsc_loop_dispatch(loop), 1);
	CHECK_EQ(call.runs, 1);
	CHECK_EQ(flexsc_loop_wait(loop, 0), 0);
	CHECK_EQ(flexsc_loop_timer(loop, &timer.cb, 20 * MS), 0);
	CHECK_EQ(flexsc_loop_wait(loop, FLEXSC_FOREVER), 1);
	CHECK_EQ(flexsc_loop_dispatch(loop), 1);
	CHECK_EQ(timer.runs, 1);
}

/* A program with its own event loop only submits and dispatches. */
LOOP_TEST(submit_and_dispatch_are_enough)
{
	struct call call = CALL_INIT;
	unsigned int ran = 0;
	int p[2];
	char c;

	CHECK_EQ(flexsc_loop_dispatch(loop), 0);
	CHECK_EQ(pipe2(p, O_CLOEXEC), 0);
	CHECK_EQ(write(p[1], "x", 1), 1);
	POST(loop, &call, SYS_read, p[0], &c, 1);
	CHECK_EQ(flexsc_loop_submit(loop), 0);
	while (!ran) {
		int n = flexsc_loop_dispatch(loop);

		CHECK(n >= 0);
		ran += (unsigned int)n;
	}
	CHECK_EQ(ran, 1);
	CHECK_EQ(call.cb.ret, 1);
}

LOOP_TEST(run_returns_when_nothing_is_pending)
{
	struct flexsc_cb cb = { .callback = count_done };
	static struct flexsc_cb timer = { .callback = count_done };

	CHECK_EQ(flexsc_loop_run(loop), 0);
	CHECK_EQ(flexsc_loop_call(loop, &cb, ARGS(SYS_getppid)), 0);
	CHECK_EQ(flexsc_loop_timer(loop, &timer, 50 * MS), 0);
	CHECK_EQ(flexsc_loop_run(loop), 0);
	CHECK_EQ(done, 2);
	CHECK_EQ(flexsc_loop_run(loop), 0);
}

LOOP_TEST(a_stop_before_the_run_ends_it)
{
	struct flexsc_cb timer = { .callback = count_done };

	CHECK_EQ(flexsc_loop_timer(loop, &timer, 100 * MS), 0);
	CHECK_EQ(flexsc_loop_stop(loop), 0);
	CHECK_EQ(flexsc_loop_run(loop), 0);
	CHECK_EQ(done, 0);
	CHECK_EQ(flexsc_loop_run(loop), 0);
	CHECK_EQ(done, 1);
}

static void stop_here(struct flexsc_cb *cb)
{
	count_done(cb);
	CHECK_EQ(flexsc_loop_stop(loop), 0);
}

LOOP_TEST(run_returns_after_the_callback_that_stops_it)
{
	struct flexsc_cb cbs[10];

	for (unsigned int i = 0; i < 10; i++) {
		cbs[i] = (struct flexsc_cb){ .callback = stop_here };
		CHECK_EQ(flexsc_loop_call(loop, &cbs[i], ARGS(SYS_getppid)), 0);
	}
	for (unsigned int i = 1; i <= 10; i++) {
		CHECK_EQ(flexsc_loop_run(loop), 0);
		CHECK_EQ(done, i);
	}
}

static void *stop_later(void *arg)
{
	sleep_ms(50);
	CHECK_EQ(flexsc_loop_stop(loop), 0);
	return arg;
}

static void on_alarm(int signo)
{
	(void)signo;
	flexsc_loop_stop(loop);
}

LOOP_TEST(another_thread_or_a_signal_handler_stops_a_run)
{
	static const struct itimerval soon = { { 0, 0 }, { 0, 50000 } };
	struct flexsc_cb timer = { .callback = count_done };
	uint64_t before = now_ns();
	pthread_t thread;

	CHECK_EQ(flexsc_loop_timer(loop, &timer, 3600 * SECOND), 0);
	thread = test_thread(stop_later, NULL);
	CHECK_EQ(flexsc_loop_run(loop), 0);
	pthread_join(thread, NULL);
	CHECK(now_ns() - before >= 50 * MS);
	signal(SIGALRM, on_alarm);
	CHECK_EQ(setitimer(ITIMER_REAL, &soon, NULL), 0);
	CHECK_EQ(flexsc_loop_run(loop), 0);
	CHECK_EQ(done, 0);
	test_end_loop();
}

static void misuse(struct flexsc_cb *cb)
{
	count_done(cb);
	CHECK_EQ(flexsc_loop_run(loop), -EDEADLK);
	CHECK_EQ(flexsc_loop_wait(loop, 0), -EDEADLK);
	CHECK_EQ(flexsc_loop_dispatch(loop), -EDEADLK);
	CHECK_EQ(flexsc_loop_destroy(loop), -EBUSY);
}

LOOP_TEST(a_callback_s_forbidden_calls_are_refused)
{
	struct flexsc_cb call = { .callback = misuse };
	struct flexsc_cb timer = { .callback = misuse };
	struct flexsc_cb wake = { .callback = misuse };

	CHECK_EQ(flexsc_loop_call(loop, &call, ARGS(SYS_getppid)), 0);
	CHECK_EQ(flexsc_loop_timer(loop, &timer, MS), 0);
	CHECK_EQ(flexsc_loop_wake(loop, &wake), 0);
	CHECK_EQ(flexsc_loop_run(loop), 0);
	CHECK_EQ(done, 3);
}

static void *use_elsewhere(void *theirs)
{
	struct flexsc_cb *harvested;
	uint64_t ns;

	CHECK_EQ(flexsc_loop_run(theirs), -EPERM);
	CHECK_EQ(flexsc_loop_wait(theirs, 0), -EPERM);
	CHECK_EQ(flexsc_loop_dispatch(theirs), -EPERM);
	CHECK_EQ(flexsc_loop_harvest(theirs, &harvested, 1), -EPERM);
	CHECK_EQ(flexsc_loop_prepare(theirs, &ns), -EPERM);
	CHECK_EQ(flexsc_loop_submit(theirs), -EPERM);
	CHECK_EQ(flexsc_loop_destroy(theirs), -EPERM);
	return NULL;
}

LOOP_TEST(only_the_owner_runs_and_destroys)
{
	struct flexsc_cb cb = { .callback = count_done };
	pthread_t thread;

	CHECK_EQ(flexsc_loop_timer(loop, &cb, MS), 0);
	thread = test_thread(use_elsewhere, loop);
	CHECK_EQ(pthread_join(thread, NULL), 0);
	CHECK_EQ(flexsc_loop_run(loop), 0);
	CHECK_EQ(done, 1);
}

static void run_another(struct flexsc_cb *cb)
{
	struct flexsc_loop *other = test_loop();

	count_done(cb);
	CHECK_EQ(DO(other, SYS_getppid), getppid());
	CHECK_EQ(flexsc_loop_run(other), 0);
	CHECK_EQ(flexsc_loop_destroy(other), 0);
}

LOOP_TEST(a_callback_may_use_another_loop)
{
	struct flexsc_cb call = { .callback = run_another };

	CHECK_EQ(flexsc_loop_call(loop, &call, ARGS(SYS_getppid)), 0);
	CHECK_EQ(flexsc_loop_run(loop), 0);
	CHECK_EQ(done, 1);
}

static unsigned int greed;
static bool enough;

static void post_again(struct flexsc_cb *cb)
{
	greed++;
	if (!enough)
		CHECK_EQ(flexsc_loop_call(loop, cb, ARGS(SYS_getppid)), 0);
}

static void arm_again(struct flexsc_cb *cb)
{
	greed++;
	if (!enough)
		CHECK_EQ(flexsc_loop_timer(loop, cb, 0), 0);
}

static void wake_again(struct flexsc_cb *cb)
{
	greed++;
	if (!enough)
		CHECK_EQ(flexsc_loop_wake(loop, cb), 0);
}

static int feed_pipe[2];

static void *wake_and_feed(void *arg)
{
	sleep_ms(20);
	CHECK_EQ(flexsc_loop_wake(loop, arg), 0);
	CHECK_EQ(write(feed_pipe[1], "x", 1), 1);
	kill(getpid(), SIGUSR1);
	return NULL;
}

/* A greedy callback is always ready. All others still get a turn. */
static void starve(void (*greedy)(struct flexsc_cb *cb))
{
	struct flexsc_cb cb = { .callback = greedy };
	struct flexsc_cb wake = { .callback = count_done };
	struct flexsc_cb timer = { .callback = count_done };
	struct flexsc_cb signal_cb = { .callback = count_done };
	struct flexsc_cb reader = { .callback = count_done };
	bool waits = strcmp(test_engine(), "sync") != 0;
	pthread_t thread;
	char c;

	loop = test_loop();
	CHECK_EQ(pipe2(feed_pipe, O_CLOEXEC), 0);
	CHECK_EQ(flexsc_loop_timer(loop, &timer, 20 * MS), 0);
	CHECK_EQ(flexsc_loop_signal(loop, &signal_cb, SIGUSR1), 0);
	if (waits)
		CHECK_EQ(flexsc_loop_call(loop, &reader,
					  ARGS(SYS_read, feed_pipe[0], &c, 1)), 0);
	thread = test_thread(wake_and_feed, &wake);
	greedy(&cb);
	CHECK(run_until(loop, &done, waits ? 4 : 3, 10000));
	enough = true;
	CHECK_EQ(flexsc_loop_run(loop), 0);
	CHECK(greed > 1);
	pthread_join(thread, NULL);
	test_end_loop();
}

TEST(posting_again_and_again_starves_no_other)
{
	starve(post_again);
}

TEST(zero_timers_starve_no_other)
{
	starve(arm_again);
}

TEST(waking_again_and_again_starves_no_other)
{
	starve(wake_again);
}

LOOP_TEST(dispatch_ends_although_callbacks_post_again)
{
	struct flexsc_cb cbs[3] = {
		{ .callback = post_again },
		{ .callback = arm_again },
		{ .callback = wake_again },
	};

	for (unsigned int i = 0; i < 3; i++)
		cbs[i].callback(&cbs[i]);
	for (unsigned int i = 0; i < 100; i++)
		CHECK(flexsc_loop_dispatch(loop) >= 0);
	CHECK(greed < 100000);
	CHECK(greed >= 3);
	CHECK_EQ(flexsc_loop_stop(loop), 0);
	CHECK_EQ(flexsc_loop_run(loop), 0);
	enough = true;
	CHECK_EQ(flexsc_loop_run(loop), 0);
}

/* References. */

static void unref_loop(struct flexsc_cb *cb)
{
	call_done(cb);
	CHECK_EQ(flexsc_loop_unref(loop), 0);
}

static void *wake_after_a_while(void *arg)
{
	sleep_ms(50);
	CHECK_EQ(flexsc_loop_wake(loop, arg), 0);
	return NULL;
}

LOOP_TEST(a_referenced_loop_waits_for_wake_ups)
{
	struct call call = { .cb = { .callback = unref_loop } };
	pthread_t thread;

	CHECK_EQ(flexsc_loop_ref(loop), 0);
	thread = test_thread(wake_after_a_while, &call.cb);
	CHECK_EQ(flexsc_loop_run(loop), 0);
	CHECK_EQ(call.runs, 1);
	pthread_join(thread, NULL);
	/* Nothing remains to wait for. */
	CHECK_EQ(flexsc_loop_run(loop), 0);
}

TEST(an_unreferenced_signal_does_not_keep_the_loop)
{
	struct call signalled = CALL_INIT, call = CALL_INIT;

	CHECK_EQ(flexsc_init(), 0);
	CHECK_EQ(flexsc_signal(&signalled.cb, SIGUSR1), 0);
	CHECK_EQ(flexsc_unref(), 0);
	POST(flexsc_loop_default(), &call, SYS_getppid);
	CHECK_EQ(flexsc_main_loop(), 0);
	CHECK_EQ(call.runs, 1);
	CHECK_EQ(signalled.runs, 0);
	CHECK_EQ(flexsc_ref(), 0);
	CHECK_EQ(kill(getpid(), SIGUSR1), 0);
	CHECK_EQ(flexsc_main_loop(), 0);
	CHECK_EQ(signalled.cb.ret, SIGUSR1);
	CHECK_EQ(flexsc_fini(), 0);
}

/* Each unref discounts one pending cb, whichever it is. */
LOOP_TEST(references_are_counted)
{
	struct call timers[3] = { CALL_INIT, CALL_INIT, CALL_INIT };

	for (unsigned int i = 0; i < 2; i++) {
		CHECK_EQ(flexsc_loop_unref(loop), 0);
		CHECK_EQ(flexsc_loop_timer(loop, &timers[i].cb, 3600 * SECOND),
			 0);
	}
	CHECK_EQ(flexsc_loop_run(loop), 0);
	CHECK_EQ(flexsc_loop_timer(loop, &timers[2].cb, MS), 0);
	CHECK_EQ(flexsc_loop_run(loop), 0);
	CHECK_EQ(timers[2].runs, 1);
	CHECK_EQ(flexsc_loop_unref(loop), 0);
	CHECK_EQ(flexsc_loop_timer(loop, &timers[2].cb, 3600 * SECOND), 0);
	CHECK_EQ(flexsc_loop_run(loop), 0);
	/* Every callback runs, whether counted or not. */
	test_end_loop();
	CHECK_EQ(timers[0].cb.ret, -ECANCELED);
	CHECK_EQ(timers[1].cb.ret, -ECANCELED);
	CHECK_EQ(timers[2].cb.ret, -ECANCELED);
}

LOOP_TEST(a_callback_that_is_ready_runs_although_unreferenced)
{
	struct call call = CALL_INIT;

	CHECK_EQ(flexsc_loop_timer(loop, &call.cb, 3600 * SECOND), 0);
	CHECK_EQ(flexsc_loop_cancel(loop, &call.cb), 0);
	CHECK_EQ(flexsc_loop_unref(loop), 0);
	CHECK_EQ(flexsc_loop_run(loop), 0);
	CHECK_EQ(call.cb.ret, -ECANCELED);
	CHECK_EQ(call.runs, 1);
}

LOOP_TEST(references_do_not_affect_wait_and_dispatch)
{
	struct call call = CALL_INIT;
	uint64_t before = now_ns();

	CHECK_EQ(flexsc_loop_ref(loop), 0);
	CHECK_EQ(flexsc_loop_dispatch(loop), 0);
	CHECK_EQ(flexsc_loop_wait(loop, MS), 0);
	for (unsigned int i = 0; i < 3; i++)
		CHECK_EQ(flexsc_loop_unref(loop), 0);
	CHECK_EQ(flexsc_loop_timer(loop, &call.cb, 20 * MS), 0);
	CHECK_EQ(flexsc_loop_wait(loop, 3600 * SECOND), 1);
	CHECK(now_ns() - before >= 20 * MS);
	CHECK_EQ(flexsc_loop_dispatch(loop), 1);
	for (unsigned int i = 0; i < 3; i++)
		CHECK_EQ(flexsc_loop_ref(loop), 0);
	/* A surplus reference doesn't prevent the loop's destruction. */
	test_end_loop();
	CHECK_EQ(flexsc_loop_ref(NULL), -ENXIO);
	CHECK_EQ(flexsc_loop_unref(NULL), -ENXIO);
}

/*
 * Spinning. A loop that spins for longer than the next event takes doesn't sleep;
 * sleeps are counted. The loops may spin for longer than a test's limit. So each of
 * these tests also fails if a loop continues to spin when it is destroyed.
 */
#define LONG_US		60000000U

static atomic_uint answers;

static void answer(struct flexsc_cb *cb)
{
	call_done(cb);
	atomic_fetch_add(&answers, 1);
}

static void *wake_when_answered(void *arg)
{
	for (unsigned int i = 0; turns_left(i, 100); i++) {
		CHECK_EQ(flexsc_loop_wake(loop, arg), 0);
		while (atomic_load(&answers) <= i)
			sched_yield();
	}
	CHECK_EQ(flexsc_loop_stop(loop), 0);
	return NULL;
}

LOOP_TEST(a_loop_that_spins_is_woken_without_a_mode_switch, .poll_us = LONG_US)
{
	struct call call = { .cb = { .callback = answer } };
	struct flexsc_stats before;
	pthread_t thread;

	before = stats_of(loop);
	CHECK_EQ(flexsc_loop_ref(loop), 0);
	thread = test_thread(wake_when_answered, &call.cb);
	CHECK_EQ(flexsc_loop_run(loop), 0);
	pthread_join(thread, NULL);
	CHECK(call.runs > 0);
	CHECK_EQ(stats_of(loop).wakeups, 0);
	CHECK_EQ(stats_of(loop).mode_switches, before.mode_switches);
}

static void *write_a_byte(void *fd)
{
	sleep_ms(1);
	CHECK_EQ(write((int)(intptr_t)fd, "x", 1), 1);
	return NULL;
}

WAITING_TEST(a_loop_that_spins_finds_results, .poll_us = LONG_US)
{
	struct call call = CALL_INIT;
	pthread_t thread;
	char c;

	for (unsigned int i = 0; i < 10; i++) {
		int p[2];

		CHECK_EQ(pipe2(p, O_CLOEXEC), 0);
		call.runs = 0;
		POST(loop, &call, SYS_read, p[0], &c, 1);
		thread = test_thread(write_a_byte, (void *)(intptr_t)p[1]);
		CHECK_EQ(flexsc_loop_run(loop), 0);
		CHECK_EQ(call.cb.ret, 1);
		pthread_join(thread, NULL);
		close(p[0]);
		close(p[1]);
	}
	CHECK_EQ(stats_of(loop).wakeups, 0);
}

LOOP_TEST(a_loop_that_spins_until_a_timer_does_not_sleep_then,
		.poll_us = LONG_US)
{
	struct call call = CALL_INIT;

	for (unsigned int i = 0; i < 10; i++) {
		CHECK_EQ(flexsc_loop_timer(loop, &call.cb, MS), 0);
		CHECK_EQ(flexsc_loop_run(loop), 0);
	}
	CHECK_EQ(call.runs, 10);
	CHECK_EQ(flexsc_loop_wait(loop, MS), 0);
	CHECK_EQ(stats_of(loop).wakeups, 0);
}

LOOP_TEST(a_loop_that_spun_in_vain_sleeps, .poll_us = 1000)
{
	struct call call = CALL_INIT;

	/* If the loop gets no processor until the timer is due, it doesn't sleep. */
	while (!stats_of(loop).wakeups) {
		const uint64_t before = now_ns();

		CHECK_EQ(flexsc_loop_timer(loop, &call.cb, 50 * MS), 0);
		CHECK_EQ(flexsc_loop_run(loop), 0);
		CHECK(now_ns() - before >= 50 * MS);
	}
}

/*
 * Adaptive polling ends after some waits that are longer than poll_us: five more waits
 * take less processor time than polling once.
 */
#define ADAPTIVE_US	20000U

static uint64_t own_cpu_ns(void)
{
	struct timespec time;

	CHECK_EQ(clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time), 0);
	return (uint64_t)time.tv_sec * SECOND + (uint64_t)time.tv_nsec;
}

/* Returns the CPU time that the loop needs for some timers, each reached in vain. */
static uint64_t spin_in_vain(void)
{
	const uint64_t before = own_cpu_ns();
	struct call call = CALL_INIT;

	for (unsigned int i = 0; i < 5; i++) {
		CHECK_EQ(flexsc_loop_timer(loop, &call.cb, 2 * ADAPTIVE_US * 1000),
			 0);
		CHECK_EQ(flexsc_loop_run(loop), 0);
	}
	return own_cpu_ns() - before;
}

/*
 * If another process takes the processor, a timer may expire during a spin, which then
 * wasn't in vain, and the loop spins again. So look for a quiet moment. A loop that doesn't
 * stop spinning needs five times the limit in each of them.
 */
LOOP_TEST(a_loop_that_always_spins_in_vain_stops_spinning,
	  .poll_us = ADAPTIVE_US, .flags = FLEXSC_POLL_ADAPTIVE)
{
	unsigned int most = 50;

	while (spin_in_vain() >= ADAPTIVE_US * 1000)
		CHECK(--most);
}

TEST(the_library_has_the_version_of_its_headers)
{
	char text[32];

	snprintf(text, sizeof(text), "%u.%u.%u", flexsc_version() >> 16,
		 flexsc_version() >> 8 & 0xff, flexsc_version() & 0xff);
	CHECK_EQ(strcmp(text, FLEXSC_VERSION_STRING), 0);
	CHECK_EQ(flexsc_version(), FLEXSC_VERSION);
	CHECK(FLEXSC_VERSION >= FLEXSC_VERSION_NUMBER(0, 9, 0));
	CHECK(FLEXSC_VERSION < FLEXSC_VERSION_NUMBER(255, 255, 255));
}
