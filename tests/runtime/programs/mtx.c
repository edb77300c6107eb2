/* SPDX-License-Identifier: MIT */
/* C11's locks: libc exports separate functions for them. */
#include <stdatomic.h>
#include <threads.h>

#include "threads.h"

#define THREADS	8
#define ROUNDS	200

static mtx_t lock;
static cnd_t changed;
static once_flag once = ONCE_FLAG_INIT;
static int sum, ready;
static atomic_int initialised;

static void initialise(void)
{
	usleep(10000);
	initialised++;
}

static void *add(void *arg)
{
	call_once(&once, initialise);
	CHECK_EQ(initialised, 1);
	for (int i = 0; i < ROUNDS; i++) {
		int was;

		CHECK_EQ(mtx_lock(&lock), thrd_success);
		was = sum;
		if (i % 50 == 0)
			usleep(100);
		sum = was + 1;
		CHECK_EQ(mtx_unlock(&lock), thrd_success);
	}
	return arg;
}

TEST(a_mtx_excludes)
{
	CHECK_EQ(mtx_init(&lock, mtx_plain), thrd_success);
	run_all(THREADS, add, NULL);
	CHECK_EQ(sum, THREADS * ROUNDS);
}

static void *await(void *arg)
{
	struct timespec soon = in_ms(CLOCK_REALTIME, 20),
			late = in_ms(CLOCK_REALTIME, 3600000);

	CHECK_EQ(mtx_lock(&lock), thrd_success);
	CHECK_EQ(cnd_timedwait(&changed, &lock, &soon), thrd_timedout);
	ready++;
	while (ready < THREADS + 1)
		CHECK_EQ(arg ? cnd_wait(&changed, &lock) :
			       cnd_timedwait(&changed, &lock, &late),
			 thrd_success);
	CHECK_EQ(mtx_unlock(&lock), thrd_success);
	return arg;
}

static void *change(void *arg)
{
	struct timespec late = in_ms(CLOCK_REALTIME, 3600000);

	for (;;) {
		CHECK_EQ(mtx_timedlock(&lock, &late), thrd_success);
		if (ready == THREADS)
			break;
		CHECK_EQ(mtx_unlock(&lock), thrd_success);
		usleep(1000);
	}
	ready++;
	CHECK_EQ(cnd_broadcast(&changed), thrd_success);
	CHECK_EQ(mtx_unlock(&lock), thrd_success);
	return arg;
}

TEST(a_cnd_wakes_all)
{
	pthread_t threads[THREADS];

	CHECK_EQ(mtx_init(&lock, mtx_timed), thrd_success);
	CHECK_EQ(cnd_init(&changed), thrd_success);
	for (uintptr_t i = 0; i < THREADS; i++)
		threads[i] = start(await, (void *)(i % 2));
	join(start(change, NULL));
	join_all(threads, THREADS);
}

static tss_t key;
static int values;

static void add_value(void *value)
{
	CHECK_EQ(mtx_lock(&lock), thrd_success);
	values += *(int *)value;
	CHECK_EQ(mtx_unlock(&lock), thrd_success);
}

static int nap(void *arg)
{
	const struct timespec moment = { 0, 1000000 };

	CHECK_EQ(tss_set(key, arg), thrd_success);
	CHECK_EQ(thrd_sleep(&moment, NULL), 0);
	thrd_yield();
	if (*(int *)arg % 2)
		thrd_exit(*(int *)arg);
	return *(int *)arg;
}

TEST_BY_THREAD(a_thrd_is_waited_for)
{
	int numbers[4] = { 1, 2, 3, 4 }, result = 0;
	thrd_t threads[4];

	CHECK_EQ(mtx_init(&lock, mtx_plain), thrd_success);
	CHECK_EQ(tss_create(&key, add_value), thrd_success);
	for (int i = 0; i < 4; i++)
		CHECK_EQ(thrd_create(&threads[i], nap, &numbers[i]),
			 thrd_success);
	for (int i = 0; i < 4; i++) {
		CHECK_EQ(thrd_join(threads[i], &result), thrd_success);
		CHECK_EQ(result, numbers[i]);
	}
	CHECK_EQ(values, 10);
}
