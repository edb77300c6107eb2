/* SPDX-License-Identifier: MIT */
/* Thread pools. See pool.h. */
#define _GNU_SOURCE
#include <sys/epoll.h>
#include <sys/select.h>
#include <sys/socket.h>

#include "pool.h"

struct pool pool;
atomic_uint pool_counts[SUBJECTS];
__thread enum role pool_role = OTHER;

static _Atomic uint8_t seen[MOST_ITEMS];

static bool is_enough(const struct disturbance *d)
{
	for (int i = 0; d && i < SUBJECTS; i++)
		if (pool_counts[i] < d->least[i])
			return false;
	return true;
}

static bool is_timed(void)
{
	return pool.queueing == BY_TIMED_CONDITION ||
	       pool.queueing == BY_TIMED_SEMAPHORE;
}

static bool has_semaphore(void)
{
	return pool.queueing >= BY_SEMAPHORE;
}

/* A time limit that has sometimes passed already, and mostly is near the wake-up. */
static struct timespec soon(clockid_t clock)
{
	return in_ns(clock, (long)(test_random() % 300000));
}

void pool_await_more(void)
{
	struct timespec until;
	int err;

	if (is_timed()) {
		until = soon(CLOCK_MONOTONIC);
		err = pthread_cond_clockwait(&pool.more, &pool.mutex,
					     CLOCK_MONOTONIC, &until);
		CHECK(!err || err == ETIMEDOUT || err == EOWNERDEAD);
	} else {
		err = pthread_cond_wait(&pool.more, &pool.mutex);
		CHECK(!err || err == EOWNERDEAD);
	}
	if (err == EOWNERDEAD)
		CHECK_EQ(pthread_mutex_consistent(&pool.mutex), 0);
}

static void await_semaphore(void)
{
	struct timespec until;
	int err;

	do {
		if (is_timed()) {
			until = soon(CLOCK_REALTIME);
			err = sem_timedwait(&pool.items, &until);
		} else {
			err = sem_wait(&pool.items);
		}
		CHECK(!err || errno == EINTR || errno == ETIMEDOUT);
	} while (err);
}

void pool_put(uint32_t item)
{
	lock(&pool.mutex);
	CHECK(pool.head - pool.tail < ROOM);
	pool.queue[pool.head++ % ROOM] = item;
	if (pool.at_put)
		pool.at_put();
	unlock(&pool.mutex);
	if (has_semaphore())
		sem_post(&pool.items);
	else
		pthread_cond_signal(&pool.more);
}

uint32_t pool_take(void)
{
	uint32_t item = STOP;

	if (has_semaphore())
		await_semaphore();
	lock(&pool.mutex);
	pthread_cleanup_push(unlock, &pool.mutex);
	while (!has_semaphore() && pool.head == pool.tail && !pool.over)
		pool_await_more();
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, NULL);
	if (pool.head != pool.tail)
		item = pool.queue[pool.tail++ % ROOM];
	else
		CHECK(pool.over);
	pthread_cleanup_pop(1);
	return item;
}

static void end_queue(void)
{
	lock(&pool.mutex);
	pool.over = true;
	unlock(&pool.mutex);
	pthread_cond_broadcast(&pool.more);
	for (int i = 0; has_semaphore() && i < WORKERS; i++)
		sem_post(&pool.items);
}

void pool_finish(uint32_t item)
{
	CHECK_EQ(seen[item]++, 0);
	lock(&pool.tally);
	pool.done++;
	unlock(&pool.tally);
	pthread_cond_signal(&pool.progress);
}

void *pool_work(void *arg)
{
	uint32_t item;

	pool_role = WORKER;
	while ((item = pool_take()) != STOP) {
		if (pool.at_item)
			pool.at_item(item);
		pool_finish(item);
		pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, NULL);
	}
	return arg;
}

static int wait_for_set(bool ready[])
{
	const int ms = is_timed() ? (int)(test_random() % 2) : -1;
	struct epoll_event events[CHANNELS];
	int n = epoll_wait(pool.set, events, CHANNELS, ms);

	for (int i = 0; i < n; i++)
		ready[events[i].data.u32] = true;
	return n;
}

static int poll_all(unsigned int channels, bool ready[])
{
	const int ms = is_timed() ? (int)(test_random() % 2) : -1;
	struct pollfd fds[CHANNELS];
	int n;

	for (unsigned int i = 0; i < channels; i++)
		fds[i] = (struct pollfd){ pool.in[i], POLLIN, 0 };
	n = poll(fds, channels, ms);
	for (unsigned int i = 0; n > 0 && i < channels; i++)
		ready[i] = fds[i].revents;
	return n;
}

static int select_all(bool ready[])
{
	struct timeval limit = { 0, (suseconds_t)(test_random() % 1000) };
	fd_set fds;
	int n, end = 0;

	FD_ZERO(&fds);
	for (unsigned int i = 0; i < pool.channels; i++) {
		FD_SET(pool.in[i], &fds);
		if (end <= pool.in[i])
			end = pool.in[i] + 1;
	}
	n = select(end, &fds, NULL, NULL, is_timed() ? &limit : NULL);
	for (unsigned int i = 0; n > 0 && i < pool.channels; i++)
		ready[i] = FD_ISSET(pool.in[i], &fds);
	return n;
}

