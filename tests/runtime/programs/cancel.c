/* SPDX-License-Identifier: MIT */
/* pthread_cancel() at every place where a thread can be, and its effects on others. */
#define _GNU_SOURCE
#include <poll.h>
#include <semaphore.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <threads.h>

#include "threads.h"

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
static atomic_int cleaned;
static int fds[2];
static sem_t sem;

static void clean(void *arg)
{
	(void)arg;
	cleaned++;
}

static void unlock(void *arg)
{
	pthread_mutex_unlock(arg);
	cleaned++;
}

static void *in_read(void *arg)
{
	char byte;

	pthread_cleanup_push(clean, NULL);
	CHECK_EQ(read(fds[0], &byte, 1), 1);
	pthread_cleanup_pop(1);
	return arg;
}

static void *in_poll(void *arg)
{
	struct pollfd fd = { fds[0], POLLIN, 0 };

	pthread_cleanup_push(clean, NULL);
	poll(&fd, 1, -1);
	pthread_cleanup_pop(0);
	return arg;
}

static void *in_sleep(void *arg)
{
	pthread_cleanup_push(clean, NULL);
	sleep(100);
	pthread_cleanup_pop(0);
	return arg;
}

static void *in_sem_wait(void *arg)
{
	pthread_cleanup_push(clean, NULL);
	sem_wait(&sem);
	pthread_cleanup_pop(0);
	return arg;
}

static void *in_cond_wait(void *arg)
{
	pthread_mutex_lock(&mutex);
	pthread_cleanup_push(unlock, &mutex);
	for (;;)
		pthread_cond_wait(&cond, &mutex);
	pthread_cleanup_pop(0);
	return arg;
}

static void *nested(void *arg)
{
	pthread_join(start(in_sleep, NULL), NULL);
	return arg;
}

static void *in_join(void *arg)
{
	pthread_cleanup_push(clean, NULL);
	nested(arg);
	pthread_cleanup_pop(0);
	return arg;
}

static void *in_thrd_sleep(void *arg)
{
	const struct timespec long_time = { .tv_sec = 100 };

	pthread_cleanup_push(clean, NULL);
	thrd_sleep(&long_time, NULL);
	pthread_cleanup_pop(0);
	return arg;
}

static void *in_pause(void *arg)
{
	pthread_cleanup_push(clean, NULL);
	pause();
	pthread_cleanup_pop(0);
	return arg;
}

static void *in_cnd_wait(void *arg)
{
	mtx_t lock;
	cnd_t never;

	mtx_init(&lock, mtx_plain);
	cnd_init(&never);
	mtx_lock(&lock);
	pthread_cleanup_push(clean, NULL);
	for (;;)
		cnd_wait(&never, &lock);
	pthread_cleanup_pop(0);
	return arg;
}

static void *in_sem_timedwait(void *arg)
{
	const struct timespec late = in_ms(CLOCK_REALTIME, 3600000);

	pthread_cleanup_push(clean, NULL);
	sem_timedwait(&sem, &late);
	pthread_cleanup_pop(0);
	return arg;
}

/* libc makes this call itself, not through the runtime. */
static void *in_fgetc(void *arg)
{
	FILE *file = fdopen(fds[0], "r");

	pthread_cleanup_push(clean, NULL);
	fgetc(file);
	pthread_cleanup_pop(0);
	return arg;
}

static void *in_system(void *arg)
{
	pthread_cleanup_push(clean, NULL);
	system("exec sleep 100");
	pthread_cleanup_pop(0);
	return arg;
}

static void wait_for_sem(int signo)
{
	(void)signo;
	sem_wait(&sem);
}

/* The handler waits in the kernel, because its thread stays on its host. */
static void *in_handler(void *arg)
{
	pthread_cleanup_push(clean, NULL);
	pthread_kill(pthread_self(), SIGUSR1);
	pthread_cleanup_pop(0);
	return arg;
}

