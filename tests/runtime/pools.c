/* SPDX-License-Identifier: MIT */
/*
 * Threads that hand work to each other, for test_run_pools.py, which counts what
 * they cost the kernel.
 *
 *	pools KIND TURNS
 *
 * The program makes some turns, prints "ready" and reads a byte. Then it makes as
 * many turns again, prints "done" and reads another byte. So at both times all of
 * its threads wait.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <linux/futex.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define MOST		32	/* connections */
#define WORKERS		8
#define SELDOM		300	/* turns from one wake-up to the next */
#define JOB_NS		1800000L

static void check(bool so, const char *what)
{
	if (so)
		return;
	perror(what);
	_exit(1);
}

static void wait_for_go(const char *word)
{
	char byte;

	check(write(1, word, strlen(word)) > 0, "write");
	check(read(0, &byte, 1) == 1, "read");
}

/*
 * A listener and its workers.
 *
 * A client sends a batch of requests on each connection, all at once, and begins the
 * next round when all have been answered. So the client wakes the server only a few
 * times for many requests, on one core as well as on two.
 */

enum listener { BY_EPOLL, BY_SELECT, BY_POLL };

struct kind {
	const char *name;
	enum listener listener;
	int connections, batch;
	/*
	 * The listener hands over the requests of this many connections, and answers
	 * the others.
	 */
	int handed;
	bool computes;
	int wakes;	/* turns between two wake-ups without a hand-over */
};

static const struct kind kinds[] = {
	{ "epoll", BY_EPOLL, MOST, 16, .handed = MOST },
	{ "select", BY_SELECT, 2, 64, .handed = 2 },
	{ "poll", BY_POLL, 2, 64, .handed = 2 },
	{ "loop", BY_EPOLL, 1, 1, .handed = 0 },
	{ "seldom", BY_EPOLL, 1, 1, .wakes = SELDOM },
	{ "computing", BY_EPOLL, 2, 2, .handed = 1, .computes = true },
};

static const struct kind *kind;
static int door;
/* The ends of the server and of the client. The last connection ends the listener. */
static int ours[MOST + 1], theirs[MOST + 1];
static int finished[2];
static int set;
static atomic_uint served;

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t more = PTHREAD_COND_INITIALIZER;
static int queue[MOST * 64];
static unsigned int head, tail;
static bool over;

static void put(int connection)
{
	pthread_mutex_lock(&mutex);
	queue[head++ % (MOST * 64)] = connection;
	pthread_mutex_unlock(&mutex);
	pthread_cond_signal(&more);
}

/* Returns -1 at the end. */
static int take(void)
{
	int connection = -1;

	pthread_mutex_lock(&mutex);
	while (head == tail && !over)
		pthread_cond_wait(&more, &mutex);
	if (head != tail)
		connection = queue[tail++ % (MOST * 64)];
	pthread_mutex_unlock(&mutex);
	return connection;
}

static void arm(int how, int i)
{
	struct epoll_event event = { .events = EPOLLIN, .data.u32 = (uint32_t)i };

	if (i >= kind->connections - kind->handed && i < kind->connections)
		event.events |= EPOLLONESHOT;
	check(!epoll_ctl(set, how, ours[i], &event), "epoll_ctl");
}

/*
 * A job is a number of steps, not a time: on a busy machine it may get the processor
 * for a part of the time only.
 */

static long steps;

static void compute(void)
{
	for (volatile long i = 0; i < steps; i++)
		;
}

static long now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * 1000000000 + now.tv_nsec;
}

/* The shortest of several tries is the least disturbed one. */
static void measure_steps(void)
{
	long least = JOB_NS;

	steps = 100000;
	for (int i = 0; i < 10; i++) {
		long begin = now_ns();

		compute();
		if (least > now_ns() - begin)
			least = now_ns() - begin;
	}
	steps = steps * JOB_NS / least;
}

static bool receive_request(int i)
{
	char byte;

	return recv(ours[i], &byte, 1, 0) == 1;
}

static void answer(int i)
{
	check(send(ours[i], "x", 1, 0) == 1, "send");
}

