// SPDX-License-Identifier: MIT
/*
 * Core specialization (OSDI 2010, section 3.6): the cores on which syscall threads
 * run, and how long these threads poll for work. Runs in a guest with four
 * processors, as root.
 */
#include "place.h"
#include "system.h"

#define CPU	"/sys/devices/system/cpu/cpu"

PLACE_TEST(calls_run_on_the_named_core, 2, -1)
{
	for (int i = 0; i < 20; i++)
		CHECK_EQ(place_where(i % 2 ? DEFER : 0), 2);
	CHECK_EQ(raw_shown(" core 2 ", " taken "), 20);
	CHECK_EQ(raw_shown(NULL, " inline "), 0);
}

PLACE_TEST(the_first_core_is_preferred, 3, 1)
{
	for (int i = 0; i < 4; i++) {
		CHECK(place_prefers(3));
		usleep(5000);
	}
}

/*
 * On a core of the policy, a waiting owner executes entries as it would without a
 * policy.
 */
PLACE_TEST(an_owner_on_a_named_core_executes, 1, 2)
{
	CHECK(raw_move(2));
	for (int i = 0; i < 20; i++)
		CHECK_EQ(place_where(0), 2);
	CHECK_EQ(raw.threads, 0);
	CHECK_EQ(raw_shown(" core 2 ", " taken "), 20);
}

/*
 * If no other thread will execute an entry, the owner does, although its core isn't
 * in the policy.
 */
PLACE_TEST(an_owner_that_is_alone_executes, 1, 2)
{
	place_mark(0, 0, 0);
	raw.shared->seen = 0;
	raw.shared->timeout = UINT64_MAX;
	CHECK_EQ(ioctl(raw.fd, FLEXSC_IOC_WAIT, 0), FLEXSC_WAIT_MORE);
	raw.shared->wait_flags = FLEXSC_WAIT_NO_MORE;
	CHECK_EQ(ioctl(raw.fd, FLEXSC_IOC_WAIT, 0), FLEXSC_WAIT_LOOK);
	CHECK_EQ(raw_reap(&raw), 1);
	CHECK_EQ(place_marked(0), 0);
}

/* A syscall thread; no other one can be created. */
static void *serve_alone(void *arg)
{
	struct flexsc_serve serve = SERVE_FIRST;
	int result;

	while ((result = ioctl(raw.fd, FLEXSC_IOC_SERVE, &serve)) != FLEXSC_SERVE_END) {
		CHECK(result >= 0);
		serve.flags = FLEXSC_SERVE_NO_MORE;
		if (result == FLEXSC_SERVE_MOVE)
			CHECK(raw_move(serve.core));
	}
	return arg;
}

/*
 * An owner on another core executes entries if all threads are blocked, which may be
 * waiting for them. While a thread is active, the entries are left to that thread.
 */
PLACE_TEST(an_owner_waits_for_an_active_thread, 2, 3)
{
	pthread_t thread = test_thread(serve_alone, NULL);
	const int random = open("/dev/urandom", O_RDONLY | O_CLOEXEC);
	char byte;

	CHECK(random >= 0);
	raw_await_sleepers();
	raw_post(&raw, 0, FLEXSC_DEFER, SYS_readv, random, place_slow_parts(),
		 SLOW_PARTS);
	raw_kick(&raw);
	CHECK(place_becomes(0, FLEXSC_BUSY, 10000));
	place_mark(1, 0, 0);
	CHECK_EQ(raw_wait(&raw, 200 * MS), FLEXSC_WAIT_LOOK);
	CHECK_EQ(place_status(0), FLEXSC_BUSY);
	CHECK(raw.entries[0].ret != FLEXSC_BLOCKED);
	CHECK_EQ(place_status(1), FLEXSC_SUBMITTED);
	/* The thread leaves the kernel for a moment, so the owner may execute entry 1. */
	CHECK(raw_cancel(&raw, 0, FLEXSC_BUSY));
	raw_collect(&raw, 2);
	place_marked(0);
	raw_await_sleepers();
	raw_post(&raw, 0, FLEXSC_DEFER, SYS_read, fds[0], &byte, 1);
	raw_kick(&raw);
	CHECK(place_becomes(0, FLEXSC_BUSY, 8000));
	place_mark(1, 0, 0);
	raw_collect(&raw, 1);
	CHECK_EQ(place_marked(0), 0);
	CHECK_EQ(place_status(0), FLEXSC_BUSY);
	CHECK_EQ(write(fds[1], "x", 1), 1);
	raw_collect(&raw, 1);
	CHECK_EQ(raw.threads, 0);
	CHECK_EQ(ioctl(raw.fd, FLEXSC_IOC_END), 0);
	pthread_join(thread, NULL);
}

