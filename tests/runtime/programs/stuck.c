/* SPDX-License-Identifier: MIT */
/*
 * Calls that hang and that no signal ends. All other threads continue, whatever they
 * wait for.
 */
#define _GNU_SOURCE
#include <grp.h>
#include <sched.h>
#include <semaphore.h>
#include <sys/stat.h>

#include "waiters.h"

static void all_go_on_while_calls_hang(unsigned int n)
{
	pthread_t *threads = calloc(n, sizeof(*threads));
	int pid = begin_waiting();

	for (int i = 0; i < 2; i++) {
		begin_to_hang(threads, n);
		all_go_on(5, hangs, n);
		let_go(threads, n);
		all_go_on(2, NULL, 0);
	}
	end_waiting(pid);
	free(threads);
}

TEST_LIMIT(all_go_on_while_one_call_hangs, 60)
{
	all_go_on_while_calls_hang(1);
}

TEST_LIMIT(all_go_on_while_more_calls_hang_than_there_are_carriers, 60)
{
	all_go_on_while_calls_hang((carriers() ?: 2) + 1);
}

/*
 * A woken thread is queued on the carrier of the thread that woke it, which then
 * hangs.
 */

static sem_t behind;

static void *run_behind(void *arg)
{
	struct hang *hang = arg;

	CHECK_EQ(sem_wait(&behind), 0);
	hang->let = true;
	return NULL;
}

static void *wake_and_hang(void *arg)
{
	CHECK_EQ(sem_post(&behind), 0);
	hang_here(arg);
	return NULL;
}

TEST_LIMIT(a_thread_queued_behind_a_call_that_hangs_goes_on, 60)
{
	CHECK_EQ(sem_init(&behind, 0, 0), 0);
	for (int i = 0; i < 20; i++) {
		struct hang *hang = calloc(1, sizeof(*hang));
		pthread_t woken = start(run_behind, hang);

		settle();
		join(start(wake_and_hang, hang));
		join(woken);
		CHECK(!hang->expired);
		free(hang);
	}
}

/*
 * With so many groups, the line of groups in /proc/.../status has 700 KB. It
 * precedes the line that the monitor reads.
 */
TEST_LIMIT(all_go_on_while_a_call_hangs_in_a_process_of_many_groups, 60)
{
	enum { GROUPS = 65536 };
	gid_t *groups = calloc(GROUPS, sizeof(*groups));

	/* In an emulated guest, reading the line takes the monitor's whole time. */
	if (test_slower() > 1)
		SKIP("this machine is too slow");
	for (gid_t i = 0; i < GROUPS; i++)
		groups[i] = 1000000000 + i;
	if (setgroups(GROUPS, groups))
		SKIP("setgroups: %s", strerror(errno));
	free(groups);
	all_go_on_while_calls_hang(1);
}

/* Each call hangs for up to 30 ms, so it often ends just when its carrier is adopted. */
static void *hang_again_and_again(void *arg)
{
	struct hang *hang = arg;
	unsigned int seed = (unsigned int)(hang - hangs);

	while (!waiters_stop) {
		hang->ns = 2 * MS + (uint64_t)rand_r(&seed) % (30 * MS);
		hang_once(hang);
	}
	return NULL;
}

TEST_LIMIT(calls_that_hang_again_and_again_lose_nothing, 60)
{
	enum { HANGERS = 3 };
	pthread_t threads[HANGERS];
	uint64_t end;
	int pid;

	/*
	 * Otherwise the threads would soon stay on their hosts, where they stop no
	 * others.
	 */
	setenv("FLEXSC_STICKY", "0", 1);
	pid = begin_waiting();
	hangs = calloc(HANGERS, sizeof(*hangs));
	for (int i = 0; i < HANGERS; i++)
		threads[i] = start(hang_again_and_again, &hangs[i]);
	end = now_ns() + SECOND;
	while (now_ns() < end)
		all_go_on(1, NULL, 0);
	end_waiting(pid);
	join_all(threads, HANGERS);
}

/* The longest time between two wake-ups of a thread that sleeps for 1 ms. */
static _Atomic uint64_t longest;

static void *watch(void *arg)
{
	uint64_t last = now_ns(), now;

	while (!waiters_stop) {
		usleep(1000);
		now = now_ns();
		if (now - last > longest)
			longest = now - last;
		last = now;
	}
	return arg;
}

/*
 * On a busy machine all threads pause now and then, including those of another
 * process. So the pause that a call causes is the smallest of several.
 */
static void the_pause_is_short(unsigned int n)
{
	uint64_t least = UINT64_MAX, own;
	pthread_t watcher, hanging[n];
	int pid;

	if (test_slower() > 1)
		SKIP("this machine is too slow");
	pid = begin_waiting();
	watcher = start(watch, NULL);
	for (int i = 0; i < 10 && least > 50 * MS; i++) {
		waker_pause_reset();
		longest = 0;
		begin_to_hang(hanging, n);
		all_go_on(20, hangs, n);
		own = longest > waker_pause() ? longest - waker_pause() : 0;
		least = own < least ? own : least;
		let_go(hanging, n);
	}
	CHECK(least <= 50 * MS);
	end_waiting(pid);
	join(watcher);
}

TEST_LIMIT(a_call_that_hangs_causes_a_pause_of_50_ms_at_most, 60)
{
	the_pause_is_short(1);
}

/*
 * The threads are in one queue. When a carrier hangs in one of them, another carrier
 * takes the next one, and hangs, too.
 */
TEST_LIMIT(calls_that_hang_in_a_row_cause_a_pause_of_50_ms_at_most, 120)
{
	/* Otherwise the threads would stay on their hosts, where they stop no others. */
	setenv("FLEXSC_STICKY", "0", 1);
	the_pause_is_short(10);
}

/*
 * The only remaining thread makes a call that depends on the number of threads, so
 * all carriers end. Just then, a carrier that was stuck comes back.
 */
TEST_LIMIT(carriers_end_just_after_a_call_has_hung, 40)
{
	struct stat tasks;
	unsigned int seed = 1;

	setenv("FLEXSC_STICKY", "0", 1);
	hangs = calloc(1, sizeof(*hangs));
	for (int i = 0; i < 50; i++) {
		long pid;

		join(start(nothing, NULL));
		if (!preloaded())
			await_unlisted();
		hangs->ns = 12 * MS + (uint64_t)rand_r(&seed) % (20 * MS);
		usleep(100);
		pid = hang_unreaped(hangs);
		CHECK_EQ(unshare(CLONE_FS), 0);
		CHECK_EQ(stat("/proc/self/task", &tasks), 0);
		CHECK_EQ(tasks.st_nlink, 2 + 1);
		test_reap((int)pid);
	}
	free(hangs);
}
