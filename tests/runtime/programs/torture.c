/* SPDX-License-Identifier: MIT */
/*
 * Is a wake-up ever lost? Producers and consumers pass tokens through everything
 * that a thread can wait on. Meanwhile other threads wait there and are cancelled,
 * signals arrive constantly, and all threads sleep, compute and yield at random.
 *
 *	threads-torture [seconds=N] [seed=N]
 *
 * The result doesn't depend on speed. At the end each token has to have come out: a
 * thread that waits for a lost token waits until the test's time limit.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <limits.h>
#include <linux/futex.h>
#include <poll.h>
#include <semaphore.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/eventfd.h>
#include <sys/socket.h>

#include "threads.h"

/* producers of each channel, and as many consumers */
#define WORKERS		4
#define VICTIMS		6
#define BARRIER		5
#define ROOM		16	/* of a queue */

static uint64_t seed;
static atomic_bool stop;

/* Each thread has its own sequence. */
static __thread uint64_t state;

static void sow(uint64_t n)
{
	state = (seed + n) * 0x9e3779b97f4a7c15ULL | 1;
}

static unsigned int chance(unsigned int n)
{
	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return (unsigned int)(state >> 20) % n;
}

static void dawdle(void)
{
	uint64_t until;

	switch (chance(48)) {
	case 0:
		usleep(chance(300));
		break;
	case 1:
	case 2:
		sched_yield();
		break;
	case 3:
		until = now_ns() + chance(50000);
		while (now_ns() < until)
			;
		break;
	default:
		break;
	}
}

/* Channels. put() adds a token, and take() waits for a token and removes it. */

struct channel {
	const char *name;
	void (*put)(struct channel *c);
	void (*take)(struct channel *c);
	int fds[2];
	sem_t items, room;
	pthread_mutex_t mutex;
	pthread_cond_t more, less;
	pthread_rwlock_t rwlock;
	unsigned int held;
	long a, b;		/* equal unless a thread holds the write lock */
	atomic_long given, taken, total;
};

static void put_byte(struct channel *c)
{
	while (write(c->fds[1], "x", 1) != 1)
		CHECK_EQ(errno, EINTR);
}

static void take_byte(struct channel *c)
{
	struct pollfd fd = { c->fds[0], POLLIN, 0 };
	char byte;

	if (!chance(4))
		poll(&fd, 1, chance(2) ? -1 : 1);
	while (read(c->fds[0], &byte, 1) != 1)
		CHECK_EQ(errno, EINTR);
}

static void take_received(struct channel *c)
{
	char byte;

	while (recv(c->fds[0], &byte, 1, 0) != 1)
		CHECK_EQ(errno, EINTR);
}

static void put_event(struct channel *c)
{
	while (eventfd_write(c->fds[0], 1))
		CHECK_EQ(errno, EINTR);
}

static void take_event(struct channel *c)
{
	eventfd_t value;

	while (eventfd_read(c->fds[0], &value))
		CHECK_EQ(errno, EINTR);
	CHECK_EQ(value, 1);
}

static void down(sem_t *sem)
{
	struct timespec until;
	int err;

	do {
		if (chance(3)) {
			err = sem_wait(sem);
		} else {
			until = in_ms(CLOCK_REALTIME, chance(3));
			err = sem_timedwait(sem, &until);
		}
		CHECK(!err || errno == EINTR || errno == ETIMEDOUT);
	} while (err);
}

static void put_post(struct channel *c)
{
	down(&c->room);
	sem_post(&c->items);
}

static void take_post(struct channel *c)
{
	down(&c->items);
	sem_post(&c->room);
}

static void unlock(void *mutex)
{
	pthread_mutex_unlock(mutex);
}

static void await(struct channel *c, pthread_cond_t *cond)
{
	struct timespec until;
	int err;

	if (chance(3)) {
		err = pthread_cond_wait(cond, &c->mutex);
	} else {
		until = in_ms(CLOCK_REALTIME, chance(3));
		err = pthread_cond_timedwait(cond, &c->mutex, &until);
	}
	CHECK(!err || err == ETIMEDOUT);
}

static void put_item(struct channel *c)
{
	pthread_mutex_lock(&c->mutex);
	pthread_cleanup_push(unlock, &c->mutex);
	while (c->held == ROOM)
		await(c, &c->less);
	c->held++;
	pthread_cond_signal(&c->more);
	pthread_cleanup_pop(1);
}

