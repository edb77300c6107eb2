/* SPDX-License-Identifier: MIT */
/* What processes share: locks, queues, and what libc does for a program. */
#define _GNU_SOURCE
#include <aio.h>
#include <fcntl.h>
#include <mqueue.h>
#include <semaphore.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/mman.h>

#include "threads.h"

#define ROUNDS	200

/*
 * The other process is forked before the first thread: the runtime, if there is
 * one, doesn't run in it.
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

/* Each adds one when it is its turn: 0 here, 1 there, 2 here ... */
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

	/* With its only thread, and with one that is no process's first. */
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

TEST(who_waits_for_a_killed_process_is_told)
{
	pthread_t threads[3];
	int pid, told = 0, errs[3];

	map_shared(true);
	pid = fork();
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
		told += errs[i] == EOWNERDEAD;
	}
	CHECK_EQ(told, 1);
}

static sem_t *open_semaphore(const char *name)
{
	sem_t *sem = sem_open(name, O_CREAT, 0600, 0);

	CHECK(sem != SEM_FAILED);
	return sem;
}

struct pair {
	sem_t *mine, *other;
};

static void *answer(void *arg)
{
	struct pair *pair = arg;

	for (int i = 0; i < ROUNDS; i++) {
		CHECK_EQ(sem_wait(pair->mine), 0);
		CHECK_EQ(sem_post(pair->other), 0);
	}
	return arg;
}

TEST(named_semaphores_wake_another_process)
{
	struct pair here, there;
	char names[2][64];
	int pid;

	for (int i = 0; i < 2; i++)
		snprintf(names[i], sizeof(names[i]), "/flexsc-test-%d-%d",
			 getpid(), i);
	here = (struct pair){ open_semaphore(names[0]),
			      open_semaphore(names[1]) };
	pid = test_fork();
	if (!pid) {
		there = (struct pair){ open_semaphore(names[1]),
				       open_semaphore(names[0]) };
		answer(&there);
		test_leave();
	}
	CHECK_EQ(sem_post(here.mine), 0);
	join(start(answer, &here));
	test_reap(pid);
	for (int i = 0; i < 2; i++)
		CHECK_EQ(sem_unlink(names[i]), 0);
}

/* Threads and signals that libc's helpers make. */

static atomic_int told;

static void tell(union sigval value)
{
	CHECK_EQ(value.sival_int, 5);
	told++;
}

static void *send_message(void *queue)
{
	settle();
	CHECK_EQ(mq_send(*(mqd_t *)queue, "abc", 3, 0), 0);
	return NULL;
}

static void *receive_message(void *arg)
{
	struct timespec end = in_ms(CLOCK_REALTIME, 20);
	mqd_t queue = *(mqd_t *)arg;
	pthread_t thread;
	char text[16];

	CHECK_EQ(mq_timedreceive(queue, text, sizeof(text), NULL, &end), -1);
	CHECK_EQ(errno, ETIMEDOUT);
	thread = start(send_message, arg);
	CHECK_EQ(mq_receive(queue, text, sizeof(text), NULL), 3);
	join(thread);
	return NULL;
}

TEST(a_message_queue_tells_of_its_first_message)
{
	struct sigevent event = { .sigev_notify = SIGEV_THREAD,
				  .sigev_notify_function = tell,
				  .sigev_value.sival_int = 5 };
	struct mq_attr attr = { .mq_maxmsg = 2, .mq_msgsize = 16 };
	char name[64];
	mqd_t queue;

	snprintf(name, sizeof(name), "/flexsc-test-%d", getpid());
	queue = mq_open(name, O_CREAT | O_EXCL | O_RDWR, 0600, &attr);
	if (queue == (mqd_t)-1)
		SKIP("no message queues here");
	CHECK_EQ(mq_unlink(name), 0);
	join(start(receive_message, &queue));
	CHECK_EQ(mq_notify(queue, &event), 0);
	join(start(send_message, &queue));
	while (!told)
		usleep(1000);
	CHECK_EQ(mq_close(queue), 0);
}

static void *read_later(void *arg)
{
	struct aiocb cb = { .aio_fildes = ((int *)arg)[0] };
	const struct aiocb *list[1] = { &cb };
	char text[4] = "";

	cb.aio_buf = text;
	cb.aio_nbytes = sizeof(text);
	CHECK_EQ(aio_read(&cb), 0);
	CHECK_EQ(aio_error(&cb), EINPROGRESS);
	CHECK_EQ(write(((int *)arg)[1], "1234", 4), 4);
	while (aio_error(&cb) == EINPROGRESS)
		CHECK_EQ(aio_suspend(list, 1, NULL), 0);
	CHECK_EQ(aio_return(&cb), 4);
	CHECK(!memcmp(text, "1234", 4));
	return arg;
}

TEST(libc_s_asynchronous_reading_works)
{
	int fds[2];

	CHECK_EQ(pipe(fds), 0);
	for (int i = 0; i < 3; i++)
		join(start(read_later, fds));
}