/* A full pipe takes a part of the bytes. */
static void *in_write(void *arg)
{
	static const char bytes[1 << 20];
	int full[2];

	CHECK_EQ(pipe(full), 0);
	pthread_cleanup_push(clean, NULL);
	CHECK_EQ(write(full[1], bytes, sizeof(bytes)), 0);
	pthread_cleanup_pop(0);
	return arg;
}

static void cancel_in(void *(*run)(void *))
{
	pthread_t thread = start(run, NULL);
	int before = cleaned;

	settle();
	CHECK_EQ(pthread_cancel(thread), 0);
	CHECK(join(thread) == PTHREAD_CANCELED);
	CHECK_EQ(cleaned, before + 1);
}

TEST(a_thread_that_waits_is_cancelled)
{
	CHECK_EQ(pipe(fds), 0);
	sem_init(&sem, 0, 0);
	cancel_in(in_read);
	cancel_in(in_poll);
	cancel_in(in_sleep);
	cancel_in(in_sem_wait);
	cancel_in(in_cond_wait);
	CHECK_EQ(pthread_mutex_trylock(&mutex), 0);
	cancel_in(in_join);
	cancel_in(in_pause);
	cancel_in(in_thrd_sleep);
	cancel_in(in_cnd_wait);
	cancel_in(in_sem_timedwait);
	cancel_in(in_fgetc);
	cancel_in(in_system);
	cancel_in(in_write);
	signal(SIGUSR1, wait_for_sem);
	cancel_in(in_handler);
}

static sem_t woken;

static void *take_one(void *arg)
{
	pthread_cleanup_push(clean, NULL);
	sem_wait(&woken);
	pthread_cleanup_pop(0);
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, NULL);
	return arg;
}

/* A cancelled thread doesn't consume a wake-up. */
TEST(a_cancelled_wait_leaves_the_semaphore_to_others)
{
	for (int i = 0; i < 200; i++) {
		pthread_t thread;
		int value = 0;

		sem_init(&woken, 0, 0);
		thread = start(take_one, &woken);
		usleep((useconds_t)(test_random() % 200));
		sem_post(&woken);
		pthread_cancel(thread);
		CHECK_EQ(sem_getvalue(&woken, &value), 0);
		value = join(thread) == PTHREAD_CANCELED;
		CHECK_EQ(sem_trywait(&woken), value ? 0 : -1);
	}
}

static void *two_reads(void *arg)
{
	char byte;

	CHECK_EQ(read(fds[0], &byte, 1), 1);
	*(char *)arg = byte;
	read(fds[0], &byte, 1);
	return NULL;
}

TEST(data_that_was_read_is_not_lost_to_cancellation)
{
	if (!preloaded())
		SKIP("glibc loses the data that a cancelled read has read (glibc bug 12683)");
	for (int i = 0; i < 200; i++) {
		char got = 0, byte = 'x', left = 0;
		pthread_t thread;

		CHECK_EQ(pipe(fds), 0);
		thread = start(two_reads, &got);
		usleep((useconds_t)(test_random() % 300));
		CHECK_EQ(write(fds[1], &byte, 1), 1);
		pthread_cancel(thread);
		join(thread);
		close(fds[1]);
		/* Either the thread has received the byte or the pipe still holds it. */
		CHECK_EQ(read(fds[0], &left, 1) == 1, got != 'x');
		close(fds[0]);
	}
}

static atomic_bool begun;

static void *spin(void *arg)
{
	int type;

	pthread_cleanup_push(clean, NULL);
	pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, &type);
	begun = true;
	for (;;)
		;
	pthread_cleanup_pop(0);
	return arg;
}

TEST(an_asynchronous_cancellation_interrupts)
{
	pthread_t thread = start(spin, NULL);

	while (!begun)
		usleep(1000);
	pthread_cancel(thread);
	CHECK(join(thread) == PTHREAD_CANCELED);
	CHECK_EQ(cleaned, 1);
}