/*
 * An owner on another core can't execute entries. Even if it never sleeps in its waits,
 * a thread does: a new one at first, then one that may be idle.
 */
PLACE_TEST(a_wait_without_sleep_starts_threads, 2, -1)
{
	for (int i = 0; i < 3; i++) {
		place_mark(0, 0, 0);
		raw.shared->seen = raw.seen;
		raw.shared->timeout = 0;
		if (ioctl(raw.fd, FLEXSC_IOC_WAIT, 0) == FLEXSC_WAIT_MORE)
			raw_thread(&raw);
		CHECK(place_becomes(0, FLEXSC_DONE, 8000));
		raw_collect(&raw, 1);
		CHECK_EQ(place_marked(0), 2);
	}
}

/* No thread enters the kernel for that: the owner only reads memory. */
TEST(a_slow_call_sends_others_to_the_next_core)
{
	struct flexsc_policy policy = place_on(2, 3);

	/*
	 * The second call is posted later: of two threads that are sent to the first
	 * core at the same time, one might begin on the second core.
	 */
	place_begin(2, -1);
	place_post_slow(0);
	CHECK_EQ(place_set(&policy), 0);
	for (uint32_t i = 1; i < 10; i++) {
		place_mark(i, DEFER, 0);
		CHECK(place_becomes(i, FLEXSC_DONE, 8000));
		CHECK_EQ(place_status(0), FLEXSC_BUSY);
		CHECK_EQ(place_marked(0), 3);
	}
	CHECK(raw_cancel(&raw, 0, FLEXSC_BUSY));
	raw_collect(&raw, 10);
	CHECK(place_returns_to(2));
	raw_close(&raw);
}

/* Each core has one active syscall thread at a time. */
PLACE_TEST(a_slow_call_keeps_its_only_core, 2, -1)
{
	place_post_slow(0);
	place_mark(1, DEFER, 0);
	CHECK_EQ(raw_wait(&raw, 200 * MS), FLEXSC_WAIT_LOOK);
	CHECK_EQ(place_status(0), FLEXSC_BUSY);
	CHECK_EQ(place_status(1), FLEXSC_SUBMITTED);
	CHECK(raw_cancel(&raw, 0, FLEXSC_BUSY));
	raw_collect(&raw, 2);
	CHECK_EQ(place_marked(0), 2);
}

PLACE_TEST(a_blocked_call_frees_its_core, 2, 3)
{
	char byte;

	raw_post(&raw, 1, DEFER, SYS_read, fds[0], &byte, 1);
	raw_kick(&raw);
	CHECK(place_becomes(1, FLEXSC_BUSY, 8000));
	CHECK(place_prefers(2));
	CHECK_EQ(write(fds[1], "x", 1), 1);
	raw_collect(&raw, 1);
}

static void *spinner(void *arg)
{
	CHECK(raw_move(2));
	while (!atomic_load((atomic_bool *)arg))
		;
	return NULL;
}

/* The syscall thread shares the core with the thread that computes. */
TEST(a_core_that_computes_is_used)
{
	atomic_bool end = false;
	pthread_t thread;

	place_begin(2, -1);
	thread = test_thread(spinner, &end);
	for (int i = 0; i < 10; i++)
		CHECK_EQ(place_where(0), 2);
	atomic_store(&end, true);
	pthread_join(thread, NULL);
	raw_close(&raw);
}

PLACE_TEST(a_backlog_spreads, 2, 3)
{
	enum { COUNT = 512, SIZE = 65536 };
	static char bytes[SIZE];
	struct flexsc_policy policy;

	policy = place_on(2, 3);
	policy.backlog = 4;
	CHECK_EQ(place_set(&policy), 0);
	for (uint32_t i = 0; i < COUNT; i++)
		raw_post(&raw, i, DEFER, SYS_getrandom, bytes, SIZE);
	raw_collect(&raw, COUNT);
	CHECK(raw_shown(" core 2 ", " taken ") > 0);
	CHECK(raw_shown(" core 3 ", " taken ") > 0);
}

/* Polling. */

static void poll_for(uint32_t kind, uint32_t us)
{
	struct flexsc_policy policy = place_on(2, -1);

	policy.spin = kind;
	policy.spin_us = us;
	CHECK_EQ(place_set(&policy), 0);
}

static int64_t kicks;

/* Makes a call. Enters the kernel only if no thread polls. True: it didn't enter. */
static bool call_lightly(void)
{
	bool light = true;

	raw_post(&raw, 0, 0, SYS_getppid);
	while (place_status(0) != FLEXSC_DONE) {
		__atomic_thread_fence(__ATOMIC_SEQ_CST);
		if (__atomic_load_n(&raw.shared->needs_kick,
				    __ATOMIC_RELAXED)) {
			light = false;
			kicks++;
			raw_kick(&raw);
			usleep(100);
		}
	}
	while (!raw_reap(&raw))
		;
	return light;
}

