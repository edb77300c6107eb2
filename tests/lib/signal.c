/* SPDX-License-Identifier: MIT */
/*
 * Signals as callbacks.
 */
#include "tests/harness/harness.h"

static void await_signal(struct flexsc_loop *loop, struct call *call, int signo)
{
	call->runs = 0;
	CHECK_EQ(flexsc_loop_signal(loop, &call->cb, signo), 0);
}

LOOP_TEST(a_signal_to_the_process_is_a_callback)
{
	struct call call = CALL_INIT;

	await_signal(loop, &call, SIGUSR1);
	run_for(loop, 10);
	CHECK_EQ(call.runs, 0);
	kill(getpid(), SIGUSR1);
	CHECK_EQ(call.runs, 0);
	CHECK_EQ(await_call(loop, &call), SIGUSR1);
	await_signal(loop, &call, SIGTERM);
	raise(SIGTERM);
	CHECK_EQ(await_call(loop, &call), SIGTERM);
	await_signal(loop, &call, SIGRTMIN);
	raise(SIGRTMIN);
	CHECK_EQ(await_call(loop, &call), SIGRTMIN);
	await_signal(loop, &call, SIGRTMAX);
	raise(SIGRTMAX);
	CHECK_EQ(await_call(loop, &call), SIGRTMAX);
}

static void *kill_later(void *arg)
{
	sleep_ms(50);
	kill(getpid(), SIGUSR1);
	return arg;
}

static void *raise_later(void *arg)
{
	sleep_ms(50);
	raise(SIGUSR1);
	return arg;
}

/* TSan delays a handler until the thread calls a libc function. */
#define NEEDS_PROMPT_SIGNALS()						\
	do {								\
		if (UNDER_TSAN)						\
			SKIP("TSan delivers signals late");		\
	} while (0)

static void wakes_the_loop(void *(*sender)(void *))
{
	struct flexsc_loop *loop = test_loop();
	struct call call = CALL_INIT;
	pthread_t thread;

	await_signal(loop, &call, SIGUSR1);
	thread = test_thread(sender, NULL);
	CHECK_EQ(flexsc_loop_run(loop), 0);
	CHECK_EQ(call.runs, 1);
	CHECK_EQ(call.cb.ret, SIGUSR1);
	pthread_join(thread, NULL);
	CHECK_EQ(flexsc_loop_destroy(loop), 0);
}

TEST(a_signal_wakes_a_sleeping_loop)
{
	NEEDS_PROMPT_SIGNALS();
	wakes_the_loop(kill_later);
}

TEST(a_signal_to_another_thread_wakes_a_sleeping_loop)
{
	wakes_the_loop(raise_later);
}

LOOP_TEST(a_signal_between_two_posts_is_not_lost)
{
	struct call call = CALL_INIT;

	await_signal(loop, &call, SIGUSR1);
	raise(SIGUSR1);
	CHECK_EQ(await_call(loop, &call), SIGUSR1);
	raise(SIGUSR1);
	run_for(loop, 20);
	CHECK_EQ(call.runs, 1);
	await_signal(loop, &call, SIGUSR1);
	CHECK_EQ(await_call(loop, &call), SIGUSR1);
	await_signal(loop, &call, SIGUSR1);
	run_for(loop, 20);
	CHECK_EQ(call.runs, 0);
	test_end_loop();
}

LOOP_TEST(signals_that_come_fast_merge)
{
	struct call call = CALL_INIT;

	await_signal(loop, &call, SIGUSR1);
	for (unsigned int i = 0; i < 100; i++)
		raise(SIGUSR1);
	CHECK_EQ(await_call(loop, &call), SIGUSR1);
	for (unsigned int i = 0; i < 3; i++) {
		await_signal(loop, &call, SIGUSR1);
		run_for(loop, 20);
		if (!call.runs)
			break;
	}
	/* The callback runs at most once per turn, not a hundred times. */
	CHECK_EQ(call.runs, 0);
	test_end_loop();
}

LOOP_TEST(signals_dont_disturb_each_other)
{
	struct call one = CALL_INIT, two = CALL_INIT;

	await_signal(loop, &one, SIGUSR1);
	await_signal(loop, &two, SIGUSR2);
	raise(SIGUSR2);
	CHECK_EQ(await_call(loop, &two), SIGUSR2);
	CHECK_EQ(one.runs, 0);
	raise(SIGUSR1);
	CHECK_EQ(await_call(loop, &one), SIGUSR1);
	CHECK_EQ(two.runs, 1);
}

TEST(each_loop_that_waits_for_a_signal_gets_the_signal)
{
	struct flexsc_loop *a = test_loop(), *b = test_loop();
	struct call on_a = CALL_INIT, on_b = CALL_INIT;

	await_signal(a, &on_a, SIGUSR1);
	await_signal(b, &on_b, SIGUSR1);
	raise(SIGUSR1);
	CHECK_EQ(await_call(a, &on_a), SIGUSR1);
	CHECK_EQ(await_call(b, &on_b), SIGUSR1);
	/* One loop is destroyed. The other one still has the handler. */
	CHECK_EQ(flexsc_loop_destroy(a), 0);
	await_signal(b, &on_b, SIGUSR1);
	raise(SIGUSR1);
	CHECK_EQ(await_call(b, &on_b), SIGUSR1);
	CHECK_EQ(flexsc_loop_destroy(b), 0);
}