static void take_item(struct channel *c)
{
	pthread_mutex_lock(&c->mutex);
	pthread_cleanup_push(unlock, &c->mutex);
	while (!c->held)
		await(c, &c->more);
	c->held--;
	pthread_cond_signal(&c->less);
	pthread_cleanup_pop(1);
}

/*
 * A counter that only a thread with the write lock changes. A consumer that finds no
 * token tries again.
 */
static void put_written(struct channel *c)
{
	pthread_rwlock_wrlock(&c->rwlock);
	c->a++;
	if (!chance(16))
		sched_yield();
	c->b++;
	pthread_rwlock_unlock(&c->rwlock);
}

static bool any_written(struct channel *c)
{
	struct timespec until = in_ms(CLOCK_REALTIME, chance(3));
	bool any = false;

	if (chance(2))
		pthread_rwlock_rdlock(&c->rwlock);
	else if (pthread_rwlock_timedrdlock(&c->rwlock, &until))
		return false;
	any = c->a;
	CHECK_EQ(c->a, c->b);
	pthread_rwlock_unlock(&c->rwlock);
	return any;
}

static void take_written(struct channel *c)
{
	for (;; usleep(chance(2) * chance(200))) {
		bool mine;

		if (!any_written(c))
			continue;
		pthread_rwlock_wrlock(&c->rwlock);
		mine = c->a;
		c->a -= mine;
		c->b -= mine;
		pthread_rwlock_unlock(&c->rwlock);
		if (mine)
			return;
	}
}

static struct channel channels[] = {
	{ .name = "pipe", .put = put_byte, .take = take_byte },
	{ .name = "socket", .put = put_byte, .take = take_received },
	{ .name = "event", .put = put_event, .take = take_event },
	{ .name = "semaphore", .put = put_post, .take = take_post },
	{ .name = "condition", .put = put_item, .take = take_item },
	{ .name = "rwlock", .put = put_written, .take = take_written },
};

#define CHANNELS	(sizeof(channels) / sizeof(channels[0]))

static void open_channel(struct channel *c)
{
	if (c->put == put_event)
		c->fds[0] = eventfd(0, EFD_SEMAPHORE);
	else if (c->take == take_received)
		CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, c->fds), 0);
	else if (c->put == put_byte)
		CHECK_EQ(pipe(c->fds), 0);
	if (c->take == take_byte)
		fcntl(c->fds[0], F_SETPIPE_SZ, 4096);
	sem_init(&c->items, 0, 0);
	sem_init(&c->room, 0, ROOM);
	pthread_mutex_init(&c->mutex, NULL);
	pthread_cond_init(&c->more, NULL);
	pthread_cond_init(&c->less, NULL);
	pthread_rwlock_init(&c->rwlock, NULL);
	c->total = LONG_MAX;
}

/* Threads that pass tokens. */

struct worker {
	pthread_t thread;
	struct channel *channel;
	unsigned int number;
};

static void *produce(void *arg)
{
	struct worker *w = arg;

	sow(w->number);
	while (!stop) {
		w->channel->put(w->channel);
		w->channel->given++;
		dawdle();
	}
	return NULL;
}

static void *consume(void *arg)
{
	struct worker *w = arg;

	sow(w->number);
	do {
		dawdle();
		w->channel->take(w->channel);
		/* A count above the total is the sign to end. */
	} while (w->channel->taken++ < w->channel->total);
	return NULL;
}

/*
 * Waits among the others, and is cancelled. It returns each token that it gets.
 * libc's own read() may be cancelled after it has read, so these threads don't read
 * from descriptors.
 */
static void *suffer(void *arg)
{
	struct worker *w = arg;
	struct channel *c = w->channel;
	struct pollfd fd = { c->fds[0], POLLIN, 0 };

	sow(w->number);
	for (;;) {
		usleep(chance(200));
		if (c->fds[0]) {
			poll(&fd, 1, -1);
			continue;
		}
		c->take(c);
		/* If this call waits for room, other threads make room. */
		pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, NULL);
		c->put(c);
		pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, NULL);
		pthread_testcancel();
	}
	return NULL;
}