void pool_wait_for_any(enum listening listening, bool ready[])
{
	int n;

	memset(ready, 0, CHANNELS * sizeof(*ready));
	switch (listening) {
	case BY_EPOLL:
		n = wait_for_set(ready);
		break;
	case BY_SELECT:
		n = select_all(ready);
		break;
	case BY_POLL:
		n = poll_all(pool.channels, ready);
		break;
	default:
		n = poll_all(1, ready);
		break;
	}
	CHECK(n >= 0 || errno == EINTR);
}

uint32_t pool_receive(int fd)
{
	uint32_t item;
	ssize_t n;

	do
		n = recv(fd, &item, sizeof(item), 0);
	while (n < 0 && errno == EINTR);
	CHECK_EQ(n, sizeof(item));
	return item;
}

/* Takes the items of the channels that are ready. False: the last one was STOP. */
static bool pass_on(const bool ready[])
{
	for (unsigned int i = 0; i < pool.channels; i++) {
		uint32_t item = ready[i] ? pool_receive(pool.in[i]) : STOP;

		if (ready[i] && item == STOP)
			return false;
		if (ready[i])
			pool_put(item);
	}
	return true;
}

void *pool_listen(void *arg)
{
	bool ready[CHANNELS], more;

	pool_role = LISTENER;
	do {
		pool_wait_for_any(pool.listening, ready);
		pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, NULL);
		if (pool.at_turn)
			pool.at_turn();
		more = pass_on(ready);
		pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, NULL);
	} while (more);
	return arg;
}

static void await_all(void)
{
	lock(&pool.tally);
	while (pool.done != pool.fed)
		pthread_cond_wait(&pool.progress, &pool.tally);
	unlock(&pool.tally);
}

void pool_send(unsigned int channel, uint32_t item)
{
	ssize_t n;

	do
		n = send(pool.out[channel], &item, sizeof(item), 0);
	while (n < 0 && errno == EINTR);
	CHECK_EQ(n, sizeof(item));
}

void pool_feed(uint32_t least, const struct disturbance *d)
{
	const uint32_t first = pool.fed;

	while (pool.fed - first < least || !is_enough(d)) {
		for (int i = 0; i < BATCH; i++, pool.fed++) {
			CHECK(pool.fed < MOST_ITEMS);
			pool_send(pool.fed % pool.channels, pool.fed);
		}
		await_all();
	}
	for (uint32_t i = first; i < pool.fed; i++)
		CHECK_EQ(seen[i], 1);
}

static void init_mutex(void)
{
	pthread_mutexattr_t attr;

	pthread_mutexattr_init(&attr);
	pthread_mutexattr_settype(&attr, pool.mutex_type);
	pthread_mutexattr_setprotocol(&attr, pool.protocol);
	pthread_mutexattr_setrobust(&attr, pool.robustness);
	CHECK_EQ(pthread_mutex_init(&pool.mutex, &attr), 0);
	pthread_mutexattr_destroy(&attr);
}

static void open_channels(void)
{
	int pair[2];

	pool.channels = pool.listening == BY_POLL_OF_ONE ? 1 : CHANNELS;
	pool.set = epoll_create1(EPOLL_CLOEXEC);
	for (unsigned int i = 0; i < pool.channels; i++) {
		struct epoll_event event = { .events = EPOLLIN, .data.u32 = i };

		CHECK_EQ(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair),
			 0);
		pool.in[i] = pair[0];
		pool.out[i] = pair[1];
		CHECK_EQ(epoll_ctl(pool.set, EPOLL_CTL_ADD, pair[0], &event), 0);
	}
}

void pool_begin(void *(*worker)(void *), void *(*listener)(void *))
{
	memset((void *)seen, 0, sizeof(seen));
	memset((void *)pool_counts, 0, sizeof(pool_counts));
	init_mutex();
	pthread_cond_init(&pool.more, NULL);
	sem_init(&pool.items, 0, 0);
	pthread_mutex_init(&pool.tally, NULL);
	pthread_cond_init(&pool.progress, NULL);
	open_channels();
	pool.crew = worker ? WORKERS : 0;
	pool.listens = listener;
	start_all(pool.workers, pool.crew, worker, NULL);
	if (listener)
		pool.listener = start(listener, NULL);
}

void pool_end(void)
{
	pool_send(0, STOP);
	if (pool.listens)
		join(pool.listener);
	end_queue();
	join_all(pool.workers, pool.crew);
	for (unsigned int i = 0; i < pool.channels; i++) {
		close(pool.in[i]);
		close(pool.out[i]);
	}
	close(pool.set);
	pthread_cond_destroy(&pool.more);
	pthread_cond_destroy(&pool.progress);
}

static void *disturb(void *arg)
{
	const struct disturbance *d = arg;

	while (!is_enough(d)) {
		d->act();
		pool_counts[ACTS]++;
		if (test_random() % 4 == 0)
			usleep((useconds_t)(test_random() % 200));
	}
	return NULL;
}

void pool_run(const struct disturbance *d, struct pool which)
{
	pthread_t thread = 0;

	pool = which;
	pool.at_turn = d->at_turn;
	pool.at_item = d->at_item;
	pool_begin(pool_work, pool_listen);
	if (d->act)
		thread = start(disturb, (void *)d);
	pool_feed(10 * BATCH, d);
	if (d->act)
		join(thread);
	pool_end();
}

void pools_run(const struct disturbance *d)
{
	for (unsigned int i = 0; turns_left(i, LISTENINGS * QUEUEINGS); i++)
		pool_run(d, (struct pool){
			.listening = i % LISTENINGS,
			.queueing = (i + i / LISTENINGS) % QUEUEINGS });
}
