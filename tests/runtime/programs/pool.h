/* SPDX-License-Identifier: MIT */
/*
 * Thread pools: a feeder sends items, a listener puts them into a queue, and workers
 * take them. Each item has to come out exactly once. A lost wake-up makes the pool wait
 * until the test's time limit.
 */
#ifndef FLEXSC_TESTS_POOL_H
#define FLEXSC_TESTS_POOL_H

#include <errno.h>
#include <semaphore.h>
#include <stdatomic.h>

#include "threads.h"

#define CHANNELS	4
#define WORKERS		4
#define ROOM		1024	/* of the queue; more than the channels hold */
#define MOST_ITEMS	(1U << 20)
/* items after which the feeder waits for the pool */
#define BATCH		24
#define STOP		UINT32_MAX

/* How the listener waits, and how the workers wait. */
enum listening { BY_EPOLL, BY_SELECT, BY_POLL, BY_POLL_OF_ONE, LISTENINGS };
enum queueing { BY_CONDITION, BY_TIMED_CONDITION, BY_SEMAPHORE, BY_TIMED_SEMAPHORE,
		QUEUEINGS };

extern struct pool {
	enum listening listening;
	enum queueing queueing;
	int mutex_type, protocol, robustness;
	unsigned int channels;
	int set, in[CHANNELS], out[CHANNELS];

	pthread_mutex_t mutex;
	pthread_cond_t more;
	sem_t items;
	uint32_t queue[ROOM], head, tail;
	bool over;

	pthread_mutex_t tally;
	pthread_cond_t progress;
	uint32_t fed, done;

	pthread_t listener, workers[WORKERS];
	unsigned int crew;
	bool listens;
	/*
	 * Called by the listener at each turn, by the listener for each item with
	 * the mutex held, and by a worker for each item. May be NULL.
	 */
	void (*at_turn)(void), (*at_put)(void), (*at_item)(uint32_t item);
} pool;

/*
 * The disturbances: acts of a separate thread, moves of the listener, signals that
 * the listener and the workers handle, and children that they fork. Each is counted,
 * so that none of them starves the others.
 */
enum subject { ACTS, MOVES, HANDLED, FORKS = HANDLED + 2, SUBJECTS = FORKS + 2 };
enum role { LISTENER, WORKER, OTHER };

extern atomic_uint pool_counts[SUBJECTS];
extern __thread enum role pool_role;

struct disturbance {
	unsigned int least[SUBJECTS];	/* in each pool */
	void (*act)(void);	/* by a separate thread; or NULL */
	void (*at_turn)(void), (*at_item)(uint32_t item);
};

/* Either function may be NULL: the pool then has no such thread. */
void pool_begin(void *(*worker)(void *), void *(*listener)(void *));
void pool_end(void);

/* Feeds at least this many items, and continues until there was enough disturbance. */
void pool_feed(uint32_t least, const struct disturbance *d);

/* The threads of a plain pool. */
void *pool_work(void *arg);
void *pool_listen(void *arg);

void pool_run(const struct disturbance *d, struct pool which);

/*
 * All pairs of listenings and queueings, or fewer on a busy machine: a fork or a
 * hand-over needs several time slices of several threads. The first four pairs cover
 * all listenings and all queueings.
 */
void pools_run(const struct disturbance *d);

/* The queue. A thread that waits for more items holds the mutex. */
void pool_put(uint32_t item);
void pool_await_more(void);

/*
 * A cancellation point. Once it has returned an item, the caller can't be cancelled
 * any more. STOP: the pool ends.
 */
uint32_t pool_take(void);
void pool_finish(uint32_t item);

/* The channels. */
void pool_send(unsigned int channel, uint32_t item);
uint32_t pool_receive(int fd);

/* A cancellation point. */
void pool_wait_for_any(enum listening listening, bool ready[]);

static inline void lock(pthread_mutex_t *mutex)
{
	int err = pthread_mutex_lock(mutex);

	if (err == EOWNERDEAD)
		err = pthread_mutex_consistent(mutex);
	CHECK_EQ(err, 0);
}

static inline void unlock(void *mutex)
{
	CHECK_EQ(pthread_mutex_unlock(mutex), 0);
}

static inline void compute(uint64_t ns)
{
	uint64_t end = now_ns() + ns;

	while (now_ns() < end)
		;
}

#endif /* FLEXSC_TESTS_POOL_H */
