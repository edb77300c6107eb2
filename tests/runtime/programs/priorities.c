/* SPDX-License-Identifier: MIT */
/* Real-time policies and priorities of threads. */
#define _GNU_SOURCE
#include <sched.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <sys/resource.h>
#include <sys/syscall.h>

#include "threads.h"

enum { TIMES = 20 };

struct schedule {
	int policy, priority;
};

static void need_priorities(void)
{
	const struct sched_param param = { 1 }, none = { 0 };

	if (sched_setscheduler(0, SCHED_FIFO, &param))
		SKIP("can't set a real-time priority: %s", strerror(errno));
	CHECK_EQ(sched_setscheduler(0, SCHED_OTHER, &none), 0);
}

static void check_schedule(pid_t tid, struct schedule wanted)
{
	struct sched_param param;

	CHECK_EQ(sched_getscheduler(tid), wanted.policy);
	CHECK_EQ(sched_getparam(tid, &param), 0);
	CHECK_EQ(param.sched_priority, wanted.priority);
}

/* libc queries the kernel once. Later it returns what was set through libc. */
static void check_libc_s(pthread_t thread, struct schedule wanted)
{
	struct sched_param param;
	int policy;

	CHECK_EQ(pthread_getschedparam(thread, &policy, &param), 0);
	CHECK_EQ(policy, wanted.policy);
	CHECK_EQ(param.sched_priority, wanted.priority);
}

static void check_own(struct schedule wanted)
{
	for (int i = 0; i < TIMES; i++) {
		usleep(100);
		check_schedule(0, wanted);
		check_schedule(gettid(), wanted);
	}
}

/*
 * The policy of the kernel thread that runs the caller, by a call that the runtime
 * doesn't intercept.
 */
static long policy_here(void)
{
	return raw_syscall(SYS_sched_getscheduler, 0, 0, 0, 0, 0, 0);
}

/* A thread that is created with a priority always runs with it. */
static void *check_mine(void *arg)
{
	const struct schedule *wanted = arg;

	for (int i = 0; i < TIMES; i++) {
		usleep(100);
		CHECK_EQ(policy_here(), wanted->policy);
	}
	check_own(*wanted);
	return arg;
}

static pthread_t start_with(struct schedule *schedule, int inherit)
{
	struct sched_param param = { schedule->priority };
	pthread_attr_t attr;
	pthread_t thread;

	pthread_attr_init(&attr);
	CHECK_EQ(pthread_attr_setinheritsched(&attr, inherit), 0);
	CHECK_EQ(pthread_attr_setschedpolicy(&attr, schedule->policy), 0);
	CHECK_EQ(pthread_attr_setschedparam(&attr, &param), 0);
	CHECK_EQ(pthread_create(&thread, &attr, check_mine, schedule), 0);
	pthread_attr_destroy(&attr);
	return thread;
}

TEST(a_thread_is_made_with_the_priority_asked_for)
{
	struct schedule each[] = {
		{ SCHED_FIFO, 5 }, { SCHED_OTHER, 0 }, { SCHED_RR, 7 },
		{ SCHED_FIFO, 1 },
	};
	pthread_t threads[4];

	need_priorities();
	for (int i = 0; i < 4; i++)
		threads[i] = start_with(&each[i], PTHREAD_EXPLICIT_SCHED);
	check_own((struct schedule){ SCHED_OTHER, 0 });
	join_all(threads, 4);
}

static void set_own(int policy, int priority)
{
	const struct sched_param param = { priority };

	CHECK_EQ(pthread_setschedparam(pthread_self(), policy, &param), 0);
	check_own((struct schedule){ policy, priority });
	check_libc_s(pthread_self(), (struct schedule){ policy, priority });
}

static void *change_mine(void *arg)
{
	const struct sched_param three = { 3 }, none = { 0 };

	usleep(100);
	set_own(SCHED_FIFO, 4);
	set_own(SCHED_RR, 6);
	set_own(SCHED_BATCH, 0);
	set_own(SCHED_RR, 6);
	CHECK_EQ(pthread_setschedprio(pthread_self(), 2), 0);
	check_own((struct schedule){ SCHED_RR, 2 });
	CHECK_EQ(sched_setparam(0, &three), 0);
	check_own((struct schedule){ SCHED_RR, 3 });
	CHECK_EQ(sched_setscheduler(gettid(), SCHED_FIFO, &three), 0);
	check_own((struct schedule){ SCHED_FIFO, 3 });
	CHECK_EQ(pthread_setschedparam(pthread_self(), SCHED_FIFO, &none),
		 EINVAL);
	CHECK_EQ(pthread_setschedprio(pthread_self(), 1000), EINVAL);
	set_own(SCHED_OTHER, 0);
	return arg;
}

