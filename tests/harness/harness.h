/* SPDX-License-Identifier: MIT */
/*
 * The test harness. A test program is one file of TEST()s linked with harness.c,
 * which holds main().
 *
 * Each test runs under a time limit in a forked child, which leads a process group
 * of its own. At the end of the test the harness kills the whole group. So one crash
 * or one hang is one failure, and leaves nothing behind. The harness prints results
 * as TAP on standard output, and the reasons for failures on standard error. The
 * child has a single thread when the test starts. After the test all remaining
 * threads have to be waiting: a process that keeps computing has failed.
 *
 *	program [NAME...] [KEY=VALUE...]
 *
 * NAME selects the tests whose names contain it. KEY=VALUE sets a value that
 * test_parameter() returns. A NAME that no test's name contains, and an engine that
 * doesn't exist, are errors: exit status 2, and no TAP.
 *
 *	FLEXSC_TEST_ENGINE	engine under test; by default the best one
 *	FLEXSC_TEST_SQPOLL	if set, a kernel thread polls for the calls of uring
 *	FLEXSC_TEST_SLOWER	multiplies every time limit (emulators)
 *
 * The harness sets the child's FLEXSC_ENGINE, so every loop of a test uses this
 * engine. Where the engine doesn't work, the tests are skipped with the engine's own
 * reason.
 */
#ifndef FLEXSC_TESTS_HARNESS_H
#define FLEXSC_TESTS_HARNESS_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The headers that most tests need. A test program includes this header first. */
#ifndef __cplusplus
#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#endif

#include <flexsc/default.h>

#include "lib/base/statx.h"

#if defined(__SANITIZE_THREAD__)
#define UNDER_TSAN 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define UNDER_TSAN 1
#endif
#endif
#ifndef UNDER_TSAN
#define UNDER_TSAN 0
#endif

#if defined(__SANITIZE_ADDRESS__)
#define UNDER_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define UNDER_ASAN 1
#endif
#endif
#ifndef UNDER_ASAN
#define UNDER_ASAN 0
#endif

#define SANITIZED	(UNDER_TSAN || UNDER_ASAN)

/* The number of threads that TSan adds to a forked process's count_tasks(). */
#define TSAN_TASKS	(2 * UNDER_TSAN)

/*
 * A number of repetitions. A sanitizer makes each ten times as slow, so it gets
 * fewer.
 */
#define MANY(n)		((n) / (SANITIZED ? 10 : 1))

#define MS		1000000ULL	/* nanoseconds */
#define SECOND		1000000000ULL

/* The kind of loop that the harness creates for a test. */
enum test_loop_kind {
	LOOP_NONE,
	LOOP_ANY,
	LOOP_WAITING,			/* on an engine where calls can wait */
};

struct test {
	const char *name;
	void (*run)(void);
	unsigned int limit;		/* seconds */
	enum test_loop_kind kind;
	const struct flexsc_options *options;
	struct test *next;
};

void test_register(struct test *test);

/*
 * The harness creates a loop for a LOOP_TEST(), with the options that follow the
 * test's name. A WAITING_TEST() has a loop, too, and is skipped on the sync engine,
 * which runs a call when it is submitted.
 */
#define TEST(id)		TEST_LIMIT(id, 20)
#define LOOP_TEST(id, ...)	LOOP_TEST_LIMIT(id, 20, __VA_ARGS__)
#define WAITING_TEST(id, ...)	WAITING_TEST_LIMIT(id, 20, __VA_ARGS__)
#define TEST_LIMIT(id, seconds)						\
	TEST_ENTRY(id, seconds, LOOP_NONE, NULL)
