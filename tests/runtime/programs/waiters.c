/* SPDX-License-Identifier: MIT */
/* Threads that wait. See waiters.h. */
#define _GNU_SOURCE
#include <netinet/in.h>
#include <semaphore.h>
#include <signal.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/socket.h>

#include "waiters.h"

enum kind {
	SLEEPS, WAITS_FOR_A_TIME, READS, RECEIVES, POLLS, ACCEPTS, JOINS,
	IS_SIGNALLED, KINDS
};

enum { OF_A_KIND = 4, WAITERS = KINDS * OF_A_KIND };

static struct waiter {
	enum kind kind;
	int own, other;		/* ends of a pair of sockets */
	pthread_t thread;
	atomic_long waits;
} waiters[WAITERS];

static struct shared {
	atomic_bool stop;
	atomic_long wrong;
	/* the longest pause of the process itself, in ns */
	_Atomic uint64_t worst;
	atomic_long rounds;
	_Atomic int tids[WAITERS];
} *shared;

atomic_bool waiters_stop;
static int listener;
static struct sockaddr_in address;

static void sleep_once(struct waiter *w)
{
	(void)w;
	usleep(1000);
}

/*
 * Two waiters take turns of 1 ms, so a post often comes when the limit expires. The
 * other waiters get no post.
 */
static sem_t turns[OF_A_KIND];

static void wait_for_a_time(struct waiter *w)
{
	unsigned int i = (unsigned int)(w - waiters) / KINDS;
	struct timespec until = in_ms(CLOCK_REALTIME, 2);

	if (sem_timedwait(&turns[i], &until)) {
		CHECK_EQ(errno, ETIMEDOUT);
		return;
	}
	usleep(1000);
	sem_post(&turns[!i]);
}

static void begin_turns(void)
{
	for (unsigned int i = 0; i < OF_A_KIND; i++)
		sem_init(&turns[i], 0, !i);
}

static void no_post_is_lost(void)
{
	int value, sum = 0;

	for (unsigned int i = 0; i < OF_A_KIND; i++, sum += value)
		sem_getvalue(&turns[i], &value);
	CHECK_EQ(sum, 1);
}

/* Reads the bytes of a sequence, one at a time. */
static void read_byte(struct waiter *w)
{
	unsigned char byte;
	ssize_t n = read(w->own, &byte, 1);

	if (!n)
		return;
	CHECK_EQ(n, 1);
	CHECK_EQ(byte, (unsigned char)(w->waits + 1));
	CHECK_EQ(write(w->own, &byte, 1), 1);
}

static void receive_byte(struct waiter *w)
{
	unsigned char byte;
	ssize_t n = recv(w->own, &byte, 1, 0);

	if (!n)
		return;
	CHECK_EQ(n, 1);
	CHECK_EQ(byte, (unsigned char)(w->waits + 1));
	CHECK_EQ(send(w->own, &byte, 1, 0), 1);
}

static void poll_for_byte(struct waiter *w)
{
	struct pollfd fd = { w->own, POLLIN, 0 };

	CHECK_EQ(poll(&fd, 1, -1), 1);
	read_byte(w);
}

static void accept_one(struct waiter *w)
{
	int fd = accept(listener, NULL, NULL);

	(void)w;
	if (waiters_stop && fd < 0)
		return;
	CHECK(fd >= 0);
	CHECK_EQ(write(fd, "y", 1), 1);
	close(fd);
}

static void join_one(struct waiter *w)
{
	(void)w;
	join(start(nothing, NULL));
	usleep(500);
}

static void handle(int signo)
{
	(void)signo;
}

static void be_signalled(struct waiter *w)
{
	shared->tids[w - waiters] = gettid();
	while (usleep(900000) == 0 && !waiters_stop)
		;
}

static void *wait_again_and_again(void *arg)
{
	static void (*const once[KINDS])(struct waiter *) = {
		sleep_once, wait_for_a_time, read_byte, receive_byte,
		poll_for_byte, accept_one, join_one, be_signalled,
	};
	struct waiter *w = arg;

	while (!waiters_stop) {
		once[w->kind](w);
		w->waits++;
	}
	shared->tids[w - waiters] = 0;
	return NULL;
}

/*
 * The process that wakes the waiters. This process has no threads, so the runtime is
 * inactive in it.
 */

