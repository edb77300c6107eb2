/* SPDX-License-Identifier: MIT */
/*
 * A process ends with the last thread of the program. Threads that the runtime
 * creates for itself neither end it early nor prolong it.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include "late.h"
#include "threads.h"

#define LATE	300000U

/* Makes a call for which the engines use a separate syscall thread. */
static void make_disk_call(void)
{
	static char page[4096] __attribute__((aligned(4096)));

	CHECK_EQ(msync(page, sizeof(page), MS_SYNC), 0);
}

static int status_of(void (*run)(void))
{
	int pid = test_fork(), status;

	if (!pid) {
		run();
		_exit(99);
	}
	CHECK_EQ(waitpid(pid, &status, 0), pid);
	return status;
}

static void *compute(void *arg)
{
	struct timespec end = in_ms(CLOCK_MONOTONIC, 100), now;

	do {
		clock_gettime(CLOCK_MONOTONIC, &now);
	} while (now.tv_sec < end.tv_sec ||
		 (now.tv_sec == end.tv_sec && now.tv_nsec < end.tv_nsec));
	return arg;
}

/* The only other thread ends while the runtime creates a syscall thread for main(). */
static void call_while_another_ends(void)
{
	start(compute, NULL);
	settle();
	late_to_make = LATE;
	make_disk_call();
	late_to_make = 0;
	_exit(7);
}

TEST(a_process_lives_on_while_a_thread_is_made)
{
	for (int i = 0; i < 3; i++)
		CHECK_EQ(status_of(call_while_another_ends), W_EXITCODE(7, 0));
}

static void *call_disk(void *arg)
{
	settle();
	make_disk_call();
	return arg;
}

/*
 * A call is cancelled, and its syscall thread starts after all other threads have
 * ended.
 */
static void leave_while_one_begins(void)
{
	pthread_t thread = start(call_disk, NULL);

	late_to_begin = LATE;
	for (int i = 0; i < 3; i++)
		settle();
	CHECK_EQ(pthread_cancel(thread), 0);
	join(thread);
	pthread_exit(NULL);
}

TEST(a_process_ends_while_a_thread_begins)
{
	for (int i = 0; i < 3; i++)
		CHECK_EQ(status_of(leave_while_one_begins), 0);
}

static void enter_strict_mode(void)
{
	if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT, 0, 0, 0))
		_exit(1);
	syscall(SYS_exit, 0);
}

/* qemu's user mode has no strict mode. */
static void need_strict_mode(void)
{
	if (status_of(enter_strict_mode))
		SKIP("needs seccomp's strict mode");
}

static atomic_bool is_strict;

/*
 * The last thread returns in strict mode, so the kernel kills it at libc's next call.
 * libc no longer counts that thread when a thread that the runtime created begins.
 */
static void *return_strictly(void *arg)
{
	atomic_int *first = arg;

	late_to_begin = LATE;
	CHECK_EQ(prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT, 0, 0, 0), 0);
	atomic_store(&is_strict, true);
	while (atomic_load(first))
		;
	return arg;
}

static void be_killed_while_one_begins(void)
{
	static atomic_int first = 1;

	/* The kernel sets "first" to 0 when the calling thread has ended. */
	raw_syscall(SYS_set_tid_address, PTR(&first), 0, 0, 0, 0, 0);
	start(return_strictly, &first);
	while (!atomic_load(&is_strict))
		sched_yield();
	pthread_exit(NULL);
}

TEST(a_process_is_killed_while_a_thread_begins)
{
	need_strict_mode();
	for (int i = 0; i < 3; i++)
		CHECK_EQ(status_of(be_killed_while_one_begins),
			 W_EXITCODE(0, SIGKILL));
}

static void *leave_strictly(void *arg)
{
	CHECK_EQ(prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT, 0, 0, 0), 0);
	syscall(SYS_exit, 0);
	return arg;
}

/*
 * The runtime's thread that notices the end of a thread in strict mode ends itself after
 * that. libc still counts it when the program's last thread calls exit(2).
 */
static void leave_while_one_ends(void)
{
	pthread_t thread;

	late_to_end = LATE;
	thread = start(leave_strictly, NULL);
	join(thread);
	while (preloaded() && !late_ends)
		sched_yield();
	syscall(SYS_exit, 5);
}

TEST(a_process_ends_by_its_last_exit_while_a_thread_ends)
{
	need_strict_mode();
	for (int i = 0; i < 3; i++)
		CHECK_EQ(status_of(leave_while_one_ends), W_EXITCODE(5, 0));
}

static void unshare_while_one_ends(void)
{
	late_to_end = LATE;
	join(start(leave_strictly, NULL));
	while (preloaded() && !late_ends)
		sched_yield();
	if (!preloaded())
		await_unlisted();
	_exit(unshare(CLONE_NEWUSER) ? errno : 0);
}

static void unshare_alone(void)
{
	_exit(unshare(CLONE_NEWUSER) ? errno : 0);
}

TEST(the_only_thread_is_alone_while_a_thread_ends)
{
	need_strict_mode();
	if (status_of(unshare_alone))
		SKIP("needs user namespaces");
	CHECK_EQ(status_of(unshare_while_one_ends), 0);
}
