/* SPDX-License-Identifier: MIT */
/*
 * A thread enters seccomp's strict mode. It may then read, write, return from handlers
 * and exit, and the kernel ends it, and no other thread, at any other call.
 */
#define _GNU_SOURCE
#include <limits.h>
#include <linux/seccomp.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "threads.h"

#define EXCHANGES	100

/* The threads of a test: "here" is the end of the others, "there" of the strict one. */
static int here, there;
static atomic_bool over;

static void enter(void)
{
	CHECK_EQ(prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT, 0, 0, 0), 0);
}

static void begin(void)
{
	int ends[2];

	CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
	here = ends[0];
	there = ends[1];
}

/* Strict threads use nothing of the harness, which would make other calls. */
static void echo_once(void)
{
	char c;

	if (read(there, &c, 1) == 1)
		(void)!write(there, &c, 1);
}

static void exchange(char c)
{
	char back = 0;

	CHECK_EQ(write(here, &c, 1), 1);
	CHECK_EQ(read(here, &back, 1), 1);
	CHECK_EQ(back, c);
}

static _Noreturn void leave(int status)
{
	syscall(SYS_exit, status);
	__builtin_unreachable();
}

/* Other threads, which carriers run meanwhile. */

static void *echo_others(void *arg)
{
	char c;

	while (read(*(int *)arg, &c, 1) == 1)
		CHECK_EQ(write(*(int *)arg, &c, 1), 1);
	return arg;
}

static void *sleep_often(void *arg)
{
	atomic_ulong *turns = arg;

	for (; !over; ++*turns)
		usleep(100);
	CHECK_EQ(becomes_carried(), preloaded());
	return arg;
}

/* Run "enters" in a thread, which has to end by itself while others run. */
static void among_others(void *(*enters)(void *), void (*meanwhile)(pthread_t))
{
	pthread_t sleeping, echoing, strict;
	atomic_ulong turns = 0, before;
	int others[2];

	begin();
	CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, others), 0);
	echoing = start(echo_others, &others[1]);
	sleeping = start(sleep_often, &turns);
	strict = start(enters, NULL);
	meanwhile(strict);
	join(strict);
	for (char c = 0; c < 20; c++) {
		char back;

		CHECK_EQ(write(others[0], &c, 1), 1);
		CHECK_EQ(read(others[0], &back, 1), 1);
		CHECK_EQ(back, c);
	}
	before = turns;
	while (turns < before + 5)
		sched_yield();
	join(start(nothing, NULL));
	over = true;
	join(sleeping);
	close(others[0]);
	join(echoing);
}

static void exchange_many(pthread_t thread)
{
	(void)thread;
	for (int i = 0; i < EXCHANGES; i++)
		exchange((char)i);
}

static void echo_many(void)
{
	for (int i = 0; i < EXCHANGES; i++)
		echo_once();
	leave(0);
}

static void *echo_strictly(void *arg)
{
	enter();
	echo_many();
	return arg;
}

TEST(a_thread_reads_writes_and_exits)
{
	among_others(echo_strictly, exchange_many);
}

static void *echo_by_seccomp(void *arg)
{
	CHECK_EQ(syscall(SYS_seccomp, SECCOMP_SET_MODE_STRICT, 0, NULL), 0);
	echo_many();
	return arg;
}

TEST(seccomp_does_the_same)
{
	among_others(echo_by_seccomp, exchange_many);
}

/* The calls don't pass through libc. */
static void *echo_directly(void *arg)
{
	char c;

	enter();
	for (int i = 0; i < EXCHANGES; i++)
		if (raw_syscall(SYS_read, (uint64_t)there, PTR(&c), 1, 0, 0, 0) == 1)
			raw_syscall(SYS_write, (uint64_t)there, PTR(&c), 1, 0, 0, 0);
	raw_syscall(SYS_exit, 0, 0, 0, 0, 0, 0);
	return arg;
}

TEST(a_thread_makes_its_calls_itself)
{
	among_others(echo_directly, exchange_many);
}

static void exchange_one(pthread_t thread)
{
	(void)thread;
	exchange('x');
}

static void *return_strictly(void *arg)
{
	enter();
	echo_once();
	return arg;
}

TEST(a_thread_returns)
{
	among_others(return_strictly, exchange_one);
}

static void *call_forbidden(void *arg)
{
	enter();
	echo_once();
	syscall(SYS_getppid);
	echo_once();
	return arg;
}

TEST(a_forbidden_call_ends_the_thread_alone)
{
	among_others(call_forbidden, exchange_one);
}

/* A forbidden call that the runtime would otherwise make for the thread. */

static sem_t never, posted;

static void *wait_strictly(void *arg)
{
	enter();
	echo_once();
	sem_wait(&never);
	echo_once();
	return arg;
}

