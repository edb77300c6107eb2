/* SPDX-License-Identifier: MIT */
/* glibc's locks among user threads, and between them and kernel threads. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include "threads.h"

#define THREADS	16

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
static long counter;

static void *add(void *arg)
{
	for (long i = 0; i < (long)arg; i++) {
		pthread_mutex_lock(&mutex);
		counter++;
		if (i % 64 == 0)
			sched_yield();
		pthread_mutex_unlock(&mutex);
	}
	return NULL;
}

TEST(a_mutex_excludes)
{
	run_all(THREADS, add, (void *)5000L);
	CHECK_EQ(counter, THREADS * 5000);
}

static int turn;

static void *take_turns(void *arg)
{
	int me = (int)(long)arg;

	for (int i = 0; i < 10000; i++) {
		pthread_mutex_lock(&mutex);
		while (turn != me)
			pthread_cond_wait(&cond, &mutex);
		turn = !me;
		pthread_cond_signal(&cond);
		pthread_mutex_unlock(&mutex);
	}
	return NULL;
}

TEST(two_threads_take_turns)
{
	pthread_t a = start(take_turns, (void *)0L);
	pthread_t b = start(take_turns, (void *)1L);

	join(a);
	join(b);
}

static void *wait_for_it(void *arg)
{
	int *waiting = arg;

	pthread_mutex_lock(&mutex);
	++*waiting;
	while (*waiting >= 0)
		pthread_cond_wait(&cond, &mutex);
	pthread_mutex_unlock(&mutex);
	return arg;
}

TEST(a_broadcast_wakes_all)
{
	pthread_t threads[THREADS];
	int waiting = 0;

	start_all(threads, THREADS, wait_for_it, &waiting);
	for (int seen = 0; seen < THREADS; usleep(1000)) {
		pthread_mutex_lock(&mutex);
		seen = waiting;
		pthread_mutex_unlock(&mutex);
	}
	pthread_mutex_lock(&mutex);
	waiting = -1;
	pthread_cond_broadcast(&cond);
	pthread_mutex_unlock(&mutex);
	for (int i = 0; i < THREADS; i++)
		CHECK(join(threads[i]) == &waiting);
}

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
	/* A time that has passed. */
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

/* A time limit and a wake-up meet, again and again: neither is lost. */
static sem_t meeting;

static void *meet(void *arg)
{
	long met = 0;

	for (int i = 0; i < 2000; i++) {
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
	for (int i = 0; i < 4; i++)
		threads[i] = start(meet, &met[i]);
	for (; posts < 2000; posts++) {
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

static pthread_rwlock_t rwlock = PTHREAD_RWLOCK_INITIALIZER;
static atomic_int readers, writers;

static void *read_and_write(void *arg)
{
	uint64_t random = (uint64_t)arg * 7919 + 1;

	for (int i = 0; i < 2000; i++) {
		random = random * 6364136223846793005ULL + 1;
		if (random >> 61) {
			pthread_rwlock_rdlock(&rwlock);
			readers++;
			CHECK_EQ(writers, 0);
			if (random >> 40 & 1)
				sched_yield();
			readers--;
		} else {
			pthread_rwlock_wrlock(&rwlock);
			CHECK_EQ(writers++, 0);
			CHECK_EQ(readers, 0);
			sched_yield();
			writers--;
		}
		pthread_rwlock_unlock(&rwlock);
	}
	return NULL;
}

TEST(readers_share_and_writers_do_not)
{
	run_numbered(THREADS, read_and_write);
}

static pthread_barrier_t barrier;
static atomic_int serial, phase[64];

static void *pass_barriers(void *arg)
{
	for (int i = 0; i < 64; i++) {
		phase[i]++;
		if (pthread_barrier_wait(&barrier) ==
		    PTHREAD_BARRIER_SERIAL_THREAD)
			serial++;
		CHECK_EQ(phase[i], THREADS);
	}
	return arg;
}

TEST(a_barrier_holds_all_back)
{
	pthread_barrier_init(&barrier, NULL, THREADS);
	run_all(THREADS, pass_barriers, NULL);
	CHECK_EQ(serial, 64);
	CHECK_EQ(pthread_barrier_destroy(&barrier), 0);
}

static void *lock_and_die(void *arg)
{
	pthread_mutex_lock(arg);
	return NULL;
}

TEST(a_robust_mutex_tells_of_a_dead_owner)
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
		/* Whoever waits for it waits for this thread. */
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

TEST(libc_locks_switch_too)
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