#define LOOP_TEST_LIMIT(id, seconds, ...)				\
	TEST_OPTIONS(id, __VA_ARGS__);					\
	TEST_ENTRY(id, seconds, LOOP_ANY, &options_##id)
#define WAITING_TEST_LIMIT(id, seconds, ...)				\
	TEST_OPTIONS(id, __VA_ARGS__);					\
	TEST_ENTRY(id, seconds, LOOP_WAITING, &options_##id)
#define TEST_OPTIONS(id, ...)						\
	static const struct flexsc_options options_##id = {		\
		.size = sizeof(options_##id), __VA_ARGS__ }
#define TEST_ENTRY(id, seconds, kind, options)				\
	static void test_##id(void);					\
	static struct test entry_##id = { #id, test_##id, seconds, kind,\
					  options, NULL };		\
	__attribute__((constructor)) static void register_##id(void)	\
	{								\
		test_register(&entry_##id);				\
	}								\
	static void test_##id(void)

/*
 * The test's loop, or NULL. The harness destroys the loop after the test, unless the
 * test has called test_end_loop(). Calls complete in variables of the test, so a
 * test that leaves calls, timers or signals pending calls test_end_loop() itself.
 */
#ifndef __cplusplus
extern struct flexsc_loop *loop;
#endif
void test_end_loop(void);

/*
 * All three end the calling process, in any of its threads. In a process that the
 * test forked, they end that process: see test_reap().
 */
#define CHECK(condition)						\
	((condition) ? (void)0 : test_fail(__FILE__, __LINE__, "%s", #condition))
#define CHECK_EQ(got, expected)						\
	test_equal(__FILE__, __LINE__, #got, #expected, (int64_t)(got),	\
		   (int64_t)(expected))
#define SKIP(...)	test_skip(__VA_ARGS__)

void test_fail(const char *file, int line, const char *format, ...)
	__attribute__((noreturn, format(printf, 3, 4)));
void test_equal(const char *file, int line, const char *got_text,
		const char *expected_text, int64_t got, int64_t expected);
void test_skip(const char *format, ...)
	__attribute__((noreturn, format(printf, 1, 2)));
void test_note(const char *format, ...) __attribute__((format(printf, 1, 2)));

const char *test_engine(void);
unsigned long test_parameter(const char *key, unsigned long fallback);
/* The factor by which things may take longer here. */
unsigned int test_slower(void);

/* Skips the test on the sync engine: for a test that creates its loop itself. */
#define NEEDS_WAITING_ENGINE() test_need_waiting()
void test_need_waiting(void);

/*
 * Is this the engine that is documented to behave differently here? The test then
 * requires the different behaviour. So it fails, too, when the documentation gets
 * out of date.
 */
bool test_known_difference(const char *engine, const char *what);

/* Fork. The child has to end with exit status 0, by test_leave(). */
int test_fork(void);
void test_leave(void) __attribute__((noreturn));
void test_reap(int pid);
/* Runs the block in a child, which has to succeed before the test continues. */
#define IN_CHILD							\
	for (int pid_ = test_fork(); !pid_ || (test_reap(pid_), false);	\
	     test_leave())

#ifndef __cplusplus
pthread_t test_thread(void *(*run)(void *arg), void *arg);
#endif

/* A pseudo-random number: each run gets the same sequence. */
uint64_t test_random(void);

/* A datagram socket, bound to an address on the loopback device. */
struct sockaddr_in;
int datagram_socket(struct sockaddr_in *address);
/* A listening stream socket, created with these flags of socket(). */
int listening_socket(struct sockaddr_in *address, int flags, int backlog);

uint64_t now_ns(void);
void sleep_ms(unsigned int ms);
/*
 * May the loop make another turn, after this many? Threads that take turns wait for
 * a processor each time. On a busy machine they take as many turns as fit into ten
 * seconds.
 */
bool turns_left(unsigned int turns, unsigned int most);
unsigned int count_fds(void);
/* The first descriptor whose file has this text in its name; -1: there is none. */
int find_fd(const char *text);
/* The first processor that the thread may use. */
int first_core(void);
unsigned int count_tasks(void);
unsigned int count_maps(void);
uint64_t cpu_ns(void);	/* the process's CPU time */
/*
 * Are all threads of the process waiting? The answer depends on the processor time
 * that they use, so no other process affects it.
 */
bool is_idle(void);
/* Does any thread besides the caller keep running, or would it if it got a processor? */
bool others_keep_running(void);
/* Does a poller of this process run? It falls asleep when it has taken all requests. */
bool pollers_run(void);
/* Raise the limit to n descriptors at least; false: not permitted. */
bool raise_fd_limit(unsigned int n);
/* Fill "order" with the numbers below n, in random order. */
void shuffle(uint32_t *order, uint32_t n);
/* Wait until count() is at most n; false after five seconds. */
bool falls_to(unsigned int (*count)(void), unsigned int n);

/* Create a directory for the test, and make it the working directory. */
void enter_scratch(void);
void leave_scratch(void);

/* Restrict the process from here on. */
void become_nobody(void);
void forbid(const int *calls, unsigned int n, int error);
/*
 * Install a filter that takes this action at these calls, for example
 * SECCOMP_RET_KILL_PROCESS.
 */
void filter_calls(const int *calls, unsigned int n, uint32_t action);
/*
 * Install a filter: one action at the n calls that are listed, the other one at all
 * others. Returns the result of seccomp(2) with these flags.
 */
#define FILTERED_MOST	120U
long filter_install(const int *calls, unsigned int n, uint32_t listed,
		    uint32_t other, unsigned int flags);
/*
 * Install a filter of one call: the actions if the comparison of its argument with the
 * value, BPF_JEQ or BPF_JSET, is true and if it is false.
 */
void filter_argument(int call, unsigned int arg, uint16_t compare, uint32_t value,
		     uint32_t action, uint32_t otherwise);

/* A call, and how often its callback has run. */
struct call {
	struct flexsc_cb cb;
	unsigned int runs;
};

void call_done(struct flexsc_cb *cb);
#define CALL_INIT	{ .cb = { .callback = call_done }, .runs = 0 }

/* ARGS(nr, ...): a system call's number and its six arguments. */
#define ARGS(...)	ARGS_(__VA_ARGS__, 0, 0, 0, 0, 0, 0, 0)
#define ARGS_(nr, a, b, c, d, e, f, ...)				\
	(unsigned int)(nr), (uint64_t)(a), (uint64_t)(b), (uint64_t)(c),\
	(uint64_t)(d), (uint64_t)(e), (uint64_t)(f)

/*
 * The oracle: make the same call as a plain system call. Returns its result or
 * -errno.
 */
#define PLAIN(...)	plain_call(ARGS(__VA_ARGS__))
int64_t plain_call(unsigned int nr, uint64_t a, uint64_t b, uint64_t c,
		   uint64_t d, uint64_t e, uint64_t f);

struct flexsc_loop *test_loop(void);
struct flexsc_loop *test_loop_with(const struct flexsc_options *options);
#define NEW_LOOP(...)							\
	test_loop_with(&(struct flexsc_options){			\
		.size = sizeof(struct flexsc_options), __VA_ARGS__ })

/* Post a call, which must be accepted; wait for a call; do both. */
#define POST(loop, call, ...)						\
	CHECK_EQ(flexsc_loop_call(loop, &(call)->cb, ARGS(__VA_ARGS__)), 0)
/* The same behind a pending call; before == NULL: behind no call. */
#define POST_AFTER(loop, before, chain, call, ...)			\
	CHECK_EQ(post_after(loop, before, chain, call, ARGS(__VA_ARGS__)), 0)
int post_after(struct flexsc_loop *loop, struct call *before,
	       unsigned int chain, struct call *call, unsigned int nr,
	       uint64_t a, uint64_t b, uint64_t c, uint64_t d, uint64_t e,
	       uint64_t f);
int64_t await_call(struct flexsc_loop *loop, struct call *call);
#define DO(loop, ...)	do_call(loop, ARGS(__VA_ARGS__))
int64_t do_call(struct flexsc_loop *loop, unsigned int nr, uint64_t a,
		uint64_t b, uint64_t c, uint64_t d, uint64_t e, uint64_t f);

/*
 * Run callbacks until *count reaches n. Returns false after ms milliseconds, or
 * later on a slow machine.
 */
bool run_until(struct flexsc_loop *loop, const unsigned int *count,
	       unsigned int n, unsigned int ms);
/* Run callbacks for this time. */
void run_for(struct flexsc_loop *loop, unsigned int ms);
/* Run until all other threads wait, so that calls which wait have begun. */
void run_until_idle(struct flexsc_loop *loop);
/* Run callbacks until the descriptor is readable, and a moment longer. */
void run_until_readable(struct flexsc_loop *loop, int fd);

struct flexsc_stats stats_of(const struct flexsc_loop *loop);

/* Is this a result of a call that was cancelled while it waited? */
static inline bool is_cancelled(int64_t ret)
{
	return ret == -ECANCELED || ret == -EINTR;
}

#endif /* FLEXSC_TESTS_HARNESS_H */
