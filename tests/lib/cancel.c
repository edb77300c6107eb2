/* SPDX-License-Identifier: MIT */
/*
 * Cancellation: the callback runs once, with the actual result. A call that ends
 * with -ECANCELED had no effect. A call that had an effect returns its result.
 */
#include "tests/harness/harness.h"
#include "tests/lib/counted.h"

#define COUNTED	{ .cb = { .callback = count_call }, .runs = 0 }

LOOP_TEST(a_call_cancelled_before_it_starts_has_no_effect)
{
	struct call call = CALL_INIT;
	struct stat st;

	enter_scratch();
	POST(loop, &call, SYS_mkdirat, AT_FDCWD, "d", 0700);
	CHECK_EQ(flexsc_loop_cancel(loop, &call.cb), 0);
	CHECK_EQ(call.runs, 0);
	CHECK_EQ(await_call(loop, &call), -ECANCELED);
	CHECK_EQ(stat("d", &st), -1);
	CHECK_EQ(stats_of(loop).cancelled, 1);
}

/* The next dispatch runs the callback, before any thread has taken the call. */
LOOP_TEST(a_call_cancelled_before_it_starts_ends_at_once)
{
	struct call first = CALL_INIT, second = CALL_INIT;

	POST(loop, &first, SYS_getppid);
	POST(loop, &second, SYS_getppid);
	CHECK_EQ(flexsc_loop_cancel(loop, &second.cb), 0);
	CHECK(flexsc_loop_dispatch(loop) > 0);
	CHECK_EQ(second.runs, 1);
	CHECK_EQ(second.cb.ret, -ECANCELED);
	CHECK_EQ(stats_of(loop).cancelled, 1);
	/* The cb may be posted again, although its old entry still exists. */
	CHECK_EQ(flexsc_loop_cancel(loop, &second.cb), -ENOENT);
	second = (struct call)CALL_INIT;
	POST(loop, &second, SYS_getppid);
	CHECK_EQ(await_call(loop, &second), getppid());
	CHECK_EQ(await_call(loop, &first), getppid());
	CHECK_EQ(stats_of(loop).cancelled, 1);
	CHECK_EQ(stats_of(loop).outstanding, 0);
}

WAITING_TEST(cancelling_twice_is_harmless)
{
	struct call call = CALL_INIT;
	char c;
	int p[2];

	CHECK_EQ(pipe2(p, O_CLOEXEC), 0);
	POST(loop, &call, SYS_read, p[0], &c, 1);
	run_for(loop, 20);
	for (unsigned int i = 0; i < 3; i++) {
		int ret = flexsc_loop_cancel(loop, &call.cb);

		CHECK(ret == 0 || ret == -ENOENT);
	}
	CHECK(is_cancelled(await_call(loop, &call)));
	run_for(loop, 20);
	CHECK_EQ(call.runs, 1);
}

LOOP_TEST(cancelling_a_call_that_is_not_pending_is_enoent)
{
	struct call call = CALL_INIT, other = CALL_INIT;

	CHECK_EQ(flexsc_loop_cancel(loop, &call.cb), -ENOENT);
	POST(loop, &call, SYS_getppid);
	CHECK_EQ(await_call(loop, &call), getppid());
	CHECK_EQ(flexsc_loop_cancel(loop, &call.cb), -ENOENT);
	/* The entry serves another call now, which the cancellation must not affect. */
	POST(loop, &other, SYS_getppid);
	CHECK_EQ(flexsc_loop_cancel(loop, &call.cb), -ENOENT);
	CHECK_EQ(await_call(loop, &other), getppid());
	CHECK_EQ(call.runs, 1);
	/* A cb that was never posted may contain any bytes. */
	for (unsigned int i = 0; i < 100000; i++) {
		other.cb.handle = test_random() >> (i % 64);
		CHECK_EQ(flexsc_loop_cancel(loop, &other.cb), -ENOENT);
	}
}

static struct call *victims[3];