static void *stay_usual(void *arg)
{
	atomic_bool *ends = arg;

	while (!*ends)
		check_own((struct schedule){ SCHED_OTHER, 0 });
	return arg;
}

TEST(a_priority_is_a_thread_s_own)
{
	atomic_bool ends = false;
	pthread_t other;

	need_priorities();
	other = start(stay_usual, &ends);
	run_all(2, change_mine, NULL);
	ends = true;
	join(other);
	check_own((struct schedule){ SCHED_OTHER, 0 });
}

struct subject {
	sem_t changed, seen;
	_Atomic pid_t tid;
	struct schedule now;
};

static void *see_changes(void *arg)
{
	struct subject *subject = arg;

	usleep(100);
	subject->tid = gettid();
	for (int i = 0; i < 3; i++) {
		CHECK_EQ(sem_wait(&subject->changed), 0);
		check_own(subject->now);
		CHECK_EQ(sem_post(&subject->seen), 0);
	}
	return arg;
}

static void let_see(struct subject *subject, int policy, int priority)
{
	subject->now = (struct schedule){ policy, priority };
	check_schedule(subject->tid, subject->now);
	CHECK_EQ(sem_post(&subject->changed), 0);
	CHECK_EQ(sem_wait(&subject->seen), 0);
}

/* The other thread waits on a carrier, or on its host. */
TEST(a_thread_sets_another_s_priority)
{
	const struct sched_param eight = { 8 }, param = { 0 };
	struct subject subject = { .tid = 0 };
	pthread_t thread;

	need_priorities();
	CHECK_EQ(sem_init(&subject.changed, 0, 0), 0);
	CHECK_EQ(sem_init(&subject.seen, 0, 0), 0);
	thread = start(see_changes, &subject);
	while (!subject.tid)
		usleep(100);
	CHECK_EQ(pthread_setschedparam(thread, SCHED_FIFO, &eight), 0);
	let_see(&subject, SCHED_FIFO, 8);
	check_libc_s(thread, subject.now);
	CHECK_EQ(pthread_setschedprio(thread, 9), 0);
	let_see(&subject, SCHED_FIFO, 9);
	check_libc_s(thread, subject.now);
	CHECK_EQ(sched_setscheduler(subject.tid, SCHED_OTHER, &param), 0);
	let_see(&subject, SCHED_OTHER, 0);
	join(thread);
}

static void *hand_on(void *arg)
{
	struct schedule fifo = { SCHED_FIFO, 5 }, usual = { SCHED_OTHER, 0 };
	struct sched_param five = { 5 };

	usleep(100);
	CHECK_EQ(pthread_setschedparam(pthread_self(), SCHED_FIFO, &five), 0);
	usleep(100);
	/* PTHREAD_INHERIT_SCHED overrides the attribute's policy. */
	join(start_with(&fifo, PTHREAD_INHERIT_SCHED));
	usleep(100);
	join(start(check_mine, &fifo));
	join(start_with(&usual, PTHREAD_EXPLICIT_SCHED));
	CHECK_EQ(sched_setscheduler(0, SCHED_FIFO | SCHED_RESET_ON_FORK,
				    &five), 0);
	usleep(100);
	join(start(check_mine, &usual));
	return arg;
}

TEST(a_priority_is_inherited)
{
	struct schedule usual = { SCHED_OTHER, 0 };

	need_priorities();
	join(start(hand_on, NULL));
	join(start(check_mine, &usual));
}

static void *must_not_run(void *arg)
{
	CHECK(!"it runs");
	return arg;
}

static void *want_too_much(void *arg)
{
	struct sched_param five = { 5 };
	pthread_attr_t attr;
	pthread_t thread;

	usleep(100);
	CHECK_EQ(pthread_setschedparam(pthread_self(), SCHED_RR, &five), EPERM);
	CHECK_EQ(sched_setscheduler(0, SCHED_RR, &five), -1);
	CHECK_EQ(errno, EPERM);
	pthread_attr_init(&attr);
	CHECK_EQ(pthread_attr_setinheritsched(&attr, PTHREAD_EXPLICIT_SCHED),
		 0);
	CHECK_EQ(pthread_attr_setschedpolicy(&attr, SCHED_FIFO), 0);
	CHECK_EQ(pthread_attr_setschedparam(&attr, &five), 0);
	for (int i = 0; i < TIMES; i++) {
		usleep(100);
		CHECK_EQ(pthread_create(&thread, &attr, must_not_run, NULL),
			 EPERM);
	}
	check_own((struct schedule){ SCHED_OTHER, 0 });
	return arg;
}

TEST(a_priority_may_not_be_permitted)
{
	const struct rlimit none = { 0, 0 };

	become_nobody();
	CHECK_EQ(setrlimit(RLIMIT_RTPRIO, &none), 0);
	join(start(want_too_much, NULL));
}