static bool many_lightly(int count)
{
	call_lightly();
	while (count && call_lightly())
		count--;
	/* The module's counters show the same number of kicks, and no wait. */
	CHECK_EQ(raw_shown(NULL, " waits "), 0);
	CHECK_EQ(raw_shown(NULL, " kicks "), kicks);
	return !count;
}

PLACE_TEST_LIMIT(polling_needs_no_kernel_entry, 60, 2, -1)
{
	int tries = 0;

	poll_for(FLEXSC_SPIN_FIXED, 10000);
	/* The host of the guest may stand still at times. */
	while (!many_lightly(20))
		CHECK(++tries < 2000);
	CHECK_EQ(place_where(0), 2);
	test_note("%d tries", tries + 1);
}

PLACE_TEST(without_polling_each_call_is_kicked, 2, -1)
{
	CHECK(!many_lightly(1000));
}

static bool sleeps(void)
{
	for (int ms = 0; ms < 8000; ms++) {
		if (raw_shown(NULL, " idle ") == raw.threads)
			return true;
		usleep(1000);
	}
	return false;
}

PLACE_TEST(polling_ends, 2, -1)
{
	uint64_t before;

	poll_for(FLEXSC_SPIN_FIXED, 5000);
	place_call();
	CHECK(sleeps());
	CHECK_EQ(raw.shared->needs_kick, 1);
	before = cpu_ns();
	usleep(300000);
	CHECK(cpu_ns() - before < 100 * MS);
	/* Each call finds the thread asleep, although no other thread needs the core. */
	poll_for(FLEXSC_SPIN_FIXED, 1000);
	for (int i = 0; i < 50; i++) {
		place_call();
		CHECK(sleeps());
	}
	CHECK_EQ(place_where(0), 2);
}

static int64_t spin_ns(void)
{
	return raw_shown(" spin ", " ns ");
}

PLACE_TEST_LIMIT(polling_adapts, 60, 2, -1)
{
	poll_for(FLEXSC_SPIN_ADAPTIVE, 8000);
	CHECK_EQ(spin_ns(), 8000000);
	/* Each call comes later than the longest time of polling. */
	for (int i = 0; i < 20; i++) {
		place_call();
		usleep(20000);
	}
	CHECK_EQ(spin_ns(), 1000);
	/* Now polling would find each call. */
	for (int i = 0; i < 5000 && spin_ns() < 8000000; i++)
		place_call();
	CHECK_EQ(spin_ns(), 8000000);
}

/* Changes of the policy. */

PLACE_TEST(the_policy_is_shown, 2, 1)
{
	struct flexsc_policy policy, got;

	policy = place_on(3, 2);
	policy.spin = FLEXSC_SPIN_ADAPTIVE;
	policy.spin_us = 77;
	policy.idle_ms = 1234;
	policy.backlog = 5;
	CHECK_EQ(place_set(&policy), 0);
	CHECK_EQ(ioctl(raw.fd, FLEXSC_IOC_GET_POLICY, &got), 0);
	CHECK(!memcmp(&policy, &got, sizeof(policy)));
}

static void refuse(struct flexsc_policy bad, int error)
{
	struct flexsc_policy good = place_on(2, 1), got;

	CHECK_EQ(place_set(&bad), error);
	CHECK_EQ(ioctl(raw.fd, FLEXSC_IOC_GET_POLICY, &got), 0);
	CHECK(!memcmp(&good, &got, sizeof(good)));
}

PLACE_TEST(bad_policies_are_refused, 2, 1)
{
	const struct flexsc_policy bads[] = {
		place_on(4, -1),
		place_on(65535, -1),
		place_on(1, 1),
		{ .cores = FLEXSC_CORES_MAX + 1, .core = { 1 } },
		{ .cores = 1, .core = { 1, 2 } },
		{ .spin = FLEXSC_SPIN_ADAPTIVE + 1 },
		{ .spin_us = FLEXSC_SPIN_US_MAX + 1 },
		{ .reserved = { 1 } },
		{ .reserved = { 0, 1 } },
		{ .reserved = { 0, 0, 1 } },
	};

	for (size_t i = 0; i < sizeof(bads) / sizeof(*bads); i++)
		refuse(bads[i], -EINVAL);
	CHECK_EQ(system_set(CPU "3/online", "0"), 0);
	refuse(place_on(1, 3), -ENODEV);
	CHECK_EQ(system_set(CPU "3/online", "1"), 0);
	CHECK(place_prefers(2));
}

