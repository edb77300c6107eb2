/* SPDX-License-Identifier: MIT */
/*
 * Wake-ups: the one thing other threads and signal handlers may ask of a
 * loop, besides stopping it.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <unistd.h>

#include "../harness.h"

#define THREADS		4
#define EACH		MANY(10000)

static struct flexsc_loop *loop;
static unsigned int done;

struct letter {
	struct flexsc_cb cb;	/* first: letter_read() finds it here */
	unsigned int text;	/* written before the wake-up, read after */
	unsigned int runs;
};

static void letter_read(struct flexsc_cb *cb)
{
	struct letter *letter = (struct letter *)cb;

	CHECK_EQ(cb->ret, 0);
	CHECK_EQ(letter->text, (uintptr_t)cb->arg);
	letter->runs++;
	done++;
}

static void *send_letters(void *arg)
{
	struct letter *letters = arg;

	for (unsigned int i = 0; i < EACH; i++) {
		letters[i].cb.callback = letter_read;
		letters[i].cb.arg = (void *)(uintptr_t)i;
		letters[i].text = i;
		CHECK_EQ(flexsc_loop_wake(loop, &letters[i].cb), 0);
	}
	return NULL;
}

TEST_LIMIT(wake_ups_from_many_threads_are_counted_exactly, 40)
{
	static struct letter *letters[THREADS];
	pthread_t threads[THREADS];

	loop = test_loop();
	for (unsigned int i = 0; i < THREADS; i++) {
		letters[i] = calloc(EACH, sizeof(struct letter));
		CHECK(letters[i]);
		CHECK_EQ(pthread_create(&threads[i], NULL, send_letters,
					letters[i]), 0);
	}
	CHECK(run_until(loop, &done, THREADS * EACH, 30000));
	for (unsigned int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	run_for(loop, 20);
	CHECK_EQ(done, THREADS * EACH);
	for (unsigned int i = 0; i < THREADS * EACH; i++)
		CHECK_EQ(letters[i / EACH][i % EACH].runs, 1);
	CHECK_EQ(flexsc_loop_destroy(loop), 0);
	for (unsigned int i = 0; i < THREADS; i++)
		free(letters[i]);
}

static struct letter one;

static void send_one(unsigned int text)
{
	one.cb = (struct flexsc_cb){ .callback = letter_read };
	one.cb.arg = (void *)(uintptr_t)text;
	one.text = text;
	CHECK_EQ(flexsc_loop_wake(loop, &one.cb), 0);
}

static void *send_later(void *arg)
{
	sleep_ms(100);
	send_one(7);
	return arg;
}

TEST(a_wake_up_ends_the_sleep_at_once)
{
	uint64_t before = now_ns();
	pthread_t thread;

	loop = test_loop();
	CHECK_EQ(pthread_create(&thread, NULL, send_later, NULL), 0);
	CHECK_EQ(flexsc_loop_wait(loop, 15 * SECOND), 1);
	CHECK(now_ns() - before < 5 * SECOND);
	CHECK_EQ(done, 0);
	CHECK_EQ(flexsc_loop_dispatch(loop), 1);
	CHECK_EQ(done, 1);
	pthread_join(thread, NULL);
	CHECK_EQ(flexsc_loop_destroy(loop), 0);
}

static void *nudge_later(void *arg)
{
	sleep_ms(100);
	CHECK_EQ(flexsc_loop_wake(loop, NULL), 0);
	return arg;
}

TEST(a_wake_up_without_cb_only_wakes)
{
	uint64_t before = now_ns();
	pthread_t thread;

	loop = test_loop();
	CHECK_EQ(pthread_create(&thread, NULL, nudge_later, NULL), 0);
	CHECK_EQ(flexsc_loop_wait(loop, 15 * SECOND), 1);
	CHECK(now_ns() - before >= 50 * MS);
	CHECK(now_ns() - before < 5 * SECOND);
	CHECK_EQ(flexsc_loop_dispatch(loop), 0);
	CHECK_EQ(flexsc_loop_wait(loop, MS), 0);
	pthread_join(thread, NULL);
	CHECK_EQ(flexsc_loop_destroy(loop), 0);
}

TEST(a_wake_up_before_the_sleep_is_not_lost)
{
	uint64_t before = now_ns();

	loop = test_loop();
	send_one(3);
	CHECK_EQ(flexsc_loop_wait(loop, 15 * SECOND), 1);
	CHECK_EQ(flexsc_loop_dispatch(loop), 1);
	CHECK_EQ(flexsc_loop_wake(loop, NULL), 0);
	CHECK_EQ(flexsc_loop_wait(loop, 15 * SECOND), 1);
	CHECK(now_ns() - before < 5 * SECOND);
	CHECK_EQ(done, 1);
	CHECK_EQ(flexsc_loop_destroy(loop), 0);
}

static void wake_again(struct flexsc_cb *cb)
{
	if (++done < 1000)
		CHECK_EQ(flexsc_loop_wake(loop, cb), 0);
}

TEST(a_callback_may_wake_its_own_loop)
{
	one.cb.callback = wake_again;
	loop = test_loop();
	CHECK_EQ(flexsc_loop_wake(loop, &one.cb), 0);
	CHECK(run_until(loop, &done, 1000, 10000));
	run_for(loop, 10);
	CHECK_EQ(done, 1000);
	CHECK_EQ(flexsc_loop_destroy(loop), 0);
}

/* A thread and the loop take turns: a lost wake-up would stop both. */
static int ball[2];

static void next_volley(struct flexsc_cb *cb)
{
	(void)cb;
	if (++done < MANY(10000))
		CHECK_EQ(write(ball[1], "x", 1), 1);
	else
		close(ball[1]);
}

static void *wake_for_each_byte(void *arg)
{
	static struct flexsc_cb cb = { .callback = next_volley };
	char c;

	while (read(ball[0], &c, 1) == 1)
		CHECK_EQ(flexsc_loop_wake(loop, &cb), 0);
	return arg;
}

TEST_LIMIT(no_wake_up_is_lost_while_falling_asleep, 40)
{
	pthread_t thread;

	CHECK_EQ(pipe(ball), 0);
	loop = test_loop();
	CHECK_EQ(pthread_create(&thread, NULL, wake_for_each_byte, NULL), 0);
	CHECK_EQ(write(ball[1], "x", 1), 1);
	CHECK(run_until(loop, &done, MANY(10000), 30000));
	pthread_join(thread, NULL);
	CHECK_EQ(flexsc_loop_destroy(loop), 0);
}

#define ALARMS	200

static struct letter letters_of_alarm[ALARMS];
static volatile sig_atomic_t alarms;

static void on_alarm(int signo)
{
	struct letter *letter = &letters_of_alarm[alarms];

	(void)signo;
	if (alarms == ALARMS)
		return;
	letter->cb.callback = letter_read;
	letter->cb.arg = (void *)(uintptr_t)alarms;
	letter->text = (unsigned int)alarms;
	alarms = alarms + 1;
	flexsc_loop_wake(loop, &letter->cb);
}

/* The handler interrupts posting, sleeping, dispatching. */
TEST(signal_handlers_may_wake)
{
	static const struct itimerval often = { { 0, 1000 }, { 0, 1000 } }, off;

	loop = test_loop();
	signal(SIGALRM, on_alarm);
	CHECK_EQ(setitimer(ITIMER_REAL, &often, NULL), 0);
	while (alarms < ALARMS)
		CHECK_EQ(DO(loop, SYS_getppid), getppid());
	CHECK(run_until(loop, &done, ALARMS, 10000));
	CHECK_EQ(done, ALARMS);
	CHECK_EQ(setitimer(ITIMER_REAL, &off, NULL), 0);
	for (unsigned int i = 0; i < ALARMS; i++)
		CHECK_EQ(letters_of_alarm[i].runs, 1);
	CHECK_EQ(flexsc_loop_destroy(loop), 0);
}

/* Its callback runs, as every callback does. */
TEST(a_wake_up_that_waits_runs_when_the_loop_is_destroyed)
{
	loop = test_loop();
	send_one(5);
	CHECK_EQ(flexsc_loop_destroy(loop), 0);
	CHECK_EQ(done, 1);
}
