/* SPDX-License-Identifier: MIT */
/*
 * For tests that are plain programs with threads. Each runs natively, as the oracle,
 * and with FlexSC-Threads preloaded. The results have to be the same.
 */
#ifndef FLEXSC_TESTS_THREADS_H
#define FLEXSC_TESTS_THREADS_H

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

#include "lib/base/syscall.h"
#include "tests/harness/harness.h"

static inline pthread_t start(void *(*run)(void *), void *arg)
{
	pthread_t thread;

	CHECK_EQ(pthread_create(&thread, NULL, run, arg), 0);
	return thread;
}

static inline void *join(pthread_t thread)
{
	void *ret;

	CHECK_EQ(pthread_join(thread, &ret), 0);
	return ret;
}

static inline void start_all(pthread_t *threads, unsigned int n,
			     void *(*run)(void *), void *arg)
{
	for (unsigned int i = 0; i < n; i++)
		threads[i] = start(run, arg);
}

static inline void join_all(const pthread_t *threads, unsigned int n)
{
	for (unsigned int i = 0; i < n; i++)
		join(threads[i]);
}

/* Run n threads at the same time, until all have ended. */
static inline void run_all(unsigned int n, void *(*run)(void *), void *arg)
{
	pthread_t threads[n];

	start_all(threads, n, run, arg);
	join_all(threads, n);
}

/* The same; each thread gets its number. */
static inline void run_numbered(unsigned int n, void *(*run)(void *))
{
	pthread_t threads[n];

	for (uintptr_t i = 0; i < n; i++)
		threads[i] = start(run, (void *)i);
	join_all(threads, n);
}

/* Defines a test that runs in a thread; or in main, and then in a thread. */
#define TEST_BY_THREAD(id)	TEST_BY_THREAD_LIMIT(id, 20)
#define TEST_BY_THREAD_LIMIT(id, seconds)	TEST_BY(id, seconds, (void)0)
#define TEST_BY_BOTH(id)	TEST_BY_BOTH_LIMIT(id, 20)
#define TEST_BY_BOTH_LIMIT(id, seconds)	TEST_BY(id, seconds, body_##id())
#define TEST_BY(id, seconds, before)					\
	static void body_##id(void);					\
	static void *thread_##id(void *arg)				\
	{								\
		body_##id();						\
		return arg;						\
	}								\
	TEST_LIMIT(id, seconds)						\
	{								\
		before;							\
		join(start(thread_##id, NULL));				\
	}								\
	static void body_##id(void)

static inline void *nothing(void *arg)
{
	return arg;
}

/* The time in this many nanoseconds or milliseconds. */
static inline struct timespec in_ns(clockid_t clock, long ns)
{
	struct timespec time;

	clock_gettime(clock, &time);
	time.tv_sec += ns / 1000000000;
	time.tv_nsec += ns % 1000000000;
	if (time.tv_nsec >= 1000000000) {
		time.tv_sec++;
		time.tv_nsec -= 1000000000;
	}
	return time;
}

static inline struct timespec in_ms(clockid_t clock, long ms)
{
	return in_ns(clock, ms * 1000000);
}

/* Is FlexSC-Threads preloaded? */
static inline bool preloaded(void)
{
	const char *libraries = getenv("LD_PRELOAD");

	return libraries && strstr(libraries, "libflexsc-runtime");
}

/* Does flexsc run use the kernel module? */
static inline bool uses_module(void)
{
	const char *engine = getenv("FLEXSC_TEST_ENGINE");

	return preloaded() && engine && !strcmp(engine, "kmod");
}

/* The number of carriers in the environment; 0: there is none. */
static inline unsigned int carriers(void)
{
	const char *n = getenv("FLEXSC_CARRIERS");

	return n ? (unsigned int)strtoul(n, NULL, 10) : 0;
}

/*
 * The kernel thread that runs the calling thread. The runtime would answer gettid()
 * with the number of the host, so the system call is hidden from it.
 */
static inline pid_t kernel_thread(void)
{
	return (pid_t)raw_syscall(SYS_gettid, 0, 0, 0, 0, 0, 0);
}

/* A breakpoint, and for its handler: continue after it, as x86-64 does anyway. */
static inline void trap(void)
{
#if defined(__x86_64__)
	__asm__ volatile("int3");
#else
	__asm__ volatile("brk #0");
#endif
}

static inline void pass_trap(void *frame)
{
#if defined(__aarch64__)
	((ucontext_t *)frame)->uc_mcontext.pc += 4;
#else
	(void)frame;
#endif
}

/*
 * Does a carrier run the calling thread, now or after some more waits? One look
 * isn't enough: a wait for a lock may have ended on the host, and on a busy machine
 * the monitor may have moved the thread there. If no carrier ever runs it, the
 * test's time limit expires.
 */
static inline bool becomes_carried(void)
{
	do {
		usleep(100);
		if (kernel_thread() != syscall(SYS_gettid))
			return true;
	} while (preloaded());
	return false;
}

/*
 * Sleeps until another thread should have begun to wait. On a busy machine each of
 * these sleeps ends later.
 */
static inline void settle(void)
{
	for (int i = 0; i < 20; i++)
		usleep(1000);
}

/*
 * Waits until the kernel lists the caller alone: it lists a thread for a moment after the
 * thread was joined.
 */
static inline void await_unlisted(void)
{
	while (count_tasks() > 1)
		usleep(100);
}

/*
 * Waits until all other threads wait, and the kernel has received their calls: a
 * carrier with something to run or to post doesn't sleep, and a poller sleeps only when
 * it has taken all requests.
 */
static inline void await_quiet(void)
{
	for (int quiet = 0, looks = 0; quiet < 3 && looks < 1000; looks++) {
		quiet = others_keep_running() || pollers_run() ? 0 : quiet + 1;
		usleep(1000);
	}
}

#endif /* FLEXSC_TESTS_THREADS_H */
