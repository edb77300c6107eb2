/* SPDX-License-Identifier: MIT */
/*
 * Threads that keep their carrier, by computing or by calls that wait unexpectedly.
 * Other threads continue meanwhile.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "lib/base/syscall.h"
#include "threads.h"

static atomic_bool stop;
static atomic_long spins;

static void *spin(void *arg)
{
	while (!stop)
		spins++;
	return arg;
}

TEST(a_computing_thread_does_not_stop_others)
{
	pthread_t threads[8];

	start_all(threads, 8, spin, NULL);
	for (int i = 0; i < 10; i++)
		usleep(1000);
	stop = true;
	join_all(threads, 8);
}

/* From <threads.h>, which the compiler would take for our own threads.h. */
int thrd_sleep(const struct timespec *time, struct timespec *rest);

/* Calls that the kernel doesn't restart after a handler. */
/* poll(2) without descriptors, hidden from the runtime. */
static long raw_poll(int ms)
{
	const struct timespec limit = { .tv_nsec = ms * 1000000L };

	return raw_syscall(SYS_ppoll, 0, 0, ms < 0 ? 0 : PTR(&limit), 0, 0, 0);
}

static void *wait_unexpectedly(void *arg)
{
	const struct timeval limit = { .tv_usec = 100000 };
	const struct timespec time = { .tv_nsec = 100000000 };
	uint64_t begin = now_ns();
	FILE *stream;
	int fds[2];

	usleep(100);
	CHECK_EQ(raw_syscall(SYS_nanosleep, PTR(&time), 0, 0, 0, 0, 0), 0);
	CHECK(now_ns() - begin >= 100 * MS);
	usleep(100);
	CHECK_EQ(raw_poll(100), 0);
	CHECK(now_ns() - begin >= 200 * MS);
	CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, fds), 0);
	CHECK_EQ(setsockopt(fds[0], SOL_SOCKET, SO_RCVTIMEO, &limit,
			    sizeof(limit)), 0);
	stream = fdopen(fds[0], "r");
	usleep(100);
	CHECK_EQ(fgetc(stream), EOF);
	CHECK_EQ(errno, EAGAIN);
	fclose(stream);
	close(fds[1]);
	CHECK_EQ(thrd_sleep(&time, NULL), 0);
	return arg;
}

TEST(a_call_that_waits_unexpectedly_ends_as_it_should)
{
	run_all(4, wait_unexpectedly, NULL);
}

#if defined(__aarch64__)

/*
 * The runtime can repeat a call only if /proc shows its arguments, or if the call
 * keeps its first argument.
 */
#define PLAIN_CALL(number, a, b, c)					\
	raw_syscall(number, (uint64_t)(a), (uint64_t)(b), (uint64_t)(c), 0, 0, 0)

static long plain_poll(long ms)
{
	return raw_poll((int)ms);
}

#else

/* The number is set directly before the instruction, as in libc's calls. */
#define PLAIN_CALL(number, a, b, c)					\
	({								\
		long ret;						\
									\
		asm volatile("mov %[nr], %%eax\n\tsyscall"		\
			     : "=&a" (ret)				\
			     : [nr] "i" (number), "D" (a), "S" (b), "d" (c)	\
			     : "rcx", "r11", "memory");			\
		ret;							\
	})

static long plain_poll(long ms)
{
	return PLAIN_CALL(SYS_poll, 0L, 0L, ms);
}

#endif

static atomic_bool moved_enough;

/*
 * When the monitor finds that the thread keeps its carrier, the thread mostly
 * computes. When the monitor moves the thread to its host, the thread is about to
 * wait.
 */
static void *compute_then_wait(void *arg)
{
	const struct timespec moment = { .tv_nsec = 3000000 };
	uint64_t until;

	while (!moved_enough) {
		usleep(100);
		until = now_ns() + 8 * MS + test_random() % (15 * MS);
		while (now_ns() < until)
			;
		CHECK_EQ(PLAIN_CALL(SYS_nanosleep, &moment, 0L, 0L), 0);
		CHECK_EQ(plain_poll(3), 0);
	}
	return arg;
}

TEST(a_call_that_begins_as_its_thread_is_moved_isn_t_interrupted)
{
	uint64_t end = now_ns() + 3 * SECOND;
	pthread_t threads[4];

	start_all(threads, 4, compute_then_wait, NULL);
	while (now_ns() < end)
		usleep(10000);
	moved_enough = true;
	join_all(threads, 4);
}

static atomic_int interrupted;