static void cancel_others(struct flexsc_cb *cb)
{
	CHECK_EQ(flexsc_loop_cancel(loop, cb), -ENOENT);
	for (unsigned int i = 0; i < 3; i++) {
		int ret = flexsc_loop_cancel(loop, &victims[i]->cb);

		CHECK(ret == (victims[i]->runs ? -ENOENT : 0) ||
		      ret == -ENOENT);
	}
	call_done(cb);
}

WAITING_TEST(a_callback_cancels_others_and_itself)
{
	struct call blocked = CALL_INIT, fast = CALL_INIT, timer = CALL_INIT;
	struct call killer = { .cb = { .callback = cancel_others } };
	char c;
	int p[2];

	victims[0] = &blocked;
	victims[1] = &fast;
	victims[2] = &timer;
	CHECK_EQ(pipe2(p, O_CLOEXEC), 0);
	POST(loop, &blocked, SYS_read, p[0], &c, 1);
	CHECK_EQ(flexsc_loop_timer(loop, &timer.cb, 3600 * SECOND), 0);
	run_for(loop, 10);
	POST(loop, &killer, SYS_getppid);
	POST(loop, &fast, SYS_getppid);
	CHECK_EQ(await_call(loop, &killer), getppid());
	CHECK(is_cancelled(await_call(loop, &blocked)));
	CHECK_EQ(await_call(loop, &timer), -ECANCELED);
	await_call(loop, &fast);
	CHECK(fast.cb.ret == getppid() || fast.cb.ret == -ECANCELED);
}

/* The call may run or be cancelled. Its result has to match its effect. */
LOOP_TEST(fast_calls_return_what_happened)
{
	unsigned int early = 0;
	struct stat st;

	enter_scratch();
	for (unsigned int i = 0; i < 2000; i++) {
		struct call call = CALL_INIT;
		uint64_t r = test_random();

		POST(loop, &call, SYS_mkdirat, AT_FDCWD, "d", 0700);
		if (r & 1)
			CHECK_EQ(flexsc_loop_submit(loop), 0);
		for (unsigned int k = 0; k < (r >> 8 & 1023); k++)
			__asm__ volatile("" ::: "memory");
		flexsc_loop_cancel(loop, &call.cb);
		await_call(loop, &call);
		if (call.cb.ret == 0) {
			CHECK_EQ(rmdir("d"), 0);
			continue;
		}
		CHECK(is_cancelled(call.cb.ret));
		CHECK_EQ(stat("d", &st), -1);
		early++;
	}
	CHECK(early > 0);
}

/* Reads of one byte are cancelled while bytes arrive. */
struct race {
	struct call call;	/* first: count_call() finds it here */
	int p[2];
	char c;
	bool fed;
};

#define RACES	64

static struct race races[RACES];

static void races_open(void)
{
	for (unsigned int i = 0; i < RACES; i++) {
		CHECK_EQ(pipe2(races[i].p, O_CLOEXEC), 0);
		races[i].call.cb.callback = count_call;
	}
}

static void race_post(struct race *r)
{
	r->call.runs = 0;
	r->c = 'p';
	r->fed = false;
	POST(loop, &r->call, SYS_read, r->p[0], &r->c, 1);
}

/* The byte is either in the reader's buffer or in the pipe, never in both. */
static void race_check(struct race *r, unsigned int *won, unsigned int *lost)
{
	int bytes = 0;
	char c = 0;

	CHECK_EQ(r->call.runs, 1);
	if (r->call.cb.ret == 1) {
		CHECK_EQ(r->c, 'x');
		CHECK(r->fed);
		(*won)++;
		return;
	}
	CHECK(is_cancelled(r->call.cb.ret));
	CHECK_EQ(r->c, 'p');
	if (!r->fed)
		return;
	CHECK_EQ(PLAIN(SYS_ioctl, r->p[0], FIONREAD, &bytes), 0);
	CHECK_EQ(bytes, 1);
	CHECK_EQ(PLAIN(SYS_read, r->p[0], &c, 1), 1);
	CHECK_EQ(c, 'x');
	(*lost)++;
}

