/* SPDX-License-Identifier: MIT */
/*
 * Threads hand over to each other in other ways than a plain pool: by turns, in a pool
 * that grows and shrinks, and one after the other.
 */
#define _GNU_SOURCE
#include "pool.h"

/*
 * Leader and followers: the leader makes another thread the leader when it has
 * received an item.
 */

static bool led;

static uint32_t lead(void)
{
	bool ready[CHANNELS];

	for (;;) {
		pool_wait_for_any(pool.listening, ready);
		for (unsigned int i = 0; i < pool.channels; i++)
			if (ready[i])
				return pool_receive(pool.in[i]);
	}
}

static void *lead_and_follow(void *arg)
{
	uint32_t item;

	do {
		lock(&pool.mutex);
		while (led)
			pool_await_more();
		led = true;
		unlock(&pool.mutex);
		item = lead();
		lock(&pool.mutex);
		led = false;
		unlock(&pool.mutex);
		pthread_cond_signal(&pool.more);
		if (item != STOP)
			pool_finish(item);
	} while (item != STOP);
	/* End the next thread, too. */
	pool_send(0, STOP);
	return arg;
}

TEST_LIMIT(a_worker_listens_by_turns, 60)
{
	for (enum listening l = 0; l < LISTENINGS; l++) {
		pool = (struct pool){ .listening = l, .queueing = l % 2 };
		pool_begin(lead_and_follow, NULL);
		pool_feed(20 * BATCH, NULL);
		pool_end();
	}
}

/* A pool that grows when all workers are busy, and shrinks when they are idle. */

#define MOST_WORKERS	8

static unsigned int workers, idle, made;
static pthread_cond_t all_gone = PTHREAD_COND_INITIALIZER;

static void await_item_for(long ms)
{
	struct timespec until = in_ms(CLOCK_MONOTONIC, ms);
	int err = 0;

	idle++;
	while (pool.head == pool.tail && !err)
		err = pthread_cond_clockwait(&pool.more, &pool.mutex,
					     CLOCK_MONOTONIC, &until);
	idle--;
}

static void *work_until_idle(void *arg)
{
	uint32_t item;

	for (;;) {
		lock(&pool.mutex);
		await_item_for(1);
		if (pool.head == pool.tail)
			break;
		item = pool.queue[pool.tail++ % ROOM];
		unlock(&pool.mutex);
		if (item % 4 == 0)
			usleep(100);
		pool_finish(item);
	}
	if (!--workers)
		pthread_cond_signal(&all_gone);
	unlock(&pool.mutex);
	return arg;
}

/* Called with the queue's mutex held. */
static void grow(void)
{
	if (idle >= pool.head - pool.tail || workers == MOST_WORKERS)
		return;
	workers++;
	made++;
	CHECK_EQ(pthread_detach(start(work_until_idle, NULL)), 0);
}

static void await_all_gone(void)
{
	lock(&pool.mutex);
	while (workers)
		pthread_cond_wait(&all_gone, &pool.mutex);
	unlock(&pool.mutex);
}

TEST_LIMIT(a_pool_grows_and_shrinks, 60)
{
	for (enum listening l = 0; l < LISTENINGS; l++) {
		pool = (struct pool){ .listening = l, .at_put = grow };
		made = 0;
		pool_begin(NULL, pool_listen);
		for (int i = 1; i <= 20; i++) {
			pool_feed(2 * BATCH, NULL);
			await_all_gone();
		}
		CHECK(made >= 20);
		pool_end();
	}
}

/*
 * A chain of threads. Each creates the next one, wakes it, and ends. The semaphore
 * on which a thread waits is on its own stack, so the semaphore vanishes soon after
 * the wake-up.
 */

#define CHAINS		3
#define CHAIN		200

struct link {
	unsigned int left;
	sem_t begun;		/* the created thread is waiting */
	sem_t *wakes;
};

static sem_t chain_ends;

static void *continue_chain(void *arg);

static void make_next(unsigned int left)
{
	struct link link = { .left = left };

	sem_init(&link.begun, 0, 0);
	CHECK_EQ(pthread_detach(start(continue_chain, &link)), 0);
	sem_wait(&link.begun);
	sem_post(link.wakes);
}

static void *continue_chain(void *arg)
{
	struct link *link = arg;
	const unsigned int left = link->left;
	sem_t wakes;

	sem_init(&wakes, 0, 0);
	link->wakes = &wakes;
	sem_post(&link->begun);
	sem_wait(&wakes);
	if (left)
		make_next(left - 1);
	else
		sem_post(&chain_ends);
	return NULL;
}

TEST_LIMIT(threads_end_after_handing_over, 60)
{
	sem_init(&chain_ends, 0, 0);
	for (int i = 0; i < CHAINS; i++)
		make_next(CHAIN);
	for (int i = 0; i < CHAINS; i++)
		sem_wait(&chain_ends);
}
