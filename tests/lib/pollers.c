/* SPDX-License-Identifier: MIT */
/*
 * Pollers: the kernel threads that take the requests of uring's loops, on the cores of
 * the option kernel_cores. Each core has one poller, which the process's loops share.
 */
#include "tests/lib/two_cores.h"

#include <dirent.h>
#include <sys/utsname.h>

#include "lib/engine/pollers.h"

/*
 * Counts the process's kernel threads whose names begin like this. If "cores" isn't
 * NULL, each may run on these cores only.
 */
static unsigned int count_kernel_threads(const char *begin, const char *cores)
{
	DIR *tasks = opendir("/proc/self/task");
	const struct dirent *task;
	unsigned int n = 0;
	char value[200];

	CHECK(tasks);
	while ((task = readdir(tasks))) {
		if (!file_line(task->d_name, "comm", begin, value,
			       sizeof(value)))
			continue;
		n++;
		if (cores && file_line(task->d_name, "status",
				       "Cpus_allowed_list:\t", value,
				       sizeof(value)) &&
		    strcmp(value, cores) != 0)
			test_fail(__FILE__, __LINE__, "%s on %s, not on %s",
				  begin, value, cores);
	}
	closedir(tasks);
	return n;
}

static unsigned int count_pollers(void)
{
	return count_kernel_threads("iou-sqp-", NULL);
}

TEST(loops_with_the_same_core_share_one_poller)
{
	use_two_cores();
	make_loops(other_list);
	CHECK_EQ(count_kernel_threads("iou-sqp-", other_list), 1);
	end_loops(0);
	CHECK(falls_to(count_pollers, 0));
}

TEST(a_poller_outlives_the_loop_that_created_it)
{
	use_two_cores();
	make_loops(other_list);
	CHECK_EQ(flexsc_loop_destroy(loops[0]), 0);
	works(loops[1]);
	loops[0] = NEW_LOOP(.kernel_cores = other_list);
	works(loops[0]);
	works(loops[2]);
	CHECK_EQ(count_kernel_threads("iou-sqp-", other_list), 1);
	end_loops(0);
}

TEST(the_owners_only_core_gets_no_poller)
{
	char both[40];

	use_two_cores();
	loops[0] = NEW_LOOP(.kernel_cores = own_list);
	CHECK(!is_polled(loops[0]));
	CHECK(strstr(flexsc_loop_why(loops[0]), "kernel_cores"));
	works(loops[0]);
	CHECK_EQ(count_pollers(), 0);
	snprintf(both, sizeof(both), "%s,%s", own_list, other_list);
	loops[1] = NEW_LOOP(.kernel_cores = both);
	works(loops[1]);
	if (!is_polled(loops[1]))
		SKIP("%s", flexsc_loop_why(loops[1]));
	CHECK(!flexsc_loop_why(loops[1]));
	CHECK_EQ(count_kernel_threads("iou-sqp-", other_list), 1);
	CHECK_EQ(flexsc_loop_destroy(loops[0]), 0);
	CHECK_EQ(flexsc_loop_destroy(loops[1]), 0);
}

static struct polled_ring rings[8];

static int enter(unsigned int ring, const struct cores *cores,
		 const cpu_set_t *mine, int here)
{
	int core;

	flexsc__pollers_lock();
	core = flexsc__pollers_choose(cores, mine, here);
	if (core >= 0)
		flexsc__pollers_enter(&rings[ring], (unsigned int)core, -1);
	flexsc__pollers_unlock();
	return core;
}

/* The least used core, and among equals the first one in the list's order. */
TEST(cores_are_taken_in_the_lists_order)
{
	const struct cores cores = { 3, { 7, 2, 5 } };
	cpu_set_t mine;

	CPU_ZERO(&mine);
	CPU_SET(0, &mine);
	CHECK_EQ(enter(0, &cores, &mine, 0), 7);
	CHECK_EQ(enter(1, &cores, &mine, 0), 2);
	CHECK_EQ(enter(2, &cores, &mine, 0), 5);
	CHECK_EQ(enter(3, &cores, &mine, 0), 7);
	flexsc__pollers_leave(&rings[2]);
	flexsc__pollers_leave(&rings[1]);
	CHECK_EQ(enter(1, &cores, &mine, 0), 2);
	CHECK_EQ(enter(2, &cores, &mine, 0), 5);
	flexsc__pollers_leave(&rings[0]);
	flexsc__pollers_leave(&rings[3]);
	CHECK_EQ(enter(0, &cores, &mine, 0), 7);
	/* The owner runs on core 7, which is the least used one. */
	flexsc__pollers_leave(&rings[0]);
	CPU_SET(7, &mine);
	CHECK_EQ(enter(0, &cores, &mine, 7), 2);
}