static void serve(int i)
{
	unsigned int round = (unsigned int)(kind->connections * kind->batch);

	if (kind->listener == BY_EPOLL)
		check(receive_request(i), "recv");
	if (kind->computes)
		compute();
	answer(i);
	if (kind->listener == BY_EPOLL)
		arm(EPOLL_CTL_MOD, i);
	if (!kind->computes && ++served % round == 0)
		check(write(finished[1], "x", 1) == 1, "write");
}

static void *work(void *arg)
{
	int i;

	while ((i = take()) >= 0)
		serve(i);
	return arg;
}

/* Returns the number of connections that are ready. */
static int wait_for_any(int ready[])
{
	struct epoll_event events[MOST];
	struct pollfd fds[MOST + 1];
	int n = 0, last = 0;
	fd_set readable;

	if (kind->listener == BY_EPOLL) {
		n = epoll_wait(set, events, MOST, -1);
		for (int i = 0; i < n; i++)
			ready[i] = (int)events[i].data.u32;
		return n;
	}
	FD_ZERO(&readable);
	for (int i = 0; i <= kind->connections; i++) {
		fds[i] = (struct pollfd){ ours[i], POLLIN, 0 };
		FD_SET(ours[i], &readable);
		last = ours[i] > last ? ours[i] : last;
	}
	if (kind->listener == BY_POLL)
		check(poll(fds, (nfds_t)kind->connections + 1, -1) > 0, "poll");
	else
		check(select(last + 1, &readable, NULL, NULL, NULL) > 0, "select");
	for (int i = 0; i <= kind->connections; i++)
		if (kind->listener == BY_POLL ? fds[i].revents != 0 :
						FD_ISSET(ours[i], &readable))
			ready[n++] = i;
	return n;
}

static void turn_to(int i)
{
	static int turns;

	if (i < kind->connections - kind->handed) {
		if (receive_request(i))
			answer(i);
		if (kind->wakes && ++turns % kind->wakes == 0)
			pthread_cond_signal(&more);
	} else if (kind->listener == BY_EPOLL || receive_request(i)) {
		put(i);
	}
}

static void *listen_to_all(void *arg)
{
	int ready[MOST + 1];

	for (int i = 0; i <= kind->connections; i++) {
		ours[i] = accept4(door, NULL, NULL, SOCK_NONBLOCK);
		check(ours[i] >= 0, "accept4");
		arm(EPOLL_CTL_ADD, i);
	}
	for (;;) {
		int n = wait_for_any(ready);

		for (int i = 0; i < n; i++) {
			if (ready[i] == kind->connections)
				return arg;
			turn_to(ready[i]);
		}
	}
}

static void read_all(int fd, int left)
{
	static char bytes[4096];

	while (left) {
		ssize_t n = read(fd, bytes, (size_t)left);

		check(n > 0, "read");
		left -= (int)n;
	}
}

/* Makes one round on all connections. */
static void request_all(void)
{
	static const char bytes[64];
	char byte;

	for (int i = 0; i < kind->connections; i++)
		check(write(theirs[i], bytes, (size_t)kind->batch) == kind->batch,
		      "write");
	if (kind->handed && !kind->computes)
		check(read(finished[0], &byte, 1) == 1, "read");
	for (int i = 0; i < kind->connections; i++)
		read_all(theirs[i], kind->batch);
}

static void request(int turns)
{
	for (int i = 0; i < turns; i += kind->connections * kind->batch)
		request_all();
}

static void run_client(int turns)
{
	struct sockaddr_un address;
	socklen_t size = sizeof(address);

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	check(!getsockname(door, (struct sockaddr *)&address, &size), "getsockname");
	for (int i = 0; i <= kind->connections; i++) {
		theirs[i] = socket(AF_UNIX, SOCK_STREAM, 0);
		check(!connect(theirs[i], (const struct sockaddr *)&address, size),
		      "connect");
	}
	/* The runtime notices after some jobs that a worker computes. */
	request(turns / (kind->computes ? 2 : 8));
	wait_for_go("ready\n");
	request(turns);
	wait_for_go("done\n");
	check(write(theirs[kind->connections], "x", 1) == 1, "write");
	_exit(0);
}