TEST(a_wait_for_a_lock_ends_the_thread_alone)
{
	among_others(wait_strictly, exchange_one);
}

static void *await_posted(void *arg)
{
	CHECK_EQ(sem_wait(&posted), 0);
	return arg;
}

static void *post_strictly(void *arg)
{
	enter();
	echo_once();
	sem_post(&posted);
	return arg;
}

/* The thread ends when it wakes the waiter, which sees the semaphore later. */
TEST(a_wake_up_ends_the_thread_alone)
{
	pthread_t waiting = start(await_posted, NULL), strict;

	begin();
	settle();
	strict = start(post_strictly, NULL);
	exchange('x');
	join(strict);
	CHECK_EQ(sem_post(&posted), 0);
	join(waiting);
}

/* Signals. */

static void answer(int signo)
{
	char c = (char)signo;

	(void)!write(there, &c, 1);
}

static void send_signals(pthread_t thread)
{
	char c = 0;

	exchange('x');
	for (int i = 0; i < 20; i++) {
		CHECK_EQ(pthread_kill(thread, i % 2 ? SIGUSR1 : SIGRTMIN), 0);
		CHECK_EQ(read(here, &c, 1), 1);
		CHECK_EQ(c, i % 2 ? SIGUSR1 : SIGRTMIN);
	}
	exchange('y');
}

static void *echo_twice(void *arg)
{
	enter();
	echo_once();
	echo_once();
	leave(0);
	return arg;
}

TEST(a_thread_handles_signals)
{
	const struct sigaction action = { .sa_handler = answer,
					  .sa_flags = SA_RESTART };

	CHECK_EQ(sigaction(SIGUSR1, &action, NULL), 0);
	CHECK_EQ(sigaction(SIGRTMIN, &action, NULL), 0);
	among_others(echo_twice, send_signals);
}

/* The process ends with its last thread. */

/* Wait until the process's first thread has ended, while others go on. */
static void await_first_end(int pid)
{
	char path[40], text[200];
	const char *state;

	snprintf(path, sizeof(path), "/proc/%d/task/%d/stat", pid, pid);
	do {
		int fd = open(path, O_RDONLY | O_CLOEXEC);
		ssize_t n = read(fd, text, sizeof(text) - 1);

		CHECK(n > 0);
		close(fd);
		text[n] = 0;
		state = strrchr(text, ')') + 2;
		usleep(1000);
	} while (*state != 'Z');
}

/*
 * The status of a process whose first thread ends before the last thread's exchanges. 0:
 * it has one thread.
 */
static int status_of(void (*run)(void), int exchanges)
{
	int pid, status;

	begin();
	pid = test_fork();
	if (!pid) {
		run();
		_exit(99);
	}
	if (exchanges)
		await_first_end(pid);
	for (int i = 0; i < exchanges; i++)
		exchange('x');
	CHECK_EQ(waitpid(pid, &status, 0), pid);
	close(here);
	close(there);
	return status;
}

static void *(*last)(void *);

static void main_ends_first(void)
{
	start(last, NULL);
	pthread_exit(NULL);
}

static int status_of_last(void *(*run)(void *))
{
	last = run;
	return status_of(main_ends_first, 1);
}

static void *exit_last(void *arg)
{
	enter();
	echo_once();
	leave(5);
	return arg;
}

TEST(a_process_ends_when_its_last_thread_exits)
{
	CHECK_EQ(status_of_last(exit_last), W_EXITCODE(5, 0));
}

static void *call_last(void *arg)
{
	enter();
	echo_once();
	syscall(SYS_getppid);
	return arg;
}

TEST(a_process_ends_when_its_last_thread_is_killed)
{
	CHECK_EQ(status_of_last(call_last), W_EXITCODE(0, SIGKILL));
}

TEST(a_process_ends_when_its_last_thread_returns)
{
	CHECK_EQ(status_of_last(return_strictly), W_EXITCODE(0, SIGKILL));
}

/* The thread ends in a destructor of its data, in this round of destructors. */
static pthread_key_t key;
static int last_round, rounds;
static bool is_killed;

static void end_in_last_round(void *data)
{
	if (++rounds < last_round)
		pthread_setspecific(key, data);
	else if (is_killed)
		syscall(SYS_getppid);
	else
		leave(5);
}

static void *destroy_last(void *arg)
{
	CHECK_EQ(pthread_setspecific(key, &key), 0);
	enter();
	echo_once();
	return arg;
}

static void destroys_last(void)
{
	CHECK_EQ(pthread_key_create(&key, end_in_last_round), 0);
	last = destroy_last;
	main_ends_first();
}

