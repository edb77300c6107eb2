/* SPDX-License-Identifier: MIT */
/* glibc's locks between user threads, and between user threads and kernel threads. */
#define _GNU_SOURCE
#include <semaphore.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>

#include "threads.h"

#define THREADS	16

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;

static atomic_bool held, let_go;

static void *hold(void *arg)
{
	pthread_mutex_lock(&mutex);
	held = true;
	while (!let_go)
		usleep(1000);
	pthread_mutex_unlock(&mutex);
	return arg;
}

static void *timed_waits(void *arg)
{
	uint64_t begin = now_ns();
	struct timespec until = in_ms(CLOCK_REALTIME, 30);

	pthread_mutex_lock(&mutex);
	CHECK_EQ(pthread_cond_timedwait(&cond, &mutex, &until), ETIMEDOUT);
	CHECK(now_ns() - begin >= 25 * MS);
	begin = now_ns();
	until = in_ms(CLOCK_MONOTONIC, 30);
	CHECK_EQ(pthread_cond_clockwait(&cond, &mutex, CLOCK_MONOTONIC,
					&until), ETIMEDOUT);
	CHECK(now_ns() - begin >= 25 * MS);
	/* The time has already passed. */
	CHECK_EQ(pthread_cond_timedwait(&cond, &mutex, &until), ETIMEDOUT);
	pthread_mutex_unlock(&mutex);
	return arg;
}

TEST(timed_waits_time_out)
{
	run_all(4, timed_waits, NULL);
}

static void *timed_lock(void *arg)
{
	struct timespec soon = in_ms(CLOCK_REALTIME, 20);
	struct timespec later = in_ms(CLOCK_MONOTONIC, 3600000);

	CHECK_EQ(pthread_mutex_timedlock(&mutex, &soon), ETIMEDOUT);
	let_go = true;
	CHECK_EQ(pthread_mutex_clocklock(&mutex, CLOCK_MONOTONIC, &later), 0);
	pthread_mutex_unlock(&mutex);
	return arg;
}

TEST(a_timed_lock_times_out_or_locks)
{
	pthread_t holder = start(hold, NULL), waiter;

	while (!held)
		usleep(1000);
	waiter = start(timed_lock, NULL);
	join(holder);
	join(waiter);
}

/*
 * A time limit expires at about the time of a wake-up, again and again. Each wait
 * ends, and no wake-up is lost. On a busy machine each wait takes longer, and there are
 * fewer.
 */

#define MEETINGS	2000

static sem_t meeting;
static uint64_t meetings_end;

static void *meet(void *arg)
{
	long met = 0;

	for (int i = 0; i < MEETINGS && now_ns() < meetings_end; i++) {
		struct timespec until = in_ms(CLOCK_REALTIME, 1);

		if (!sem_timedwait(&meeting, &until))
			met++;
		else
			CHECK_EQ(errno, ETIMEDOUT);
	}
	*(long *)arg = met;
	return NULL;
}

TEST(a_wake_up_that_meets_a_time_limit_is_not_lost)
{
	pthread_t threads[4];
	long met[4], posts = 0, sum = 0;
	int left = 0;

	sem_init(&meeting, 0, 0);
	meetings_end = now_ns() + 10 * SECOND;
	for (int i = 0; i < 4; i++)
		threads[i] = start(meet, &met[i]);
	for (; posts < MEETINGS && now_ns() < meetings_end; posts++) {
		sem_post(&meeting);
		usleep((useconds_t)(test_random() % 1200));
	}
	for (int i = 0; i < 4; i++) {
		join(threads[i]);
		sum += met[i];
	}
	sem_getvalue(&meeting, &left);
	CHECK_EQ(sum + left, posts);
}

static void *lock_and_die(void *arg)
{
	pthread_mutex_lock(arg);
	return NULL;
}

TEST(a_robust_mutex_reports_a_dead_owner)
{
	pthread_mutexattr_t attr;
	pthread_mutex_t robust;

	pthread_mutexattr_init(&attr);
	pthread_mutexattr_setrobust(&attr, PTHREAD_MUTEX_ROBUST);
	pthread_mutex_init(&robust, &attr);
	join(start(lock_and_die, &robust));
	CHECK_EQ(pthread_mutex_lock(&robust), EOWNERDEAD);
	CHECK_EQ(pthread_mutex_consistent(&robust), 0);
	pthread_mutex_unlock(&robust);
}

static pthread_mutex_t inheriting;
static int inherited;

static void *add_inheriting(void *arg)
{
	for (int i = 0; i < 500; i++) {
		CHECK_EQ(pthread_mutex_lock(&inheriting), 0);
		/* Threads that wait for the mutex wait for this thread. */
		if (i % 100 == 0)
			usleep(100);
		inherited++;
		CHECK_EQ(pthread_mutex_unlock(&inheriting), 0);
	}
	return arg;
}

TEST(a_mutex_with_priority_inheritance_excludes)
{
	pthread_mutexattr_t attr;

	pthread_mutexattr_init(&attr);
	pthread_mutexattr_setprotocol(&attr, PTHREAD_PRIO_INHERIT);
	CHECK_EQ(pthread_mutex_init(&inheriting, &attr), 0);
	run_all(4, add_inheriting, NULL);
	CHECK_EQ(inherited, 2000);
}

/* malloc's and stdio's own locks, under contention. */
static void *use_libc(void *arg)
{
	FILE *file = arg;

	for (int i = 0; i < 500; i++) {
		void *a = malloc(100000), *b = malloc(10);

		fprintf(file, "%d\n", i);
		if (i % 50 == 0)
			usleep(100);
		free(a);
		free(b);
	}
	return NULL;
}

TEST(threads_that_wait_for_libc_locks_switch)
{
	FILE *file = tmpfile();
	int lines = 0, c;

	run_all(THREADS, use_libc, file);
	rewind(file);
	while ((c = getc(file)) != EOF)
		lines += c == '\n';
	CHECK_EQ(lines, THREADS * 500);
	fclose(file);
}