TEST(an_owner_with_several_cores_shares_one_without_a_choice)
{
	const struct cores cores = { 1, { 3 } };
	cpu_set_t mine;

	CPU_ZERO(&mine);
	CPU_SET(3, &mine);
	CHECK_EQ(enter(0, &cores, &mine, 3), -ENODEV);
	CPU_SET(4, &mine);
	CHECK_EQ(enter(0, &cores, &mine, 3), 3);
}

TEST(a_forked_child_has_pollers_of_its_own)
{
	use_two_cores();
	make_loops(other_list);
	IN_CHILD {
		make_loops(other_list);
		CHECK_EQ(count_kernel_threads("iou-sqp-", other_list), 1);
		end_loops(0);
	}
	for (unsigned int i = 0; i < LOOPS; i++)
		works(loops[i]);
	CHECK_EQ(count_kernel_threads("iou-sqp-", other_list), 1);
	end_loops(0);
}

static void *come_and_go(void *arg)
{
	(void)arg;
	for (unsigned int i = 0; i < MANY(100); i++) {
		struct flexsc_loop *mine = NEW_LOOP(.kernel_cores = other_list);

		works(mine);
		CHECK_EQ(flexsc_loop_destroy(mine), 0);
	}
	return NULL;
}

TEST_LIMIT(loops_come_and_go_in_several_threads, 60)
{
	pthread_t threads[4];

	use_two_cores();
	make_loops(other_list);
	for (unsigned int i = 0; i < 4; i++)
		threads[i] = test_thread(come_and_go, NULL);
	for (unsigned int i = 0; i < 4; i++)
		CHECK_EQ(pthread_join(threads[i], NULL), 0);
	works(loops[0]);
	CHECK_EQ(count_kernel_threads("iou-sqp-", other_list), 1);
	end_loops(0);
	CHECK(falls_to(count_pollers, 0));
}

/* Let another file have the numbers of all rings' descriptors. */
static void lose_rings(void)
{
	for (int fd; (fd = find_fd("anon_inode:[io_uring]")) >= 0;)
		CHECK_EQ(dup2(0, fd), fd);
}

/*
 * The program closes the rings' descriptors, which it doesn't know, and opens others
 * with their numbers. So the next loop can't join the poller.
 */
TEST(a_lost_descriptor_keeps_no_loop_from_polling)
{
	use_two_cores();
	make_loops(other_list);
	lose_rings();
	loop = NEW_LOOP(.kernel_cores = other_list);
	CHECK(is_polled(loop));
	works(loop);
	CHECK_EQ(count_kernel_threads("iou-sqp-", other_list), 2);
}

/* Let the ring of another process have the numbers of all other rings' descriptors. */
static void confuse_rings(int foreign)
{
	char path[40], name[40];

	for (int fd = 0; fd < 4096; fd++) {
		snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
		if (fd == foreign || readlink(path, name, sizeof(name)) < 0 ||
		    strncmp(name, "anon_inode:[io_uring]", 21) != 0)
			continue;
		CHECK_EQ(dup2(foreign, fd), fd);
	}
}

/* Then the kernel starts a poller without a notice, where the list permits it. */
TEST(a_confused_descriptor_leaves_pollers_on_the_listed_cores)
{
	struct io_uring_params params = { .flags = IORING_SETUP_SQPOLL };
	int foreign;

	use_two_cores();
	make_loops(other_list);
	end_loops(0);
	foreign = (int)syscall(SYS_io_uring_setup, 1, &params);
	CHECK(foreign >= 0);
	IN_CHILD {
		make_loops(other_list);
		confuse_rings(foreign);
		loop = NEW_LOOP(.kernel_cores = other_list);
		CHECK(is_polled(loop));
		works(loop);
		CHECK_EQ(count_kernel_threads("iou-sqp-", other_list), 2);
	}
	close(foreign);
}