WAITING_TEST_LIMIT(a_cancelled_read_loses_no_data, 40)
{
	unsigned int won = 0, lost = 0, rounds = MANY(300);

	races_open();
	while (rounds--) {
		done = 0;
		for (unsigned int i = 0; i < RACES; i++)
			race_post(&races[i]);
		CHECK_EQ(flexsc_loop_submit(loop), 0);
		for (unsigned int i = 0; i < RACES; i++) {
			struct race *r = &races[test_random() % RACES];

			if (!r->fed) {
				r->fed = true;
				CHECK_EQ(write(r->p[1], "x", 1), 1);
			}
			r = &races[test_random() % RACES];
			flexsc_loop_cancel(loop, &r->call.cb);
			if (test_random() % 8 == 0)
				CHECK(flexsc_loop_dispatch(loop) >= 0);
		}
		for (unsigned int i = 0; i < RACES; i++)
			flexsc_loop_cancel(loop, &races[i].call.cb);
		CHECK(run_until(loop, &done, RACES, 10000));
		CHECK_EQ(done, RACES);
		for (unsigned int i = 0; i < RACES; i++)
			race_check(&races[i], &won, &lost);
	}
	test_note("%u reads won against their cancellation, %u lost", won, lost);
}

static atomic_bool feeder_stop;
static _Atomic(unsigned int) feeder_round;

/* Writes one byte per round, while the owner cancels its read. */
static void *feeder(void *arg)
{
	unsigned int round = 0;

	(void)arg;
	while (!atomic_load(&feeder_stop)) {
		if (atomic_load(&feeder_round) == round) {
			sched_yield();
			continue;
		}
		round = atomic_load(&feeder_round);
		CHECK_EQ(write(races[round % RACES].p[1], "x", 1), 1);
	}
	return NULL;
}

WAITING_TEST_LIMIT(a_read_cancelled_while_data_arrives_loses_none, 40)
{
	unsigned int won = 0, lost = 0;
	pthread_t thread;
	char c;

	races_open();
	thread = test_thread(feeder, NULL);
	for (unsigned int round = 1; turns_left(round - 1, MANY(5000)); round++) {
		struct race *r = &races[round % RACES];

		race_post(r);
		r->fed = true;
		CHECK_EQ(flexsc_loop_submit(loop), 0);
		atomic_store(&feeder_round, round);
		for (uint64_t spin = test_random() % 20000; spin; spin--)
			__asm__ volatile("" ::: "memory");
		if (test_random() & 1)
			CHECK(flexsc_loop_dispatch(loop) >= 0);
		flexsc_loop_cancel(loop, &r->call.cb);
		CHECK(run_until(loop, &r->call.runs, 1, 10000));
		if (r->call.cb.ret == 1) {
			CHECK_EQ(r->c, 'x');
			won++;
			continue;
		}
		CHECK(is_cancelled(r->call.cb.ret));
		CHECK_EQ(read(r->p[0], &c, 1), 1);
		lost++;
	}
	atomic_store(&feeder_stop, true);
	pthread_join(thread, NULL);
	test_note("%u reads won against their cancellation, %u lost", won, lost);
}

WAITING_TEST(a_cancelled_read_never_writes_its_buffer_again)
{
	static char buf[16][4096];
	struct call calls[16];
	int p[2];

	CHECK_EQ(pipe2(p, O_CLOEXEC), 0);
	for (unsigned int i = 0; i < 16; i++) {
		calls[i] = (struct call)CALL_INIT;
		POST(loop, &calls[i], SYS_read, p[0], buf[i], sizeof(buf[i]));
	}
	run_for(loop, 10);
	for (unsigned int i = 0; i < 16; i++) {
		CHECK_EQ(flexsc_loop_cancel(loop, &calls[i].cb), 0);
		CHECK(is_cancelled(await_call(loop, &calls[i])));
	}
	memset(buf, 'p', sizeof(buf));
	CHECK_EQ(write(p[1], "xxxx", 4), 4);
	run_for(loop, 50);
	for (size_t i = 0; i < sizeof(buf); i++)
		CHECK_EQ(((char *)buf)[i], 'p');
	CHECK_EQ(DO(loop, SYS_read, p[0], buf, sizeof(buf)), 4);
}