/*
 * Any channel except the last one: a cancelled take() could leave that one's lock
 * held.
 */
static struct channel *to_suffer_on(void)
{
	return &channels[chance(CHANNELS - 1)];
}

static void *torment(void *arg)
{
	struct worker victims[VICTIMS];
	unsigned int number = (unsigned int)(uintptr_t)arg;

	for (sow(number); !stop; number += 1000) {
		for (unsigned int i = 0; i < VICTIMS; i++) {
			victims[i].channel = to_suffer_on();
			victims[i].number = number + i;
			victims[i].thread = start(suffer, &victims[i]);
		}
		usleep(chance(4000));
		for (unsigned int i = 0; i < VICTIMS; i++)
			pthread_cancel(victims[i].thread);
		for (unsigned int i = 0; i < VICTIMS; i++)
			CHECK(join(victims[i].thread) == PTHREAD_CANCELED);
	}
	return NULL;
}

static pthread_barrier_t barrier;
static atomic_long arrived;
static atomic_bool last_round;

static void *meet(void *arg)
{
	sow((uintptr_t)arg);
	for (long round = 1; !last_round; round++) {
		dawdle();
		arrived++;
		if (pthread_barrier_wait(&barrier) ==
		    PTHREAD_BARRIER_SERIAL_THREAD) {
			CHECK_EQ(arrived, round * BARRIER);
			if (stop)
				last_round = true;
		}
		pthread_barrier_wait(&barrier);
	}
	return NULL;
}

static atomic_long handled;

static void count(int signo)
{
	(void)signo;
	handled++;
}

static void handle_signal(int signo, int flags)
{
	struct sigaction action = { .sa_handler = count, .sa_flags = flags };

	CHECK_EQ(sigaction(signo, &action, NULL), 0);
}

static struct worker workers[CHANNELS][2][WORKERS];

static void rain(uint64_t seconds)
{
	uint64_t until = now_ns() + seconds * SECOND;

	while (now_ns() < until) {
		struct worker *w = &workers[chance(CHANNELS)][chance(2)]
					   [chance(WORKERS)];

		pthread_kill(w->thread, chance(2) ? SIGUSR1 : SIGUSR2);
		usleep(chance(1500));
	}
}

static void begin(struct channel *c, unsigned int at)
{
	open_channel(c);
	for (unsigned int i = 0; i < 2 * WORKERS; i++) {
		struct worker *w = &workers[at][i % 2][i / 2];

		w->channel = c;
		w->number = at * 100 + i;
		w->thread = start(i % 2 ? consume : produce, w);
	}
}

static void finish(struct channel *c, unsigned int at)
{
	for (unsigned int i = 0; i < WORKERS; i++)
		join(workers[at][0][i].thread);
	c->total = c->given;
	for (unsigned int i = 0; i < WORKERS; i++)
		c->put(c);
	for (unsigned int i = 0; i < WORKERS; i++)
		join(workers[at][1][i].thread);
	CHECK_EQ(c->taken, c->given + WORKERS);
	CHECK(c->given > 0);
	test_note("%s: %ld tokens", c->name, c->given);
}

TEST_LIMIT(no_wake_up_is_lost, 3600)
{
	unsigned long seconds = test_parameter("seconds", 4);
	pthread_t tormentors[2], met[BARRIER];

	/* A hang is a failure, too. */
	alarm((unsigned int)seconds + 60);
	seed = test_parameter("seed", 1);
	sow(0);
	handle_signal(SIGUSR1, 0);
	handle_signal(SIGUSR2, SA_RESTART);
	pthread_barrier_init(&barrier, NULL, BARRIER);
	for (unsigned int i = 0; i < CHANNELS; i++)
		begin(&channels[i], i);
	for (uintptr_t i = 0; i < BARRIER; i++)
		met[i] = start(meet, (void *)(i + 5000));
	for (uintptr_t i = 0; i < 2; i++)
		tormentors[i] = start(torment, (void *)(10000 + i * 100));
	rain(seconds);
	stop = true;
	join_all(tormentors, 2);
	for (unsigned int i = 0; i < CHANNELS; i++)
		finish(&channels[i], i);
	join_all(met, BARRIER);
	CHECK(handled > 0);
	test_note("%ld signals, %ld rounds", handled, arrived / BARRIER);
}