PLACE_TEST(cores_change_between_calls, 2, 3)
{
	struct flexsc_policy policy;

	for (int i = 0; i < 60; i++) {
		policy = place_on(1 + i % 3, -1);
		if (i >= 30) {
			/* A thread that polls has to notice the change. */
			policy.spin = FLEXSC_SPIN_FIXED;
			policy.spin_us = 10000;
		}
		CHECK_EQ(place_set(&policy), 0);
		CHECK_EQ(place_where(0), 1 + i % 3);
	}
	/* Without a policy, threads may run on any core. */
	policy = place_on(-1, -1);
	CHECK_EQ(place_set(&policy), 0);
	for (int i = 0; i < 20; i++)
		place_where(DEFER);
	CHECK(raw_shown(" core -1 ", " taken ") > 0);
}

TEST(cores_change_while_calls_are_executed)
{
	enum { COUNT = 60000 };
	struct flexsc_policy there;

	place_begin_with(1024, 2, -1);
	there = place_on(3, -1);
	place_where(0);
	place_mark(0, DEFER, 0);
	for (uint32_t i = 1; i < COUNT - 1; i++)
		raw_post(&raw, i, DEFER, SYS_getppid);
	place_mark(COUNT - 1, DEFER, 1);
	raw_kick(&raw);
	CHECK(place_becomes(0, FLEXSC_DONE, 8000));
	CHECK_EQ(place_set(&there), 0);
	CHECK(place_status(COUNT - 1) != FLEXSC_DONE);
	raw_collect(&raw, COUNT);
	CHECK_EQ(place_marked(0), 2);
	CHECK_EQ(place_marked(1), 3);
	raw_close(&raw);
}

/* Cores go offline and online. */

PLACE_TEST_LIMIT(a_core_may_go_and_come_back, 60, 3, 2)
{
	struct flexsc_policy policy = place_on(3, 2);

	policy.spin = FLEXSC_SPIN_FIXED;
	policy.spin_us = 10000;
	for (int i = 0; i < 3; i++) {
		if (i == 2)
			CHECK_EQ(place_set(&policy), 0);
		CHECK(place_prefers(3));
		CHECK_EQ(system_set(CPU "3/online", "0"), 0);
		for (int j = 0; j < 5; j++)
			CHECK_EQ(place_where(0), 2);
		CHECK_EQ(system_set(CPU "3/online", "1"), 0);
		CHECK(place_prefers(3));
	}
}

PLACE_TEST_LIMIT(the_only_core_may_go, 60, 3, -1)
{
	CHECK_EQ(place_where(0), 3);
	place_post_slow(1);
	CHECK_EQ(system_set(CPU "3/online", "0"), 0);
	CHECK(raw_cancel(&raw, 1, FLEXSC_BUSY));
	raw_collect(&raw, 1);
	for (int j = 0; j < 5; j++)
		CHECK(place_where(DEFER) < 3);
	CHECK_EQ(system_set(CPU "3/online", "1"), 0);
	/* A thread that polls on another core may still take an entry. */
	CHECK(place_returns_to(3));
	CHECK(place_prefers(3));
}

/* A policy doesn't give a process cores that it may not use. */
PLACE_TEST(a_cpuset_is_not_left, 2, 3)
{
	const char *folder = "/sys/fs/cgroup/two";
	char pid[16];

	snprintf(pid, sizeof(pid), "%d", getpid());
	CHECK_EQ(system_set("/sys/fs/cgroup/cgroup.subtree_control", "+cpuset"), 0);
	CHECK(!mkdir(folder, 0755) || errno == EEXIST);
	CHECK_EQ(system_set("/sys/fs/cgroup/two/cpuset.cpus", "0-1"), 0);
	CHECK(place_prefers(2));
	CHECK_EQ(system_set("/sys/fs/cgroup/two/cgroup.procs", pid), 0);
	for (int i = 0; i < 10; i++)
		CHECK(place_where(DEFER) < 2);
	/* The set shrinks to a core on which a thread may be running just now. */
	CHECK_EQ(system_set("/sys/fs/cgroup/two/cpuset.cpus", "1"), 0);
	for (int i = 0; i < 10; i++)
		CHECK_EQ(place_where(DEFER), 1);
	CHECK_EQ(system_set("/sys/fs/cgroup/two/cpuset.cpus", "1-2"), 0);
	CHECK(place_prefers(2));
	/* A set of the same size has the policy's cores, while threads stay in the kernel. */
	CHECK_EQ(system_set("/sys/fs/cgroup/two/cpuset.cpus", "0-1"), 0);
	for (int i = 0; i < 10; i++)
		CHECK(place_where(DEFER) < 2);
	CHECK_EQ(system_set("/sys/fs/cgroup/two/cpuset.cpus", "2-3"), 0);
	CHECK(place_prefers(2));
	CHECK_EQ(system_set("/sys/fs/cgroup/cgroup.procs", pid), 0);
	CHECK_EQ(rmdir(folder), 0);
}