TEST(without_a_thread_calls_execute_without_a_poller)
{
	struct rlimit own, none;

	use_two_cores();
	if (geteuid() != 0)
		SKIP("needs root, to become a user without threads");
	become_nobody();
	CHECK_EQ(getrlimit(RLIMIT_NPROC, &own), 0);
	none = (struct rlimit){ 0, own.rlim_max };
	CHECK_EQ(setrlimit(RLIMIT_NPROC, &none), 0);
	loops[0] = NEW_LOOP(.kernel_cores = other_list);
	CHECK(!is_polled(loops[0]));
	CHECK(strstr(flexsc_loop_why(loops[0]), "RLIMIT_NPROC"));
	works(loops[0]);
	CHECK_EQ(flexsc_loop_destroy(loops[0]), 0);
	/* LeakSanitizer needs a thread. */
	CHECK_EQ(setrlimit(RLIMIT_NPROC, &own), 0);
}

/* Can the kernel bind a poller's workers? From Linux 6.6 on. */
static bool binds_workers(void)
{
	unsigned int major, minor;
	struct utsname kernel;

	CHECK_EQ(uname(&kernel), 0);
	CHECK_EQ(sscanf(kernel.release, "%u.%u", &major, &minor), 2);
	return major > 6 || (major == 6 && minor >= 6);
}

/* fsync() always executes on one of io_uring's workers. */
TEST(workers_run_on_the_listed_cores)
{
	int fd = memfd_create("workers", MFD_CLOEXEC);

	if (!binds_workers())
		SKIP("needs Linux 6.6");
	use_two_cores();
	make_loops(other_list);
	for (unsigned int i = 0; i < LOOPS; i++)
		CHECK_EQ(DO(loops[i], SYS_fsync, fd), 0);
	CHECK(count_kernel_threads("iou-wrk-", other_list) > 0);
	end_loops(0);
}

/* While the poller is awake, calls need no mode switch of the owner. */
#define CALLS		1000U

TEST(a_busy_owner_makes_no_mode_switch)
{
	uint64_t before;

	use_two_cores();
	loops[0] = NEW_LOOP(.kernel_cores = other_list, .poll_us = 2000000);
	if (!is_polled(loops[0]))
		SKIP("%s", flexsc_loop_why(loops[0]));
	works(loops[0]);
	before = stats_of(loops[0]).mode_switches;
	for (unsigned int i = 0; i < CALLS; i++)
		CHECK_EQ(DO(loops[0], SYS_close, -1), -EBADF);
	test_note("%lu mode switches",
		  (unsigned long)(stats_of(loops[0]).mode_switches - before));
	CHECK(stats_of(loops[0]).mode_switches - before <= CALLS / 50);
	CHECK_EQ(flexsc_loop_destroy(loops[0]), 0);
}

/*
 * The poller gets requests while callbacks run: a turn that ran the callbacks of a whole
 * round would post the next round as one batch, so owner and poller would alternate.
 * Only one loop is used, because the kernel takes few requests at a time from each of
 * several rings.
 */
#define ROUND		32U
#define PIECE		8U	/* callbacks of one kind per turn: POLLED_MOST in uring.c */

static void ignore(struct flexsc_cb *cb)
{
	(void)cb;
}

static void make_one_loop(void)
{
	use_two_cores();
	loops[0] = NEW_LOOP(.kernel_cores = other_list);
	if (!is_polled(loops[0]))
		SKIP("%s", flexsc_loop_why(loops[0]));
}

static unsigned int left_to_post;

static void post_another(struct flexsc_cb *cb)
{
	CHECK_EQ(cb->ret, -EBADF);
	if (left_to_post && left_to_post--)
		flexsc_loop_close(loops[0], cb, -1);
}

TEST(a_poller_gets_requests_while_callbacks_run)
{
	struct flexsc_cb cbs[ROUND];

	make_one_loop();
	left_to_post = CALLS;
	for (unsigned int i = 0; i < ROUND; i++) {
		cbs[i] = (struct flexsc_cb){ .callback = post_another };
		flexsc_loop_close(loops[0], &cbs[i], -1);
	}
	CHECK_EQ(flexsc_loop_run(loops[0]), 0);
	CHECK(stats_of(loops[0]).batches >= CALLS / PIECE);
	CHECK_EQ(flexsc_loop_destroy(loops[0]), 0);
}

