// SPDX-License-Identifier: MIT
/*
 * Two registrations of one process, as of two loops: they share the right to have an
 * active syscall thread on a core (OSDI 2010, section 3.5). Runs in a guest with four
 * processors, as root.
 */
#include <sys/wait.h>

#include "place.h"
#include "system.h"

/* The second registration; "raw" is the first. */
static struct raw other;

static void set_cores(struct raw *of, int first, int second)
{
	struct flexsc_policy policy = place_on(first, second);

	CHECK_EQ(ioctl(of->fd, FLEXSC_IOC_SET_POLICY, &policy), 0);
}

static void begin(int first, int second)
{
	place_begin(first, second);
	raw_open(&other, 8, 0);
	set_cores(&other, 2, -1);
}

static void end(void)
{
	raw_close(&other);
	raw_close(&raw);
}

/* A test in which "other" has core 2, and "raw" these cores. */
#define SHARING_TEST(id, first, second)					\
	TEST_BETWEEN(id, 60, begin(first, second), end())

/* Has "other" keep core 2 until its entry 0 is cancelled. */
static void keep_core(void)
{
	int fd = open("/dev/urandom", O_RDONLY | O_CLOEXEC);

	CHECK(fd >= 0);
	raw_post(&other, 0, DEFER, SYS_readv, fd, place_slow_parts(), SLOW_PARTS);
	raw_kick(&other);
	raw_await(&other, 0, FLEXSC_BUSY);
}

static void free_core(void)
{
	CHECK(raw_cancel(&other, 0, FLEXSC_BUSY));
	raw_collect(&other, 1);
}

SHARING_TEST(a_core_has_one_active_thread, 2, -1)
{
	keep_core();
	place_mark(1, DEFER, 0);
	CHECK_EQ(raw_wait(&raw, 200 * MS), FLEXSC_WAIT_LOOK);
	CHECK_EQ(place_status(1), FLEXSC_SUBMITTED);
	CHECK_EQ(raw_shown(" core 2 ", " taken "), 0);
	free_core();
	raw_collect(&raw, 1);
	CHECK_EQ(place_marked(0), 2);
}

/* A kick alone must have a thread created, because the owner may not wait. */
SHARING_TEST(a_kick_is_remembered, 2, -1)
{
	keep_core();
	place_mark(1, DEFER, 0);
	raw_kick(&raw);
	CHECK_EQ(place_status(1), FLEXSC_SUBMITTED);
	free_core();
	CHECK(place_becomes(1, FLEXSC_DONE, 20000));
	CHECK_EQ(place_marked(0), 2);
}

SHARING_TEST(the_next_core_is_used, 2, 3)
{
	keep_core();
	place_mark(1, DEFER, 0);
	raw_collect(&raw, 1);
	CHECK_EQ(place_marked(0), 3);
	CHECK_EQ(other.entries[0].status, FLEXSC_BUSY);
	free_core();
}

SHARING_TEST(a_blocked_call_frees_the_core, 2, -1)
{
	char byte;

	raw_post(&other, 1, DEFER, SYS_read, fds[0], &byte, 1);
	raw_kick(&other);
	raw_await(&other, 1, FLEXSC_BUSY);
	for (int i = 0; i < 10; i++)
		CHECK_EQ(place_where(DEFER), 2);
	CHECK_EQ(write(fds[1], "x", 1), 1);
	raw_collect(&other, 1);
}

/* The waiting owner executes entries although another thread has the core's slot. */
SHARING_TEST(a_waiter_needs_no_slot, 3, 2)
{
	keep_core();
	CHECK(raw_move(3));
	for (int i = 0; i < 10; i++)
		CHECK_EQ(place_where(0), 3);
	free_core();
}

static void post_calls(struct raw *of, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++)
		raw_post(of, i, DEFER, SYS_getppid);
}

static void *flood(void *arg)
{
	const uint32_t count = other.args.ring_entries;

	while (!atomic_load((atomic_bool *)arg)) {
		post_calls(&other, count);
		raw_kick(&other);
		raw_finish(&other, count);
	}
	return NULL;
}

/* The thread of "other" always finds more entries. */
SHARING_TEST(registrations_take_turns, 2, -1)
{
	atomic_bool stop = false;
	pthread_t thread = test_thread(flood, &stop);

	for (int i = 0; i < 50; i++) {
		post_calls(&raw, 200);
		raw_kick(&raw);
		raw_finish(&raw, 200);
	}
	atomic_store(&stop, true);
	pthread_join(thread, NULL);
	CHECK(raw_shown(NULL, " executed ") >= 50 * 200);
}