static void run_pool(int turns)
{
	const struct sockaddr none = { .sa_family = AF_UNIX };
	pthread_t threads[WORKERS], listener;

	measure_steps();
	set = epoll_create1(0);
	door = socket(AF_UNIX, SOCK_STREAM, 0);
	/* The kernel chooses the name. */
	check(!bind(door, &none, sizeof(sa_family_t)) && !listen(door, MOST + 1),
	      "listen");
	check(!pipe(finished), "pipe");
	if (!fork())
		run_client(turns);
	for (int i = 0; i < WORKERS; i++)
		check(!pthread_create(&threads[i], NULL, work, NULL), "thread");
	check(!pthread_create(&listener, NULL, listen_to_all, NULL), "thread");
	pthread_join(listener, NULL);
	pthread_mutex_lock(&mutex);
	over = true;
	pthread_cond_broadcast(&more);
	pthread_mutex_unlock(&mutex);
	for (int i = 0; i < WORKERS; i++)
		pthread_join(threads[i], NULL);
	wait(NULL);
}

/*
 * Two threads, each of which waits for the other one at each turn. They hand over a
 * permit. Or they go round three locks: each holds one, and waits for the one that
 * the other holds.
 */

struct way {
	const char *name;
	void (*await)(int me), (*give)(int me);
};

static struct side {
	pthread_mutex_t mutex;
	pthread_cond_t cond;
	sem_t sem;
	_Atomic unsigned int permit;
	int locked, last;
} sides[2] = { { .permit = 1, .locked = 0 }, { .locked = 2 } };

static pthread_mutex_t mutexes[3];
static pthread_rwlock_t rwlocks[3];
static pthread_barrier_t barrier;
static const struct way *way;
static int turns_of_both;

static void await_condition(int me)
{
	struct side *side = &sides[me];

	pthread_mutex_lock(&side->mutex);
	while (!side->permit)
		pthread_cond_wait(&side->cond, &side->mutex);
	side->permit = 0;
	pthread_mutex_unlock(&side->mutex);
}

/* Waits as a thread of Java's parks. */
static void await_timed(int me)
{
	struct side *side = &sides[me];
	struct timespec hour;

	pthread_mutex_lock(&side->mutex);
	clock_gettime(CLOCK_MONOTONIC, &hour);
	hour.tv_sec += 3600;
	while (!side->permit)
		pthread_cond_clockwait(&side->cond, &side->mutex, CLOCK_MONOTONIC,
				       &hour);
	side->permit = 0;
	pthread_mutex_unlock(&side->mutex);
}

static void give_condition(int me)
{
	struct side *side = &sides[!me];

	pthread_mutex_lock(&side->mutex);
	side->permit = 1;
	pthread_mutex_unlock(&side->mutex);
	pthread_cond_signal(&side->cond);
}

static void await_semaphore(int me)
{
	sem_wait(&sides[me].sem);
}

static void give_semaphore(int me)
{
	sem_post(&sides[!me].sem);
}

static void await_barrier(int me)
{
	pthread_barrier_wait(&barrier);
	(void)me;
}

static void give_nothing(int me)
{
	(void)me;
}

static void await_futex(int me)
{
	struct side *side = &sides[me];

	while (!side->permit)
		syscall(SYS_futex, &side->permit, FUTEX_WAIT_PRIVATE, 0, NULL);
	side->permit = 0;
}

static void give_futex(int me)
{
	sides[!me].permit = 1;
	syscall(SYS_futex, &sides[!me].permit, FUTEX_WAKE_PRIVATE, 1);
}

static void go_on(struct side *side)
{
	side->last = side->locked;
	side->locked = (side->locked + 1) % 3;
}

static void await_mutex(int me)
{
	go_on(&sides[me]);
	pthread_mutex_lock(&mutexes[sides[me].locked]);
}

static void give_mutex(int me)
{
	pthread_mutex_unlock(&mutexes[sides[me].last]);
}

static void await_rwlock(int me)
{
	go_on(&sides[me]);
	if (me)
		pthread_rwlock_rdlock(&rwlocks[sides[me].locked]);
	else
		pthread_rwlock_wrlock(&rwlocks[sides[me].locked]);
}

static void give_rwlock(int me)
{
	pthread_rwlock_unlock(&rwlocks[sides[me].last]);
}

