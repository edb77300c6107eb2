/* SPDX-License-Identifier: MIT */
/*
 * The cores of the option kernel_cores on which syscall threads make calls: the list's
 * order, the backlog that lets a loop use the next core, and the counters by core.
 */
#include "tests/lib/counts_by_core.h"
#include "tests/lib/two_cores.h"

#include <dirent.h>

TEST(calls_are_counted_by_core)
{
	struct flexsc_stats_cores cores;

	use_two_cores();
	loops[0] = NEW_LOOP(.kernel_cores = other_list);
	works(loops[0]);
	cores = read_cores();
	CHECK_EQ(cores.poller, is_polled(loops[0]) ? other_core + 1 : 0);
	CHECK(stats_of(loops[0]).by_uring >= 10);
	CHECK_EQ(flexsc_loop_destroy(loops[0]), 0);
	loops[0] = NEW_LOOP(.engine = "threads", .kernel_cores = other_list);
	works(loops[0]);
	/* A thread counts its calls after it has delivered the last one. */
	do {
		sleep_ms(1);
		cores = read_cores();
	} while (cores.by_thread[own_core] + cores.by_thread[other_core] < 10);
	CHECK_EQ(cores.poller, 0);
	CHECK_EQ(cores.by_thread[own_core], 0);
	CHECK_EQ(stats_of(loops[0]).by_thread, cores.by_thread[other_core]);
	CHECK_EQ(flexsc_loop_destroy(loops[0]), 0);
}

static struct flexsc_loop *threads_on(const char *list, uint32_t backlog)
{
	return NEW_LOOP(.engine = "threads", .kernel_cores = list, .backlog = backlog);
}

/*
 * Makes some calls, "at_once" of them at a time. Returns how many were executed on this
 * core; the only loop has made "before" calls before.
 */
static uint64_t calls_on(int core, uint64_t *before, unsigned int at_once)
{
	enum { CALLS_MOST = 200 };
	static struct call calls[CALLS_MOST];
	uint64_t there = read_cores().by_thread[core];

	for (unsigned int i = 0; i < CALLS_MOST; i++) {
		calls[i] = (struct call)CALL_INIT;
		POST(loop, &calls[i], SYS_close, -1);
		if (i % at_once == at_once - 1)
			CHECK_EQ(flexsc_loop_run(loop), 0);
	}
	*before += CALLS_MOST;
	/* A thread counts its calls after it has delivered the last one. */
	while (stats_of(loop).by_thread < *before)
		sleep_ms(1);
	return read_cores().by_thread[core] - there;
}

/* Counts the process's threads that may run on this core only. */
static unsigned int count_bound(int core)
{
	DIR *tasks = opendir("/proc/self/task");
	const struct dirent *task;
	unsigned int n = 0;
	char value[200], list[16];

	snprintf(list, sizeof(list), "%d", core);
	CHECK(tasks);
	while ((task = readdir(tasks)))
		n += file_line(task->d_name, "status", "Cpus_allowed_list:\t", value,
			       sizeof(value)) &&
		     !strcmp(value, list);
	closedir(tasks);
	return n;
}

/* On a busy host, the loop may start a second thread because the first one can't run. */
static void prefers(int first, int second, uint32_t backlog, unsigned int at_once)
{
	const unsigned int owners = first == own_core;
	uint64_t before = 0;
	char list[40];

	snprintf(list, sizeof(list), "%d,%d", first, second);
	loop = threads_on(list, backlog);
	while (calls_on(second, &before, at_once) || count_bound(first) == owners)
		;
	test_end_loop();
}

TEST(threads_prefer_the_first_listed_core)
{
	use_two_cores();
	prefers(own_core, other_core, 0, 1);
	prefers(own_core, other_core, 1000, 200);
	prefers(other_core, own_core, 0, 1);
	prefers(other_core, own_core, 1000, 200);
}

TEST(threads_use_the_next_core_for_a_backlog)
{
	uint64_t before = 0;
	char list[40];

	use_two_cores();
	snprintf(list, sizeof(list), "%d,%d", other_core, own_core);
	loop = threads_on(list, 1);
	while (!calls_on(own_core, &before, 200))
		;
	CHECK(read_cores().by_thread[other_core] > 0);
	test_end_loop();
}

static int64_t count_own_cores(void *arg)
{
	cpu_set_t mine;

	(void)arg;
	CHECK_EQ(sched_getaffinity(0, sizeof(mine), &mine), 0);
	return CPU_COUNT(&mine);
}

/* Several functions of the program may compute at the same time. */
TEST(work_may_use_any_listed_core)
{
	uint64_t before = 0;
	char list[40];

	use_two_cores();
	snprintf(list, sizeof(list), "%d,%d", other_core, own_core);
	loop = threads_on(list, 0);
	for (unsigned int i = 0; i < 3; i++) {
		struct call call = CALL_INIT;

		calls_on(own_core, &before, 1);
		CHECK_EQ(flexsc_loop_work(loop, &call.cb, count_own_cores, NULL), 0);
		CHECK_EQ(await_call(loop, &call), 2);
		before++;
	}
	test_end_loop();
}