SHARING_TEST(a_closed_registration_frees_the_core, 2, -1)
{
	keep_core();
	place_mark(1, DEFER, 0);
	raw_kick(&raw);
	CHECK(raw_cancel(&other, 0, FLEXSC_BUSY));
	raw_close(&other);
	CHECK(place_becomes(1, FLEXSC_DONE, 20000));
	raw_collect(&raw, 1);
	CHECK_EQ(place_where(DEFER), 2);
	raw_open(&other, 8, 0);
	set_cores(&other, 2, -1);
	post_calls(&other, 1);
	raw_collect(&other, 1);
}

/* A thread that has begun under the former policy frees the former core. */
SHARING_TEST(a_new_policy_frees_the_core, 2, -1)
{
	for (int i = 0; i < 20; i++) {
		set_cores(&other, 2 + i % 2, -1);
		post_calls(&other, 1);
		raw_collect(&other, 1);
		CHECK_EQ(place_where(DEFER), 2);
	}
	keep_core();
	set_cores(&other, 3, -1);
	free_core();
	CHECK_EQ(place_where(DEFER), 2);
}

/* The thread of "other" polls on core 2 when the call of "raw" comes. */
SHARING_TEST(a_polling_thread_gives_way, 2, -1)
{
	struct flexsc_policy policy = place_on(2, -1);

	policy.spin = FLEXSC_SPIN_FIXED;
	policy.spin_us = FLEXSC_SPIN_US_MAX;
	CHECK_EQ(ioctl(other.fd, FLEXSC_IOC_SET_POLICY, &policy), 0);
	for (int i = 0; i < 100; i++) {
		post_calls(&other, 1);
		raw_collect(&other, 1);
		CHECK_EQ(place_where(DEFER), 2);
	}
}

/* Runs a function in a child, and returns how it ended. */
static int child_of(void (*run)(void))
{
	pid_t child = test_fork();
	int status;

	if (!child) {
		run();
		_exit(0);
	}
	CHECK_EQ(waitpid(child, &status, 0), child);
	/* The registrations are destroyed with the child's last file. */
	while (raw_shown_of(child, NULL, " idle ") >= 0)
		usleep(1000);
	return status;
}

static void run_alone(void)
{
	static struct raw own;

	raw_open(&own, 1, 0);
	set_cores(&own, 2, -1);
	post_calls(&own, 1);
	raw_collect(&own, 1);
	raw_close(&own);
}

/* A child shares no core with its parent, not even after its registration's end. */
SHARING_TEST(a_child_has_cores_of_its_own, 2, -1)
{
	keep_core();
	for (int i = 0; i < 3; i++)
		CHECK_EQ(child_of(run_alone), 0);
	CHECK_EQ(other.entries[0].status, FLEXSC_BUSY);
	free_core();
}

static void die(void)
{
	kill(getpid(), SIGKILL);
}

static void die_with_one_waiting(void)
{
	begin(2, -1);
	keep_core();
	place_mark(1, DEFER, 0);
	raw_wait(&raw, 20 * MS);
	die();
}

static void die_with_both_blocked(void)
{
	static char bytes[2];

	begin(2, -1);
	raw_post(&other, 0, DEFER, SYS_read, fds[0], bytes, 1);
	raw_post(&raw, 0, DEFER, SYS_read, fds[0], bytes + 1, 1);
	raw_kick(&other);
	raw_kick(&raw);
	raw_await(&other, 0, FLEXSC_BUSY);
	raw_await(&raw, 0, FLEXSC_BUSY);
	die();
}

static void die_idle(void)
{
	begin(2, -1);
	post_calls(&other, 1);
	post_calls(&raw, 1);
	raw_collect(&other, 1);
	raw_collect(&raw, 1);
	die();
}

/* Dies while the two registrations pass the core to each other. */
static void die_taking_turns(void)
{
	static atomic_bool stop;

	begin(2, -1);
	test_thread(flood, &stop);
	for (int i = 0; i < 3; i++) {
		post_calls(&raw, 100);
		raw_kick(&raw);
		raw_finish(&raw, 100);
	}
	die();
}

TEST_LIMIT(a_killed_process_leaves_nothing, 120)
{
	void (*const ends[])(void) = {
		die_with_one_waiting,
		die_with_both_blocked,
		die_idle,
		die_taking_turns,
	};

	if (sysconf(_SC_NPROCESSORS_ONLN) < 4)
		SKIP("needs four processors");
	for (int i = 0; i < 20; i++) {
		int status = child_of(ends[i % 4]);

		CHECK(WIFSIGNALED(status));
		CHECK_EQ(WTERMSIG(status), SIGKILL);
	}
	CHECK_EQ(child_of(run_alone), 0);
}