/*
 * Side 1 is a listener that wakes no thread: its worker looks for work by itself.
 * But the listener waits for the worker, as if for the lock of a queue.
 */
static int packets[2];

static void await_lock(int me)
{
	struct epoll_event event;
	char byte;

	if (!me) {
		while (!sides[0].permit)
			sched_yield();
		sides[0].permit = 0;
		return;
	}
	check(epoll_wait(set, &event, 1, -1) == 1, "epoll_wait");
	check(recv(packets[0], &byte, 1, 0) == 1, "recv");
	await_futex(1);
}

static void give_lock(int me)
{
	if (me) {
		sides[0].permit = 1;
		return;
	}
	check(send(packets[1], "x", 1, 0) == 1, "send");
	/* Gives the listener time to begin its wait. */
	usleep(20);
	give_futex(0);
}

/*
 * The same, but the listener doesn't wait for a lock, and its worker receives the
 * packet. Side 0 sends the next packet when the listener has handed over the last
 * one.
 */
static void await_silent(int me)
{
	struct epoll_event event;
	char byte;

	if (me) {
		check(epoll_wait(set, &event, 1, -1) == 1, "epoll_wait");
		return;
	}
	while (!sides[0].permit)
		sched_yield();
	sides[0].permit = 0;
	recv(packets[0], &byte, 1, 0);
}

static void give_silent(int me)
{
	if (me)
		sides[0].permit = 1;
	else
		check(send(packets[1], "x", 1, 0) == 1, "send");
}

static const struct way ways[] = {
	{ "silent", await_silent, give_silent },
	{ "lock", await_lock, give_lock },
	{ "condition", await_condition, give_condition },
	{ "timed", await_timed, give_condition },
	{ "semaphore", await_semaphore, give_semaphore },
	{ "barrier", await_barrier, give_nothing },
	{ "futex", await_futex, give_futex },
	{ "mutex", await_mutex, give_mutex },
	{ "rwlock", await_rwlock, give_rwlock },
};

static void take_turns(int me, int turns)
{
	for (int i = 0; i < turns; i++) {
		way->await(me);
		way->give(me);
	}
}

static void *run_side(void *arg)
{
	int me = arg != NULL;

	pthread_mutex_lock(&mutexes[sides[me].locked]);
	pthread_rwlock_wrlock(&rwlocks[sides[me].locked]);
	pthread_barrier_wait(&barrier);
	take_turns(me, turns_of_both / 8);
	if (!me)
		wait_for_go("ready\n");
	take_turns(me, turns_of_both);
	if (!me)
		wait_for_go("done\n");
	return arg;
}

static void run_both(int turns)
{
	pthread_t threads[2];

	struct epoll_event event = { .events = EPOLLIN | EPOLLET };

	turns_of_both = turns;
	set = epoll_create1(0);
	check(!socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, packets) &&
	      !epoll_ctl(set, EPOLL_CTL_ADD, packets[0], &event), "epoll_ctl");
	pthread_barrier_init(&barrier, NULL, 2);
	for (int i = 0; i < 3; i++) {
		pthread_mutex_init(&mutexes[i], NULL);
		pthread_rwlock_init(&rwlocks[i], NULL);
	}
	for (int i = 0; i < 2; i++) {
		pthread_mutex_init(&sides[i].mutex, NULL);
		pthread_cond_init(&sides[i].cond, NULL);
		sem_init(&sides[i].sem, 0, !i);
	}
	for (long i = 0; i < 2; i++)
		check(!pthread_create(&threads[i], NULL, run_side, (void *)i),
		      "thread");
	for (int i = 0; i < 2; i++)
		pthread_join(threads[i], NULL);
}

int main(int argc, char **argv)
{
	const int turns = argc == 3 ? atoi(argv[2]) : 0;

	for (size_t i = 0; turns && i < sizeof(kinds) / sizeof(*kinds); i++)
		if (!strcmp(argv[1], kinds[i].name))
			kind = &kinds[i];
	for (size_t i = 0; turns && i < sizeof(ways) / sizeof(*ways); i++)
		if (!strcmp(argv[1], ways[i].name))
			way = &ways[i];
	alarm(60);
	if (kind)
		run_pool(turns);
	else if (way)
		run_both(turns);
	else
		return 2;
	return 0;
}