LOOP_TEST(a_cancelled_signal_completes)
{
	struct call call = CALL_INIT;

	await_signal(loop, &call, SIGUSR1);
	CHECK_EQ(flexsc_loop_cancel(loop, &call.cb), 0);
	CHECK_EQ(call.runs, 0);
	CHECK_EQ(await_call(loop, &call), -ECANCELED);
	CHECK_EQ(flexsc_loop_cancel(loop, &call.cb), -ENOENT);
	/* The signal is still handled, so it doesn't end the process. */
	raise(SIGUSR1);
	await_signal(loop, &call, SIGUSR1);
	CHECK_EQ(await_call(loop, &call), SIGUSR1);
}

static volatile sig_atomic_t handled;

static void handler(int signo)
{
	(void)signo;
	handled++;
}

TEST(the_disposition_is_restored)
{
	struct sigaction before[3], after;
	struct call call = CALL_INIT;

	memset(before, 0, sizeof(before));
	before[0].sa_handler = SIG_DFL;
	before[1].sa_handler = SIG_IGN;
	before[2].sa_handler = handler;
	before[2].sa_flags = SA_NODEFER;
	sigaddset(&before[2].sa_mask, SIGHUP);
	for (unsigned int i = 0; i < 3; i++) {
		CHECK_EQ(sigaction(SIGUSR1, &before[i], NULL), 0);
		loop = test_loop();
		await_signal(loop, &call, SIGUSR1);
		CHECK_EQ(sigaction(SIGUSR1, NULL, &after), 0);
		CHECK(after.sa_handler != before[i].sa_handler);
		CHECK(after.sa_flags & SA_RESTART);
		test_end_loop();
		CHECK_EQ(call.cb.ret, -ECANCELED);
		CHECK_EQ(sigaction(SIGUSR1, NULL, &after), 0);
		CHECK(after.sa_handler == before[i].sa_handler);
		CHECK_EQ(after.sa_flags & SA_NODEFER,
			 before[i].sa_flags & SA_NODEFER);
		/* TSan's sigaction() returns a mask of its own. */
		if (!UNDER_TSAN)
			CHECK_EQ(sigismember(&after.sa_mask, SIGHUP), i == 2);
	}
	raise(SIGUSR1);
	CHECK_EQ(handled, 1);
}

LOOP_TEST(signals_that_cant_be_caught_are_einval)
{
	static const int bad[] = { SIGKILL, SIGSTOP, 0, -1, 65, 1000, INT32_MAX };
	struct call call = CALL_INIT;

	for (unsigned int i = 0; i < 7; i++)
		CHECK_EQ(flexsc_loop_signal(loop, &call.cb, bad[i]), -EINVAL);
	CHECK_EQ(flexsc_loop_run(loop), 0);
	CHECK_EQ(call.runs, 0);
}

/* A blocking read of another thread continues, because the handler has SA_RESTART. */
static int quiet[2];

static void *plain_reader(void *arg)
{
	char c;

	CHECK_EQ(read(quiet[0], &c, 1), 1);
	return arg;
}

LOOP_TEST(plain_calls_are_restarted)
{
	struct call call = CALL_INIT;
	pthread_t thread;

	NEEDS_PROMPT_SIGNALS();
	CHECK_EQ(pipe(quiet), 0);
	await_signal(loop, &call, SIGUSR1);
	thread = test_thread(plain_reader, NULL);
	sleep_ms(20);
	pthread_kill(thread, SIGUSR1);
	CHECK_EQ(await_call(loop, &call), SIGUSR1);
	CHECK_EQ(write(quiet[1], "x", 1), 1);
	pthread_join(thread, NULL);
}

WAITING_TEST(signals_dont_interrupt_the_loop_s_calls)
{
	static const struct timespec brief = { 0, 200000000 };
	struct call reader = CALL_INIT, sleeper = CALL_INIT, lock = CALL_INIT;
	static uint32_t word;
	char c;
	int p[2];

	signal(SIGUSR1, handler);
	CHECK_EQ(pipe(p), 0);
	POST(loop, &reader, SYS_read, p[0], &c, 1);
	POST(loop, &sleeper, SYS_nanosleep, &brief, NULL);
	POST(loop, &lock, SYS_futex, &word, 0, 0, NULL);
	for (unsigned int i = 0; i < 50; i++) {
		kill(getpid(), SIGUSR1);
		run_for(loop, 1);
	}
	CHECK(handled > 0);
	CHECK_EQ(reader.runs + lock.runs, 0);
	CHECK_EQ(write(p[1], "x", 1), 1);
	/* On a busy machine the call may not be waiting yet. */
	while (!PLAIN(SYS_futex, &word, 1, 1))
		run_for(loop, 1);
	CHECK_EQ(await_call(loop, &reader), 1);
	CHECK_EQ(await_call(loop, &sleeper), 0);
	CHECK_EQ(await_call(loop, &lock), 0);
}
