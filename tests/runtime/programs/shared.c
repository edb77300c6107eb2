/* SPDX-License-Identifier: MIT */
/* Locks that several processes share. */
#define _GNU_SOURCE
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <sys/mman.h>

#include "threads.h"

#define ROUNDS	200

/*
 * The other process is forked before this one has threads, so the runtime is
 * inactive in it.
 */
struct shared {
	pthread_mutex_t mutex;
	pthread_cond_t cond;
	int turn;
	atomic_int held;
};

static struct shared *shared;

static void map_shared(bool robust)
{
	pthread_mutexattr_t mutex;
	pthread_condattr_t cond;

	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE,
		      MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	CHECK(shared != MAP_FAILED);
	pthread_mutexattr_init(&mutex);
	pthread_mutexattr_setpshared(&mutex, PTHREAD_PROCESS_SHARED);
	if (robust)
		pthread_mutexattr_setrobust(&mutex, PTHREAD_MUTEX_ROBUST);
	CHECK_EQ(pthread_mutex_init(&shared->mutex, &mutex), 0);
	pthread_condattr_init(&cond);
	pthread_condattr_setpshared(&cond, PTHREAD_PROCESS_SHARED);
	CHECK_EQ(pthread_cond_init(&shared->cond, &cond), 0);
}

/* The two processes increment the turn alternately. */
static void *take_turns(void *first)
{
	for (int i = *(int *)first; i < ROUNDS; i += 2) {
		CHECK_EQ(pthread_mutex_lock(&shared->mutex), 0);
		while (shared->turn != i)
			CHECK_EQ(pthread_cond_wait(&shared->cond,
						   &shared->mutex), 0);
		shared->turn++;
		CHECK_EQ(pthread_cond_broadcast(&shared->cond), 0);
		CHECK_EQ(pthread_mutex_unlock(&shared->mutex), 0);
	}
	return NULL;
}

TEST(a_thread_takes_turns_with_another_process)
{
	int here = 0, there = 1;

	/* First with the process's only thread, then with another one. */
	for (int threads = 0; threads < 2; threads++) {
		int pid;

		map_shared(false);
		pid = test_fork();
		if (!pid) {
			if (threads)
				join(start(take_turns, &there));
			else
				take_turns(&there);
			test_leave();
		}
		join(start(take_turns, &here));
		test_reap(pid);
		CHECK_EQ(shared->turn, ROUNDS);
	}
}

static void *wait_for_owner(void *arg)
{
	int err = pthread_mutex_lock(&shared->mutex);

	if (err == EOWNERDEAD)
		CHECK_EQ(pthread_mutex_consistent(&shared->mutex), 0);
	else
		CHECK_EQ(err, 0);
	CHECK_EQ(pthread_mutex_unlock(&shared->mutex), 0);
	*(int *)arg = err;
	return arg;
}

TEST(a_thread_that_waits_for_a_killed_process_is_notified)
{
	pthread_t threads[3];
	int pid, notified = 0, errs[3];

	map_shared(true);
	pid = test_fork();
	if (!pid) {
		pthread_mutex_lock(&shared->mutex);
		shared->held = 1;
		pause();
	}
	while (!shared->held)
		usleep(1000);
	for (int i = 0; i < 3; i++)
		threads[i] = start(wait_for_owner, &errs[i]);
	settle();
	CHECK_EQ(kill(pid, SIGKILL), 0);
	for (int i = 0; i < 3; i++) {
		join(threads[i]);
		notified += errs[i] == EOWNERDEAD;
	}
	CHECK_EQ(notified, 1);
}