static void wake_by_byte(const struct waiter *w, unsigned char round)
{
	unsigned char byte = round;

	if (write(w->other, &byte, 1) != 1 || !has_byte(w->other) ||
	    read(w->other, &byte, 1) != 1 || byte != round)
		shared->wrong++;
}

static void connect_once(void)
{
	int fd = socket(AF_INET, SOCK_STREAM, 0);
	char byte;

	if (connect(fd, (struct sockaddr *)&address, sizeof(address)) ||
	    !has_byte(fd) || read(fd, &byte, 1) != 1)
		shared->wrong++;
	close(fd);
}

static void wake_all(unsigned char round)
{
	for (int i = 0; i < WAITERS && !shared->wrong; i++)
		if (waiters[i].kind == READS || waiters[i].kind == RECEIVES ||
		    waiters[i].kind == POLLS)
			wake_by_byte(&waiters[i], round);
		else if (waiters[i].kind == ACCEPTS)
			connect_once();
		else if (waiters[i].kind == IS_SIGNALLED && shared->tids[i])
			raw_syscall(SYS_tgkill, (uint64_t)getppid(),
				    (uint64_t)shared->tids[i], SIGUSR1, 0, 0, 0);
}

static void be_waker(void)
{
	for (unsigned char round = 1; !shared->stop && !shared->wrong; round++) {
		uint64_t begin = now_ns(), pause;

		usleep(1000);
		pause = now_ns() - begin;
		if (pause > shared->worst)
			shared->worst = pause;
		wake_all(round);
		shared->rounds++;
	}
	test_leave();
}

/* Reports a waiter that doesn't continue, and whether the others do. */
static void fail_to_wait(enum kind kind, const long *until, long n, long rounds)
{
	char waits[128] = "";

	for (int i = kind; i < WAITERS; i += KINDS)
		snprintf(waits + strlen(waits), sizeof(waits) - strlen(waits),
			 " %ld", waiters[i].waits - until[i] + n);
	test_fail(__FILE__, __LINE__,
		  "threads of kind %d have waited%s times in %ld rounds, expected "
		  "%ld each", kind, waits, rounds, n);
}

void all_go_on(long n, const struct hang *hanging, unsigned int count)
{
	const long begun = shared->rounds;
	long until[WAITERS];

	for (int i = 0; i < WAITERS; i++)
		until[i] = waiters[i].waits + n;
	for (int i = 0; i < WAITERS; i++)
		while (waiters[i].waits < until[i]) {
			CHECK_EQ(shared->wrong, 0);
			for (unsigned int j = 0; j < count; j++)
				if (hanging[j].expired)
					fail_to_wait(waiters[i].kind, until, n,
						     shared->rounds - begun);
			usleep(1000);
		}
}

int begin_waiting(void)
{
	const struct sigaction action = { .sa_handler = handle };
	int pid;

	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE,
		      MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	CHECK(shared != MAP_FAILED);
	CHECK_EQ(sigaction(SIGUSR1, &action, NULL), 0);
	listener = listening_socket(&address, 0, 100);
	for (int i = 0; i < WAITERS; i++) {
		int pair[2];

		CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
		waiters[i].kind = (enum kind)(i % KINDS);
		waiters[i].own = pair[0];
		waiters[i].other = pair[1];
	}
	begin_turns();
	pid = test_fork();
	if (!pid)
		be_waker();
	for (int i = 0; i < WAITERS; i++)
		waiters[i].thread = start(wait_again_and_again, &waiters[i]);
	all_go_on(3, NULL, 0);
	return pid;
}

void end_waiting(int pid)
{
	shared->stop = true;
	test_reap(pid);
	CHECK_EQ(shared->wrong, 0);
	waiters_stop = true;
	CHECK_EQ(shutdown(listener, SHUT_RDWR), 0);
	for (int i = 0; i < WAITERS; i++)
		CHECK_EQ(shutdown(waiters[i].other, SHUT_RDWR), 0);
	for (int i = 0; i < WAITERS; i++)
		join(waiters[i].thread);
	no_post_is_lost();
}

void waker_pause_reset(void)
{
	shared->worst = 0;
}

uint64_t waker_pause(void)
{
	return shared->worst;
}
