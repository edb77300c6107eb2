/* SPDX-License-Identifier: MIT */
/*
 * The identity with which pollers make calls: requests have the credentials that the
 * owner has at their submission, after flexsc_identity_changed().
 */
#include "tests/harness/traced.h"
#include "tests/lib/two_cores.h"

/* Opens a file that only root may open. */
static int64_t open_shadow(struct flexsc_loop *loop)
{
	int64_t fd = DO(loop, SYS_openat, AT_FDCWD, "root-only", O_RDONLY);

	if (fd >= 0)
		close((int)fd);
	return fd >= 0 ? 0 : fd;
}

static void make_file_of_root(void)
{
	if (geteuid() != 0)
		SKIP("needs root, to become another user");
	enter_scratch();
	CHECK_EQ(chmod(".", 0755), 0);
	CHECK_EQ(close(open("root-only", O_CREAT | O_WRONLY, 0600)), 0);
}

TEST(requests_have_the_identity_of_their_submission)
{
	use_two_cores();
	make_file_of_root();
	make_loops(other_list);
	CHECK_EQ(open_shadow(loops[0]), 0);
	for (unsigned int i = 0; i < 20; i++) {
		CHECK_EQ(seteuid(65534), 0);
		CHECK_EQ(flexsc_identity_changed(), 0);
		CHECK_EQ(open_shadow(loops[0]), -EACCES);
		CHECK_EQ(seteuid(0), 0);
		CHECK_EQ(flexsc_identity_changed(), 0);
		CHECK_EQ(open_shadow(loops[0]), 0);
	}
	become_nobody();
	CHECK_EQ(flexsc_identity_changed(), 0);
	for (unsigned int i = 0; i < LOOPS; i++)
		CHECK_EQ(open_shadow(loops[i]), -EACCES);
	end_loops(0);
}

/* Requests that were posted, but not submitted, get the new identity. */
TEST(posted_requests_get_the_new_identity)
{
	struct call call = CALL_INIT;

	use_two_cores();
	make_file_of_root();
	make_loops(other_list);
	POST(loops[0], &call, SYS_openat, AT_FDCWD, "root-only", O_RDONLY);
	become_nobody();
	CHECK_EQ(flexsc_identity_changed(), 0);
	CHECK_EQ(await_call(loops[0], &call), -EACCES);
	end_loops(0);
}

TEST(a_ring_that_cannot_change_its_identity_is_given_up)
{
	const int call = SYS_io_uring_register;

	use_two_cores();
	make_file_of_root();
	make_loops(other_list);
	become_nobody();
	CHECK_EQ(flexsc_identity_changed(), 0);
	forbid(&call, 1, EPERM);
	CHECK_EQ(open_shadow(loops[0]), -EACCES);
	CHECK(!strcmp(flexsc_loop_engine(loops[0]), "threads"));
}

/* What a change costs. */

#define CHANGES	10U

static void announce(void)
{
	for (unsigned int i = 0; i < CHANGES; i++)
		CHECK_EQ(flexsc_identity_changed(), 0);
}

static void announce_and_call(void)
{
	announce();
	works(loops[0]);
}

static void call(void)
{
	works(loops[0]);
}

/* Nothing is submitted: the loop sleeps, and wakes up by its timer. */
static void announce_and_wait(void)
{
	struct call timer = CALL_INIT;

	announce();
	CHECK_EQ(flexsc_loop_timer(loops[0], &timer.cb, MS), 0);
	CHECK_EQ(await_call(loops[0], &timer), 0);
}

/* Returns how many calls "act" makes with loops of this list, after "prepare". */
static unsigned int calls_of(const char *list, void (*prepare)(void),
			     void (*act)(void), long nr)
{
	const int pid = traced_fork();

	if (pid)
		return traced_calls(pid, nr);
	for (unsigned int i = 0; i < LOOPS; i++) {
		loops[i] = NEW_LOOP(.kernel_cores = list);
		works(loops[i]);
	}
	if (prepare)
		prepare();
	traced_begin();
	act();
	traced_end();
	test_leave();
}

/*
 * A ring registers the present identity when it submits the next requests, once for all
 * changes before, and then releases the previous one.
 */
TEST(a_change_takes_two_calls_per_ring_that_goes_on)
{
	const long nr = SYS_io_uring_register;

	use_two_cores();
	make_loops(other_list);
	end_loops(0);
	CHECK_EQ(calls_of(other_list, NULL, announce, ALL_CALLS), 0);
	CHECK_EQ(calls_of(other_list, NULL, announce_and_call, nr), 1);
	CHECK_EQ(calls_of(other_list, announce_and_call, announce_and_call, nr), 2);
	CHECK_EQ(calls_of(other_list, announce_and_call, call, nr), 0);
	CHECK_EQ(calls_of(other_list, NULL, announce_and_wait, nr), 0);
	CHECK_EQ(calls_of(NULL, NULL, announce_and_call, nr), 0);
}

#define PENDING	20U

/*
 * Change the identity again and again while requests are pending: the owner moves to the
 * poller's core. Both have the same real-time priority, so the poller runs only while
 * the owner sleeps.
 */
static void announce_beside_requests(void)
{
	static struct call calls[PENDING];
	cpu_set_t core;

	CPU_ZERO(&core);
	CPU_SET(other_core, &core);
	CHECK_EQ(sched_setaffinity(0, sizeof(core), &core), 0);
	for (unsigned int i = 0; i < PENDING; i++) {
		calls[i] = (struct call)CALL_INIT;
		POST(loops[0], &calls[i], SYS_close, -1);
		CHECK_EQ(flexsc_identity_changed(), 0);
		CHECK_EQ(flexsc_loop_submit(loops[0]), 0);
	}
	for (unsigned int i = 0; i < PENDING; i++)
		CHECK_EQ(await_call(loops[0], &calls[i]), -EBADF);
}

/* Otherwise 65,535 such changes would leave the ring without numbers. */
TEST(identities_are_released_when_no_request_needs_them)
{
	const struct sched_param priority = { .sched_priority = 1 };
	const long nr = SYS_io_uring_register;

	use_two_cores();
	make_loops(other_list);
	end_loops(0);
	if (sched_setscheduler(0, SCHED_FIFO, &priority))
		SKIP("needs CAP_SYS_NICE");
	CHECK_EQ(calls_of(other_list, announce_beside_requests, announce_and_call, nr),
		 1 + PENDING);
}