WAITING_TEST(cancelling_by_descriptor_ends_the_calls_that_name_it)
{
	struct call on_a[3], on_b[2], both = CALL_INIT, timer = CALL_INIT;
	int a[2], b[2], pair[2];
	char c;

	CHECK_EQ(pipe2(a, O_CLOEXEC), 0);
	CHECK_EQ(pipe2(b, O_CLOEXEC), 0);
	CHECK_EQ(pipe2(pair, O_CLOEXEC), 0);
	for (unsigned int i = 0; i < 3; i++) {
		on_a[i] = (struct call)CALL_INIT;
		POST(loop, &on_a[i], SYS_read, a[0], &c, 1);
	}
	for (unsigned int i = 0; i < 2; i++) {
		on_b[i] = (struct call)CALL_INIT;
		POST(loop, &on_b[i], SYS_read, b[0], &c, 1);
	}
	POST(loop, &both, SYS_splice, pair[0], NULL, a[1], NULL, 1, 0);
	CHECK_EQ(flexsc_loop_timer(loop, &timer.cb, 3600 * SECOND), 0);
	run_for(loop, 20);
	CHECK_EQ(flexsc_loop_cancel_fd(loop, a[0]), 3);
	CHECK_EQ(flexsc_loop_cancel_fd(loop, a[1]), 1);
	CHECK_EQ(flexsc_loop_cancel_fd(loop, 9999), 0);
	for (unsigned int i = 0; i < 3; i++)
		CHECK(is_cancelled(await_call(loop, &on_a[i])));
	CHECK(is_cancelled(await_call(loop, &both)));
	run_for(loop, 20);
	CHECK_EQ(on_b[0].runs + on_b[1].runs + timer.runs, 0);
	CHECK_EQ(flexsc_loop_cancel_fd(loop, a[0]), 0);
	CHECK_EQ(flexsc_loop_cancel_fd(loop, b[0]), 2);
	CHECK(is_cancelled(await_call(loop, &on_b[0])));
	CHECK(is_cancelled(await_call(loop, &on_b[1])));
	test_end_loop();
}

/* The descriptor is closed, so the call can't be found by its number. */
WAITING_TEST(no_number_refers_to_a_closed_descriptor)
{
	struct call waiting = CALL_INIT;
	int pair[2];
	char c;

	CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
	POST(loop, &waiting, SYS_recvfrom, pair[0], &c, 1, 0, NULL, NULL);
	run_until_idle(loop);
	CHECK_EQ(DO(loop, SYS_close, pair[0]), 0);
	CHECK_EQ(flexsc_loop_cancel_fd(loop, -1), 0);
	CHECK_EQ(waiting.runs, 0);
	CHECK_EQ(write(pair[1], "x", 1), 1);
	CHECK_EQ(await_call(loop, &waiting), 1);
}

WAITING_TEST(destroying_a_loop_ends_pending_calls)
{
	static struct race many[100];
	struct call timer = COUNTED, signal_cb = COUNTED, chained = COUNTED;

	for (unsigned int i = 0; i < 100; i++) {
		CHECK_EQ(pipe2(many[i].p, O_CLOEXEC), 0);
		many[i].call.cb.callback = count_call;
		race_post(&many[i]);
		if (i == 49)
			run_for(loop, 10);
	}
	POST_AFTER(loop, &many[99].call, 0, &chained, SYS_getppid);
	CHECK_EQ(flexsc_loop_timer(loop, &timer.cb, 3600 * SECOND), 0);
	CHECK_EQ(flexsc_loop_signal(loop, &signal_cb.cb, SIGUSR1), 0);
	test_end_loop();
	CHECK_EQ(done, 103);
	CHECK_EQ(timer.cb.ret, -ECANCELED);
	CHECK_EQ(signal_cb.cb.ret, -ECANCELED);
	CHECK_EQ(chained.cb.ret, -ECANCELED);
	for (unsigned int i = 0; i < 100; i++) {
		CHECK_EQ(many[i].call.runs, 1);
		CHECK(is_cancelled(many[i].call.cb.ret));
		CHECK_EQ(write(many[i].p[1], "x", 1), 1);
	}
	sleep_ms(20);
	for (unsigned int i = 0; i < 100; i++)
		CHECK_EQ(many[i].c, 'p');
}
