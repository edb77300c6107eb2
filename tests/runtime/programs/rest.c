/* SPDX-License-Identifier: MIT */
/*
 * A process in which all threads but one have ended. Such a process can make the
 * calls that the kernel permits only to a single-threaded process, sees one thread,
 * and can create threads again.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "threads.h"

static unsigned int threads_of_process(void)
{
	struct stat tasks;

	CHECK_EQ(stat("/proc/self/task", &tasks), 0);
	return (unsigned int)tasks.st_nlink - 2;
}

static int ends[2];
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static int received;

static void *receive(void *arg)
{
	char c;

	CHECK_EQ(read(ends[0], &c, 1), 1);
	usleep(100);
	pthread_mutex_lock(&mutex);
	received++;
	pthread_mutex_unlock(&mutex);
	/* The new thread runs on a carrier, whatever the process did before. */
	CHECK_EQ(becomes_carried(), preloaded());
	return arg;
}

static void use_threads(void)
{
	pthread_t threads[4];

	CHECK_EQ(pipe2(ends, O_CLOEXEC), 0);
	received = 0;
	start_all(threads, 4, receive, NULL);
	CHECK_EQ(write(ends[1], "four", 4), 4);
	join_all(threads, 4);
	CHECK_EQ(received, 4);
	close(ends[0]);
	close(ends[1]);
	if (!preloaded())
		await_unlisted();
}

TEST(the_only_thread_enters_a_namespace)
{
	const struct rlimit no_limit = { RLIM_INFINITY, RLIM_INFINITY };

	/*
	 * In the namespace, root's rings count against its limit, together with the
	 * rings of tests that run at the same time.
	 */
	setrlimit(RLIMIT_MEMLOCK, &no_limit);
	use_threads();
	if (unshare(CLONE_NEWUSER)) {
		if (errno != EINVAL)
			SKIP("unshare(CLONE_NEWUSER): %s", strerror(errno));
		CHECK(!"there are other threads");
	}
	use_threads();
	use_threads();
}

TEST(one_of_two_threads_enters_no_namespace)
{
	pthread_t thread;

	CHECK_EQ(pipe2(ends, O_CLOEXEC), 0);
	thread = start(receive, NULL);
	CHECK_EQ(unshare(CLONE_NEWUSER), -1);
	CHECK_EQ(errno, EINVAL);
	CHECK_EQ(write(ends[1], "x", 1), 1);
	join(thread);
}

static void fork_and_count(void)
{
	int pid = test_fork();

	/* CPython checks this when it forks. */
	if (pid)
		CHECK_EQ(threads_of_process(), 1);
	if (!pid) {
		use_threads();
		test_leave();
	}
	test_reap(pid);
}

TEST(a_process_that_forks_has_one_thread)
{
	for (int i = 0; i < 3; i++) {
		use_threads();
		fork_and_count();
		/* flexsc run does this only from time to time, because it takes time. */
		usleep(60000);
	}
}

/* While there is no other thread, libc makes main's waits. */
TEST(the_only_thread_waits)
{
	struct timespec soon;
	char c = 0;
	int pid;

	use_threads();
	CHECK_EQ(pipe2(ends, O_CLOEXEC), 0);
	pid = test_fork();
	if (!pid) {
		usleep(10000);
		CHECK_EQ(write(ends[1], "x", 1), 1);
		test_leave();
	}
	CHECK_EQ(read(ends[0], &c, 1), 1);
	CHECK_EQ(c, 'x');
	test_reap(pid);
	pthread_mutex_lock(&mutex);
	soon = in_ms(CLOCK_REALTIME, 5);
	CHECK_EQ(pthread_mutex_timedlock(&mutex, &soon), ETIMEDOUT);
	pthread_mutex_unlock(&mutex);
	usleep(1000);
	close(ends[0]);
	close(ends[1]);
	use_threads();
}

static atomic_int forked;

static void fork_in_handler(int signo)
{
	int pid = test_fork();

	(void)signo;
	if (!pid)
		test_leave();
	test_reap(pid);
	forked++;
}

TEST(a_handler_forks)
{
	struct sigaction action = { .sa_handler = fork_in_handler };

	CHECK_EQ(sigaction(SIGUSR1, &action, NULL), 0);
	use_threads();
	for (int i = 1; i <= 5; i++) {
		raise(SIGUSR1);
		CHECK_EQ(forked, 2 * i - 1);
		use_threads();
		kill(getpid(), SIGUSR1);
		while (forked < 2 * i)
			usleep(100);
	}
}

/* A child of clone() that shares its creator's memory and keeps running. */

static atomic_bool has_forked;

static int fork_in_child(void *arg)
{
	int status, pid = fork();

	(void)arg;
	if (!pid)
		_exit(0);
	if (waitpid(pid, &status, 0) == pid && !status)
		has_forked = true;
	return !has_forked;
}

TEST(a_child_with_its_makers_memory_forks)
{
	static char stack[1 << 16] __attribute__((aligned(16)));
	unsigned int before;
	int pid, status;

	use_threads();
	before = threads_of_process();
	pid = clone(fork_in_child, stack + sizeof(stack), CLONE_VM | SIGCHLD,
		    NULL);
	CHECK(pid > 0);
	/*
	 * The threads share libc's data with the child, so this one makes no calls
	 * meanwhile.
	 */
	while (!has_forked)
		;
	CHECK_EQ(waitpid(pid, &status, 0), pid);
	CHECK_EQ(status, 0);
	/*
	 * The runtime's threads are still there, once. A thread that was ending may have
	 * ended, and a syscall thread that was requested may have begun.
	 */
	CHECK(threads_of_process() <= before + 1);
	CHECK_EQ(threads_of_process() > 1, preloaded());
	use_threads();
}