static void handle(int signo)
{
	(void)signo;
}

static void *poll_unexpectedly(void *arg)
{
	for (int i = 0; i < 10; i++) {
		usleep(100);
		CHECK_EQ(raw_poll(-1), -EINTR);
		interrupted++;
	}
	return arg;
}

/* The signal may arrive while the runtime moves the call to the host. */
TEST(a_signal_ends_a_call_that_waits_unexpectedly)
{
	struct sigaction action = { .sa_handler = handle };
	pthread_t thread;

	CHECK_EQ(sigaction(SIGUSR1, &action, NULL), 0);
	thread = start(poll_unexpectedly, NULL);
	for (int i = 0; interrupted < 10; i++) {
		usleep((useconds_t)(i % 23 * 1000));
		/* The last call may have ended during the sleep. */
		if (interrupted < 10)
			pthread_kill(thread, SIGUSR1);
	}
	join(thread);
}

static void *use_every_number(void *arg)
{
	for (int fd = 3; fd < 1024; fd++) {
		int copy = dup2(0, fd);

		if (copy == fd)
			close(fd);
		*(long *)arg += copy == fd;
	}
	return NULL;
}

TEST(a_child_may_use_its_parent_s_numbers)
{
	struct rlimit limit = { 1024, 1024 };
	long n = 0;
	int pid;

	CHECK_EQ(setrlimit(RLIMIT_NOFILE, &limit), 0);
	join(start(use_every_number, &n));
	pid = test_fork();
	if (!pid) {
		/*
		 * The runtime uses some numbers: a page with all counters; and for a carrier
		 * and a spare one each, a ring, an event, a page of counters, and two files
		 * in /proc.
		 */
		setenv("FLEXSC_CARRIERS", "1", 1);
		n = 0;
		join(start(use_every_number, &n));
		CHECK(n >= 1021 - (1 + 2 * 5));
		test_leave();
	}
	test_reap(pid);
}

enum { HEAVY = 20, TRIPS = 100, TRIES = 5 };

static atomic_int heavy_runs;
static atomic_bool heavy_ends;
static int there[2], back[2];

/* Computes for a while, then waits for a descriptor that is ready already. */
static void *work_and_wait(void *arg)
{
	struct pollfd fd = { *(int *)arg, POLLOUT, 0 };

	while (!heavy_ends) {
		struct timespec until = in_ms(CLOCK_MONOTONIC, 0), now;

		until.tv_nsec += 200000;
		do
			clock_gettime(CLOCK_MONOTONIC, &now);
		while (now.tv_sec * 1000000000LL + now.tv_nsec <
		       until.tv_sec * 1000000000LL + until.tv_nsec);
		heavy_runs++;
		CHECK_EQ(poll(&fd, 1, -1), 1);
	}
	return NULL;
}

static void *answer(void *arg)
{
	char byte;

	while (read(there[0], &byte, 1) == 1)
		CHECK_EQ(write(back[1], &byte, 1), 1);
	return arg;
}

static void *make_trips(void *arg)
{
	char byte = 'x';

	for (int i = 0; i < TRIPS; i++) {
		CHECK_EQ(write(there[1], &byte, 1), 1);
		CHECK_EQ(read(back[0], &byte, 1), 1);
	}
	return arg;
}

/*
 * Counts runs instead of time, so the speed of the machine doesn't matter. On a busy
 * machine, threads that the monitor has moved to their hosts run while the carrier waits
 * for a processor. So the smallest of several tries counts.
 */
TEST(a_thread_that_computes_little_waits_for_few_others)
{
	pthread_t heavy[HEAVY], other;
	int free_fds[2], runs, least = INT_MAX;

	if (!preloaded() || carriers() != 1)
		SKIP("needs a single carrier, which runs the threads in turn");
	CHECK_EQ(pipe(free_fds) | pipe(there) | pipe(back), 0);
	start_all(heavy, HEAVY, work_and_wait, &free_fds[1]);
	while (heavy_runs < 5 * HEAVY)
		usleep(1000);
	other = start(answer, NULL);
	for (int i = 0; i < TRIES && least >= HEAVY * TRIPS; i++) {
		runs = heavy_runs;
		join(start(make_trips, NULL));
		runs = heavy_runs - runs;
		least = runs < least ? runs : least;
	}
	close(there[1]);
	heavy_ends = true;
	join(other);
	join_all(heavy, HEAVY);
	/* If all threads ran in turn, each would run at least once in each trip. */
	CHECK(least < HEAVY * TRIPS);
}