TEST(a_process_ends_when_its_last_thread_is_killed_in_a_destructor)
{
	is_killed = true;
	for (last_round = 1; last_round <= PTHREAD_DESTRUCTOR_ITERATIONS; last_round++)
		CHECK_EQ(status_of(destroys_last, 1), W_EXITCODE(0, SIGKILL));
}

TEST(a_process_ends_when_its_last_thread_exits_in_a_destructor)
{
	for (last_round = 1; last_round <= PTHREAD_DESTRUCTOR_ITERATIONS; last_round++)
		CHECK_EQ(status_of(destroys_last, 1), W_EXITCODE(5, 0));
}

/* All rounds are over when the kernel ends the thread, which libc doesn't count then. */
static void destroys_all(void)
{
	last_round = PTHREAD_DESTRUCTOR_ITERATIONS + 1;
	destroys_last();
}

TEST(a_process_ends_when_its_last_thread_returns_after_destructors)
{
	CHECK_EQ(status_of(destroys_all, 1), W_EXITCODE(0, SIGKILL));
}

/* Of two threads, the first returns after destructors: the count includes the second. */
static void *destroy_first(void *arg)
{
	CHECK_EQ(pthread_setspecific(key, &key), 0);
	enter();
	return arg;
}

static void *outlast(void *arg)
{
	echo_once();
	settle();
	echo_once();
	leave(8);
	return arg;
}

static void destroys_first(void)
{
	CHECK_EQ(pthread_key_create(&key, end_in_last_round), 0);
	start(outlast, NULL);
	join(start(destroy_first, NULL));
	pthread_exit(NULL);
}

TEST(a_process_outlives_a_thread_with_destructors)
{
	is_killed = true;
	for (last_round = 1; last_round <= PTHREAD_DESTRUCTOR_ITERATIONS + 1; last_round++)
		CHECK_EQ(status_of(destroys_first, 2), W_EXITCODE(8, 0));
}

static void *outlive(void *arg)
{
	echo_once();
	leave(6);
	return arg;
}

static void main_is_killed(void)
{
	start(outlive, NULL);
	settle();
	enter();
	syscall(SYS_getppid);
}

TEST(a_process_outlives_its_first_thread)
{
	CHECK_EQ(status_of(main_is_killed, 1), W_EXITCODE(6, 0));
}

/* The only thread, before and after others. */

static void alone(void)
{
	enter();
	(void)!write(here, "x", 1);
	echo_once();
	leave(7);
}

TEST(the_only_thread_enters)
{
	CHECK_EQ(status_of(alone, 0), W_EXITCODE(7, 0));
}

static void alone_again(void)
{
	join(start(nothing, NULL));
	alone();
}

TEST(the_last_remaining_thread_enters)
{
	CHECK_EQ(status_of(alone_again, 0), W_EXITCODE(7, 0));
}

/* The kernel refuses the mode, and nothing changes. */

static void *be_refused(void *arg)
{
	CHECK_EQ(syscall(SYS_seccomp, SECCOMP_SET_MODE_STRICT, 1, NULL), -1);
	CHECK_EQ(errno, EINVAL);
	CHECK_EQ(becomes_carried(), preloaded());
	return arg;
}

static void *be_refused_by_filter(void *arg)
{
	static const int listed[] = { SYS_io_uring_setup };

	CHECK_EQ(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0);
	CHECK_EQ(filter_install(listed, 1, SECCOMP_RET_ALLOW, SECCOMP_RET_ALLOW, 0),
		 0);
	CHECK_EQ(prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT, 0, 0, 0), -1);
	CHECK_EQ(errno, EINVAL);
	usleep(100);
	join(start(nothing, NULL));
	return arg;
}

TEST(a_refused_thread_goes_on)
{
	pthread_t other = start(be_refused, NULL);

	join(start(be_refused_by_filter, NULL));
	join(other);
}

/* A filter can't be installed for all threads beside one in strict mode. */
static void install_for_all(pthread_t thread)
{
	static const int listed[] = { SYS_io_uring_enter };

	(void)thread;
	exchange('x');
	CHECK_EQ(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0);
	CHECK(filter_install(listed, 1, SECCOMP_RET_ERRNO | EPERM, SECCOMP_RET_ALLOW,
			     SECCOMP_FILTER_FLAG_TSYNC) > 0);
	exchange('y');
}

TEST(a_filter_for_all_threads_is_refused)
{
	among_others(echo_twice, install_for_all);
}

/* Many threads at once, so that later ones use the memory of ended ones. */

static void *end_somehow(void *arg)
{
	enter();
	if ((uintptr_t)arg % 3 == 0)
		leave(0);
	if ((uintptr_t)arg % 3 == 1)
		syscall(SYS_getppid);
	return arg;
}

TEST(many_threads_enter)
{
	for (int i = 0; i < 5; i++) {
		run_numbered(12, end_somehow);
		run_all(4, nothing, NULL);
	}
}