/* Repeats until the poller publishes more results at once than a turn has callbacks. */
TEST(a_harvest_is_larger_than_a_turn)
{
	struct flexsc_cb cbs[ROUND], *done[ROUND];
	unsigned int largest = 0;

	make_one_loop();
	while (largest <= PIECE) {
		for (unsigned int i = 0; i < ROUND; i++) {
			cbs[i] = (struct flexsc_cb){ 0 };
			flexsc_loop_close(loops[0], &cbs[i], -1);
		}
		for (unsigned int left = ROUND; left;) {
			CHECK_EQ(flexsc_loop_wait(loops[0], FLEXSC_FOREVER), 1);
			const int n = flexsc_loop_harvest(loops[0], done, left);

			CHECK(n >= 0);
			left -= (unsigned int)n;
			if ((unsigned int)n > largest)
				largest = (unsigned int)n;
		}
	}
	CHECK_EQ(flexsc_loop_destroy(loops[0]), 0);
}

/* The number of callbacks of expired timers that a turn runs. */
static int timers_in_a_turn(struct flexsc_cb *cbs)
{
	int n;

	for (unsigned int i = 0; i < ROUND; i++) {
		cbs[i] = (struct flexsc_cb){ .callback = ignore };
		CHECK_EQ(flexsc_loop_timer(loops[0], &cbs[i], 1), 0);
	}
	sleep_ms(10);
	CHECK_EQ(flexsc_loop_wait(loops[0], FLEXSC_FOREVER), 1);
	n = flexsc_loop_dispatch(loops[0]);
	CHECK_EQ(flexsc_loop_run(loops[0]), 0);
	return n;
}

/* After the ring has failed, there is no poller that could work meanwhile. */
TEST(a_failed_ring_shortens_no_turn)
{
	const int enter = SYS_io_uring_enter;
	struct flexsc_cb cbs[ROUND];

	make_one_loop();
	CHECK_EQ(timers_in_a_turn(cbs), PIECE);
	forbid(&enter, 1, EPERM);
	while (!strcmp(flexsc_loop_engine(loops[0]), "uring")) {
		sleep_ms(10);
		CHECK_EQ(DO(loops[0], SYS_close, -1), -EBADF);
	}
	CHECK_EQ(timers_in_a_turn(cbs), ROUND);
	CHECK_EQ(flexsc_loop_destroy(loops[0]), 0);
}

/* Rounding the largest poll_us up to milliseconds must not make it 0. */
TEST(the_longest_time_to_poll_is_not_short)
{
	uint64_t before;

	use_two_cores();
	loops[0] = NEW_LOOP(.kernel_cores = other_list, .poll_us = UINT32_MAX);
	if (!is_polled(loops[0]))
		SKIP("%s", flexsc_loop_why(loops[0]));
	works(loops[0]);
	before = stats_of(loops[0]).mode_switches;
	for (unsigned int i = 0; i < 10; i++) {
		sleep_ms(5);
		CHECK_EQ(DO(loops[0], SYS_close, -1), -EBADF);
	}
	CHECK(stats_of(loops[0]).mode_switches - before < 5);
	CHECK_EQ(flexsc_loop_destroy(loops[0]), 0);
}

/*
 * After flexsc_loop_cancel_fd(), the number may name another file, although the poller
 * may not have looked it up yet. Another read keeps the poller busy meanwhile.
 */
TEST(a_cancelled_call_does_not_use_the_number_again)
{
	static char bytes[16 << 20];
	const int busy = memfd_create("busy", MFD_CLOEXEC);

	use_two_cores();
	make_loops(other_list);
	CHECK_EQ(ftruncate(busy, sizeof(bytes)), 0);
	for (unsigned int i = 0; i < 20; i++) {
		struct call slow = CALL_INIT, call = CALL_INIT;
		int p[2], q[2];
		char byte;

		CHECK_EQ(pipe(p), 0);
		POST(loops[1], &slow, SYS_pread64, busy, bytes, sizeof(bytes), 0);
		CHECK_EQ(flexsc_loop_submit(loops[1]), 0);
		POST(loops[0], &call, SYS_read, p[0], &byte, 1);
		CHECK_EQ(flexsc_loop_submit(loops[0]), 0);
		CHECK_EQ(flexsc_loop_cancel_fd(loops[0], p[0]), 1);
		CHECK_EQ(close(p[0]), 0);
		CHECK_EQ(pipe(q), 0);
		CHECK_EQ(q[0], p[0]);
		CHECK_EQ(write(q[1], "x", 1), 1);
		CHECK(is_cancelled(await_call(loops[0], &call)));
		CHECK_EQ(await_call(loops[1], &slow), sizeof(bytes));
		close(p[1]);
		close(q[0]);
		close(q[1]);
	}
	end_loops(0);
}