/*
 * A wait is woken or interrupted as its limit expires, and its thread ends soon
 * after. A wake-up that futex(2) reports has to end one wait, and no other wait may
 * report one. The same holds for a semaphore's posts, while its waiters are
 * cancelled.
 */

#define NEAR_NS		200000
#define ENOUGH		2000	/* ends of each kind */

/* no thread wakes the waiters of the last one */
static _Atomic uint32_t words[3];
static sem_t near;
static bool requeues;
static atomic_long claimed, moved, woken, late, posted, got;

static long futex(_Atomic uint32_t *word, int op, uint32_t n, uintptr_t more)
{
	return syscall(SYS_futex, word, op | FUTEX_PRIVATE_FLAG, n, more,
		       &words[1 + chance(2)]);
}

static void wait_for_word(void)
{
	struct timespec limit = { 0, chance(NEAR_NS) };

	if (!futex(&words[chance(2)], FUTEX_WAIT, 0, (uintptr_t)&limit))
		woken++;
	else if (errno == ETIMEDOUT)
		late++;
	else
		CHECK_EQ(errno, EINTR);
}

static void wait_for_post(void)
{
	struct timespec until = in_ms(CLOCK_REALTIME, 0);

	until.tv_nsec += chance(NEAR_NS);
	until.tv_nsec -= until.tv_nsec >= (long)SECOND ? NEAR_NS : 0;
	if (!sem_timedwait(&near, &until))
		got++;
	else
		CHECK(errno == ETIMEDOUT || errno == EINTR);
}

static void *wait_a_little(void *arg)
{
	sow((uintptr_t)arg);
	for (unsigned int i = chance(8); i; i--)
		if (chance(4))
			wait_for_word();
		else
			wait_for_post();
	return NULL;
}

static void *renew(void *arg)
{
	uintptr_t number = (uintptr_t)arg;

	for (sow(number); !stop; number += 1000) {
		pthread_t waiter = start(wait_a_little, (void *)number);

		for (unsigned int i = chance(4); i; i--) {
			usleep(chance(300));
			pthread_kill(waiter, SIGUSR1);
		}
		if (!chance(4))
			pthread_cancel(waiter);
		join(waiter);
	}
	return NULL;
}

static void *wake_some(void *arg)
{
	for (sow((uintptr_t)arg); !stop; dawdle()) {
		if (requeues && chance(3))
			moved += futex(&words[0], FUTEX_REQUEUE, 0, 1 + chance(3));
		claimed += futex(&words[chance(2)], FUTEX_WAKE, 1 + chance(2), 0);
		if (!chance(3)) {
			posted++;
			sem_post(&near);
		}
		usleep(chance(2) * chance(100));
	}
	return NULL;
}

static bool each_end_happened(long n)
{
	return claimed >= n && late >= n && got >= n && (moved || !requeues);
}

/* On a busy machine there are as many ends of each kind as fit into some seconds. */
static void wake_near_the_limit(void)
{
	const uint64_t end = now_ns() + 10 * SECOND;
	pthread_t waiters[2 * WORKERS], wakers[2];
	int left;

	stop = false;
	sow(0);
	handle_signal(SIGUSR1, 0);
	sem_init(&near, 0, 0);
	for (uintptr_t i = 0; i < 2 * WORKERS; i++)
		waiters[i] = start(renew, (void *)(i + 1));
	for (uintptr_t i = 0; i < 2; i++)
		wakers[i] = start(wake_some, (void *)(i + 100));
	while (!each_end_happened(1) || (!each_end_happened(ENOUGH) && now_ns() < end))
		usleep(1000);
	stop = true;
	join_all(waiters, 2 * WORKERS);
	join_all(wakers, 2);
	sem_getvalue(&near, &left);
	CHECK_EQ(got + left, posted);
	test_note("%ld woken, %ld late, %ld got", claimed, late, got);
}

TEST(a_wake_up_near_the_limit_ends_one_wait)
{
	wake_near_the_limit();
	CHECK_EQ(woken, claimed);
}

/* Waiters in the kernel are woken, although a requeue reports them as moved. */
TEST(a_wait_that_was_moved_ends_once)
{
	requeues = true;
	wake_near_the_limit();
	CHECK(moved > 0);
	CHECK(woken >= claimed && woken <= claimed + moved);
}