static void *end_soon(void *arg)
{
	usleep((unsigned int)(uintptr_t)arg);
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, NULL);
	return NULL;
}

TEST_LIMIT(a_thread_that_ends_is_cancelled_too, 60)
{
	for (uintptr_t round = 0; round < 300; round++) {
		pthread_t threads[16];

		for (uintptr_t i = 0; i < 16; i++)
			threads[i] = start(end_soon, (void *)(round % 50 + i));
		for (unsigned int i = 0; i < 16; i++)
			CHECK_EQ(pthread_cancel(threads[i]), 0);
		join_all(threads, 16);
	}
}

/* A handler with a cancellation point runs while its thread starts. */

#define BEGINNERS	200
#define MAKERS		20
/* Larger than libc's stack cache: libc unmaps the stack of a thread that has ended. */
#define LARGE		(64UL << 20)

static void point_in_handler(int signo)
{
	int saved = errno;

	(void)signo;
	usleep(1);
	errno = saved;
}

static void *pause_for_ever(void *arg)
{
	for (;;)
		pause();
	return arg;
}

static void *cancel_beginners(void *arg)
{
	pthread_attr_t attr;
	pthread_t thread;

	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, LARGE);
	for (int i = 0; i < MANY(BEGINNERS); i++) {
		CHECK_EQ(pthread_create(&thread, &attr, pause_for_ever, NULL), 0);
		if (i % 2)
			kill(getpid(), SIGUSR2);
		CHECK_EQ(pthread_cancel(thread), 0);
		CHECK(join(thread) == PTHREAD_CANCELED);
		kill(getpid(), SIGUSR2);
	}
	pthread_attr_destroy(&attr);
	return arg;
}

TEST_LIMIT(a_handler_s_cancellation_point_ends_a_thread_that_begins, 60)
{
	struct sigaction action = { .sa_handler = point_in_handler };

	/*
	 * When a cancelled thread leaves an interrupted cancellation point, glibc
	 * waits until the handler of SIGCANCEL has run. If the handler has run
	 * before, the wait never ends.
	 */
	if (!preloaded())
		SKIP("glibc hangs natively, in one of 150 runs");
	CHECK_EQ(sigaction(SIGUSR2, &action, NULL), 0);
	run_all(MAKERS, cancel_beginners, NULL);
}

/*
 * A thread leaves a cancellation point and disables cancellation. Its next
 * cancellation point must not cancel it, not even on its host.
 */

#define POLLERS		100

static atomic_bool disabled;
static atomic_int polls;

static void check_enabled(void *arg)
{
	(void)arg;
	CHECK(!disabled);
	cleaned++;
}

static void *poll_by_turns(void *arg)
{
	struct pollfd ready[] = { { fds[0], POLLIN, 0 }, { fds[0], POLLIN, 0 } };

	disabled = false;
	pthread_cleanup_push(check_enabled, NULL);
	for (;; polls++) {
		CHECK_EQ(poll(ready, 2, -1), 2);
		CHECK_EQ(pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, NULL), 0);
		disabled = true;
		CHECK_EQ(poll(ready, 2, -1), 2);
		disabled = false;
		CHECK_EQ(pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, NULL), 0);
	}
	pthread_cleanup_pop(0);
	return arg;
}

TEST_LIMIT(a_thread_that_disabled_cancellation_goes_on, 60)
{
	CHECK_EQ(pipe(fds), 0);
	CHECK_EQ(write(fds[1], "x", 1), 1);
	for (int i = 0; i < MANY(POLLERS); i++) {
		pthread_t thread = start(poll_by_turns, NULL);
		int before = polls;

		while (polls < before + 8)
			sched_yield();
		CHECK_EQ(pthread_cancel(thread), 0);
		CHECK(join(thread) == PTHREAD_CANCELED);
		CHECK_EQ(cleaned, i + 1);
	}
}
