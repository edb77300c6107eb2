/* SPDX-License-Identifier: MIT */
/*
 * Entering a ring fails while its poller sleeps, has been woken, or is busy with other
 * loops' requests. Either the poller or a thread makes each call.
 */
#include "tests/lib/two_cores.h"

#include <dirent.h>
#include <semaphore.h>
#include <sys/ioctl.h>

#include "lib/base/clock.h"

/* Occupies the poller's core, so that the poller, though woken, doesn't run. */
static void *occupy(void *arg)
{
	const struct sched_param priority = { .sched_priority = 2 };
	const uint64_t ns = *(const uint64_t *)arg;
	uint64_t until;
	cpu_set_t core;

	CPU_ZERO(&core);
	CPU_SET(other_core, &core);
	CHECK_EQ(sched_setaffinity(0, sizeof(core), &core), 0);
	CHECK_EQ(sched_setscheduler(0, SCHED_FIFO, &priority), 0);
	for (until = time_monotonic() + ns; time_monotonic() < until;)
		;
	return NULL;
}

/* The poller has been woken for the first call. The second one finds the ring failed. */
static void fail_beside_woken_poller(uint64_t ns)
{
	const int enter = SYS_io_uring_enter;
	struct call woken = CALL_INIT, failed = CALL_INIT;
	pthread_t occupier;
	int bytes = 0, p[2];

	CHECK_EQ(pipe(p), 0);
	loop = NEW_LOOP(.kernel_cores = other_list, .poll_us = 1000);
	works(loop);
	sleep_ms(10);
	CHECK_EQ(pthread_create(&occupier, NULL, occupy, &ns), 0);
	sleep_ms(1);
	POST(loop, &woken, SYS_write, p[1], "a", 1);
	CHECK_EQ(flexsc_loop_submit(loop), 0);
	forbid(&enter, 1, EPERM);
	POST(loop, &failed, SYS_write, p[1], "b", 1);
	CHECK_EQ(await_call(loop, &woken), 1);
	CHECK_EQ(await_call(loop, &failed), 1);
	CHECK_EQ(pthread_join(occupier, NULL), 0);
	sleep_ms(5);
	CHECK_EQ(ioctl(p[0], FIONREAD, &bytes), 0);
	CHECK_EQ(bytes, 2);
	CHECK(woken.runs == 1 && failed.runs == 1);
}

TEST_LIMIT(a_ring_fails_while_the_woken_poller_lacks_its_core, 60)
{
	const struct sched_param priority = { .sched_priority = 1 };

	use_two_cores();
	make_loops(other_list);
	end_loops(0);
	if (sched_setscheduler(0, SCHED_FIFO, &priority))
		SKIP("needs CAP_SYS_NICE");
	CHECK_EQ(sched_setscheduler(0, SCHED_OTHER, &(struct sched_param){ 0 }), 0);
	for (unsigned int i = 0; i < MANY(100); i++)
		IN_CHILD
			fail_beside_woken_poller(3 * MS + i * 37 % 100 * (MS / 20));
}

/* The poller is busy with another loop's read when the ring fails. */
static void fail_beside_busy_poller(void)
{
	static char bytes[16 << 20];
	const int enter = SYS_io_uring_enter, busy = memfd_create("busy", MFD_CLOEXEC);
	struct call slow = CALL_INIT, call = CALL_INIT;
	int left = 0, p[2];

	CHECK_EQ(pipe(p), 0);
	CHECK_EQ(ftruncate(busy, sizeof(bytes)), 0);
	for (unsigned int i = 0; i < 2; i++) {
		loops[i] = NEW_LOOP(.kernel_cores = other_list, .poll_us = 1000);
		works(loops[i]);
	}
	POST(loops[1], &slow, SYS_pread64, busy, bytes, sizeof(bytes), 0);
	CHECK_EQ(flexsc_loop_submit(loops[1]), 0);
	forbid(&enter, 1, EPERM);
	POST(loops[0], &call, SYS_write, p[1], "a", 1);
	CHECK_EQ(await_call(loops[0], &call), 1);
	CHECK_EQ(await_call(loops[1], &slow), sizeof(bytes));
	CHECK_EQ(ioctl(p[0], FIONREAD, &left), 0);
	CHECK_EQ(left, 1);
	CHECK_EQ(call.runs, 1);
}

TEST_LIMIT(a_ring_fails_while_the_poller_is_busy, 60)
{
	use_two_cores();
	make_loops(other_list);
	end_loops(0);
	for (unsigned int i = 0; i < MANY(20); i++)
		IN_CHILD
			fail_beside_busy_poller();
}

static void await_sleeping_poller(void)
{
	DIR *tasks = opendir("/proc/self/task");
	const struct dirent *task;
	char state[200];

	CHECK(tasks);
	while ((task = readdir(tasks)))
		while (file_line(task->d_name, "comm", "iou-sqp-", state, sizeof(state)) &&
		       file_line(task->d_name, "status", "State:\t", state,
				 sizeof(state)) && state[0] != 'S')
			sleep_ms(1);
	closedir(tasks);
}

static sem_t wake_it, awake;

static void *wake_poller(void *arg)
{
	struct flexsc_loop *mine = NEW_LOOP(.kernel_cores = other_list);

	(void)arg;
	works(mine);
	CHECK_EQ(sem_post(&awake), 0);
	CHECK_EQ(sem_wait(&wake_it), 0);
	works(mine);
	CHECK_EQ(sem_post(&awake), 0);
	CHECK_EQ(flexsc_loop_destroy(mine), 0);
	return NULL;
}

/* The calls were made by threads: the poller must not make them, nor report results. */
TEST(another_loop_wakes_the_poller_of_a_failed_ring)
{
	const int enter = SYS_io_uring_enter;
	struct call calls[10];
	int left = 0, p[2];
	pthread_t thread;

	use_two_cores();
	make_loops(other_list);
	CHECK_EQ(pipe(p), 0);
	thread = test_thread(wake_poller, NULL);
	CHECK_EQ(sem_wait(&awake), 0);
	await_sleeping_poller();
	forbid(&enter, 1, EPERM);
	for (unsigned int i = 0; i < 10; i++) {
		calls[i] = (struct call)CALL_INIT;
		POST(loops[0], &calls[i], SYS_write, p[1], "a", 1);
	}
	CHECK_EQ(await_call(loops[0], &calls[0]), 1);
	CHECK_EQ(sem_post(&wake_it), 0);
	CHECK_EQ(sem_wait(&awake), 0);
	CHECK_EQ(flexsc_loop_run(loops[0]), 0);
	CHECK_EQ(pthread_join(thread, NULL), 0);
	for (unsigned int i = 0; i < 10; i++)
		CHECK(calls[i].runs == 1 && calls[i].cb.ret == 1);
	CHECK_EQ(ioctl(p[0], FIONREAD, &left), 0);
	CHECK_EQ(left, 10);
	end_loops(0);
}
