/* SPDX-License-Identifier: MIT */
/*
 * Signals and cancellations for threads. A waiting thread handles a signal before
 * any later event. A thread that has ended can still be addressed until it is
 * joined.
 */
#define _GNU_SOURCE
#include <semaphore.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/syscall.h>

#include "threads.h"

static __thread int handled;
static atomic_int all_handled, last_value;

static void handle(int signo, siginfo_t *info, void *context)
{
	(void)signo;
	(void)context;
	last_value = info->si_value.sival_int;
	handled++;
	all_handled++;
}

static void handle_signals(void)
{
	struct sigaction action = { .sa_sigaction = handle,
				    .sa_flags = SA_RESTART | SA_SIGINFO };

	CHECK_EQ(sigaction(SIGUSR1, &action, NULL), 0);
	CHECK_EQ(sigaction(SIGURG, &action, NULL), 0);
	CHECK_EQ(sigaction(SIGRTMIN, &action, NULL), 0);
}

/* Threads that have ended and aren't joined yet. */

static void *end_at_once(void *tid)
{
	*(pid_t *)tid = gettid();
	return tid;
}

static void *end_later(void *tid)
{
	*(pid_t *)tid = gettid();
	for (int i = 0; i < 5; i++)
		usleep(100);
	return tid;
}

/* Waits until the kernel thread has ended. */
static void await_end(pid_t tid)
{
	while (!tgkill(getpid(), tid, 0))
		usleep(100);
	CHECK_EQ(errno, ESRCH);
}

static void *signal_ended_threads(void *arg)
{
	void *(*const ends[])(void *) = { end_at_once, end_later };

	for (int i = 0; i < 20; i++) {
		const union sigval value = { .sival_int = 3 };
		volatile pid_t tid = 0;
		pthread_t thread = start(ends[i % 2], (void *)&tid);
		int err;

		while (!tid)
			usleep(100);
		await_end(tid);
		CHECK_EQ(pthread_kill(thread, 0), 0);
		CHECK_EQ(pthread_kill(thread, SIGUSR1), 0);
		err = pthread_sigqueue(thread, SIGRTMIN, value);
		CHECK(!err || err == ESRCH);
		CHECK_EQ(pthread_cancel(thread), 0);
		CHECK_EQ(pthread_cancel(thread), 0);
		CHECK_EQ(tgkill(getpid(), tid, SIGUSR1), -1);
		CHECK_EQ(errno, ESRCH);
		/* Another process may have a thread with this ID, and ignores SIGURG. */
		CHECK_EQ(syscall(SYS_tkill, tid, SIGURG), -1);
		CHECK_EQ(errno, ESRCH);
		/* The cancellation came too late. */
		CHECK(join(thread) == &tid);
		CHECK_EQ(all_handled, 0);
	}
	return arg;
}

TEST_LIMIT(an_ended_thread_can_be_signalled_until_it_is_joined, 60)
{
	handle_signals();
	signal_ended_threads(NULL);
	join(start(signal_ended_threads, NULL));
}

/* Threads that are ending. */

static void *kill_and_cancel(void *arg)
{
	for (int i = 0; i < 200; i++) {
		pid_t tid;
		pthread_t thread = start(i % 2 ? end_at_once : end_later, &tid);
		void *ret;

		for (int j = 0; j < i % 8; j++) {
			CHECK_EQ(pthread_kill(thread, SIGUSR1), 0);
			if (j == 5)
				CHECK_EQ(pthread_cancel(thread), 0);
		}
		CHECK_EQ(pthread_join(thread, &ret), 0);
		CHECK(ret == &tid || ret == PTHREAD_CANCELED);
	}
	return arg;
}

TEST_LIMIT(a_thread_may_be_signalled_while_it_ends, 60)
{
	handle_signals();
	run_all(4, kill_and_cancel, NULL);
}

/* Threads that wait. */

struct waiter {
	sem_t sem, done;
	atomic_int tid;
	atomic_bool over;
	int seen;
};

static void *wait_for_posts(void *arg)
{
	struct waiter *waiter = arg;

	waiter->tid = gettid();
	for (;;) {
		while (sem_wait(&waiter->sem))
			CHECK_EQ(errno, EINTR);
		waiter->seen = handled;
		CHECK_EQ(sem_post(&waiter->done), 0);
		if (waiter->over)
			return arg;
	}
}

enum { WAYS = 6 };

static long tell(int way, pthread_t thread, int tid)
{
	siginfo_t info = { .si_code = SI_QUEUE, .si_value.sival_int = way };

	info.si_pid = getpid();
	info.si_uid = getuid();
	switch (way) {
	case 0:
		return pthread_kill(thread, SIGUSR1);
	case 1:
		return tgkill(getpid(), tid, SIGUSR1);
	case 2:
		return syscall(SYS_tgkill, getpid(), tid, SIGUSR1);
	case 3:
		return syscall(SYS_tkill, tid, SIGUSR1);
	case 4:
		return pthread_sigqueue(thread, SIGRTMIN,
					(union sigval){ .sival_int = way });
	default:
		return syscall(SYS_rt_tgsigqueueinfo, getpid(), tid, SIGRTMIN,
			       &info);
	}
}

static void *tell_and_post(void *arg)
{
	struct waiter waiter = { .tid = 0 };
	pthread_t thread;

	CHECK_EQ(sem_init(&waiter.sem, 0, 0), 0);
	CHECK_EQ(sem_init(&waiter.done, 0, 0), 0);
	thread = start(wait_for_posts, &waiter);
	while (!waiter.tid)
		usleep(100);
	for (int i = 0; i < 20 * WAYS; i++) {
		int way = i % WAYS;

		for (int j = 0; j < 3; j++)
			usleep(500);
		CHECK_EQ(tell(way, thread, waiter.tid), 0);
		waiter.over = i == 20 * WAYS - 1;
		CHECK_EQ(sem_post(&waiter.sem), 0);
		while (sem_wait(&waiter.done))
			;
		CHECK_EQ(waiter.seen, i + 1);
		if (way >= 4)
			CHECK_EQ(last_value, way);
	}
	join(thread);
	return arg;
}

TEST_LIMIT(a_waiting_thread_handles_a_signal_before_a_later_event, 60)
{
	handle_signals();
	tell_and_post(NULL);
	join(start(tell_and_post, NULL));
}

/* A signal that a thread sends to itself arrives before the call returns. */
static void *signal_oneself(void *arg)
{
	usleep(100);
	handled = 0;
	for (int i = 0; i < 10 * WAYS; i++) {
		CHECK_EQ(tell(i % WAYS, pthread_self(), gettid()), 0);
		CHECK_EQ(handled, i + 1);
		usleep(100);
	}
	return arg;
}

TEST_LIMIT(a_signal_to_oneself_arrives_at_once, 60)
{
	handle_signals();
	signal_oneself(NULL);
	join(start(signal_oneself, NULL));
}
