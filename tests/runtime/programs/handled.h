/* SPDX-License-Identifier: MIT */
/*
 * For tests of signals: a handler that records where it ran, and threads that wait
 * for each other.
 */
#ifndef FLEXSC_TESTS_HANDLED_H
#define FLEXSC_TESTS_HANDLED_H

#include <signal.h>
#include <stdatomic.h>
#include <sys/wait.h>

#include "threads.h"

static atomic_int handled;
static __thread int mine;
static atomic_int where;
static _Atomic pthread_t ran_in;

static inline void count(int signo)
{
	(void)signo;
	where = mine;
	ran_in = pthread_self();
	/*
	 * Incremented last: a thread that sees the new count reads the other
	 * variables.
	 */
	handled++;
}

static inline void install(int signo, int flags)
{
	struct sigaction action = { .sa_handler = count, .sa_flags = flags };

	CHECK_EQ(sigaction(signo, &action, NULL), 0);
}

static inline void block(int how, int signo)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, signo);
	CHECK_EQ(pthread_sigmask(how, &set, NULL), 0);
}

static atomic_int stage;
static atomic_bool begun, over;

static inline void *spin(void *arg)
{
	mine = 9;
	begun = true;
	while (!handled)
		;
	return arg;
}

static inline void *stay(void *arg)
{
	stage++;
	while (!over)
		usleep(100);
	return arg;
}

static inline void send_from_child(int signo)
{
	int pid = fork();

	if (!pid) {
		kill(getppid(), signo);
		_exit(0);
	}
	CHECK_EQ(waitpid(pid, NULL, 0), pid);
}

/*
 * Returns the signal that ends a child which runs "function" while another thread of
 * it runs "beside"; 0: none.
 */
static inline int ends_by(void *(*beside)(void *), void *(*function)(void *),
			  void *arg)
{
	int pid = fork(), status;

	CHECK(pid >= 0);
	if (!pid) {
		start(beside, NULL);
		join(start(function, arg));
		_exit(0);
	}
	CHECK_EQ(waitpid(pid, &status, 0), pid);
	return WIFSIGNALED(status) ? WTERMSIG(status) : 0;
}

#endif /* FLEXSC_TESTS_HANDLED_H */
