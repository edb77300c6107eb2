/* SPDX-License-Identifier: MIT */
/* The cores that a thread may run on, and the core that it runs on. */
#define _GNU_SOURCE
#include <dirent.h>
#include <sched.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/syscall.h>

#include "threads.h"

#define CORES	4

static cpu_set_t all;
static int cores[CORES], count;

/* Finds up to CORES of the cores that the test may use. */
static void find_cores(void)
{
	count = 0;
	CHECK_EQ(sched_getaffinity(0, sizeof(all), &all), 0);
	for (int cpu = 0; cpu < CPU_SETSIZE && count < CORES; cpu++)
		if (CPU_ISSET(cpu, &all))
			cores[count++] = cpu;
	if (count < 2)
		SKIP("needs two cores");
}

static cpu_set_t only(int cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	return set;
}

/* Every function that returns an affinity returns this one. */
static void has(const cpu_set_t *expected)
{
	cpu_set_t set;
	long bytes;

	CPU_ZERO(&set);
	CHECK_EQ(pthread_getaffinity_np(pthread_self(), sizeof(set), &set), 0);
	CHECK(CPU_EQUAL(&set, expected));
	CPU_ZERO(&set);
	CHECK_EQ(sched_getaffinity(0, sizeof(set), &set), 0);
	CHECK(CPU_EQUAL(&set, expected));
	CPU_ZERO(&set);
	CHECK_EQ(sched_getaffinity(gettid(), sizeof(set), &set), 0);
	CHECK(CPU_EQUAL(&set, expected));
	CPU_ZERO(&set);
	bytes = syscall(SYS_sched_getaffinity, 0, sizeof(set), &set);
	CHECK(bytes > 0 && bytes <= (long)sizeof(set));
	CHECK(CPU_EQUAL(&set, expected));
}

static void runs_on(int cpu)
{
	unsigned int now;

	CHECK_EQ(sched_getcpu(), cpu);
	CHECK_EQ(getcpu(&now, NULL), 0);
	CHECK_EQ(now, cpu);
}

/* The thread stays on the core while it waits and yields. */
static void stays_on(int cpu)
{
	const cpu_set_t set = only(cpu);
	int fds[2];
	char byte = 0;

	has(&set);
	CHECK_EQ(pipe(fds), 0);
	for (int i = 0; i < 30; i++) {
		runs_on(cpu);
		usleep(100);
		runs_on(cpu);
		CHECK_EQ(write(fds[1], &byte, 1), 1);
		CHECK_EQ(read(fds[0], &byte, 1), 1);
		runs_on(cpu);
		sched_yield();
		runs_on(cpu);
	}
	CHECK_EQ(close(fds[0]), 0);
	CHECK_EQ(close(fds[1]), 0);
	has(&set);
}

static void *stay_on(void *cpu)
{
	stays_on((int)(intptr_t)cpu);
	return NULL;
}

TEST_LIMIT(a_thread_made_with_an_affinity_has_it, 60)
{
	pthread_t threads[CORES];

	find_cores();
	for (int round = 0; round < 3; round++) {
		for (int i = 0; i < count; i++) {
			const cpu_set_t set = only(cores[i]);
			pthread_attr_t attr;

			CHECK_EQ(pthread_attr_init(&attr), 0);
			CHECK_EQ(pthread_attr_setaffinity_np(&attr, sizeof(set),
							     &set), 0);
			CHECK_EQ(pthread_create(&threads[i], &attr, stay_on,
						(void *)(intptr_t)cores[i]), 0);
			CHECK_EQ(pthread_attr_destroy(&attr), 0);
		}
		join_all(threads, count);
	}
	has(&all);
}

/* Binds the caller to a core by each of the functions that do this. */
static void bind_self(int way, const cpu_set_t *set)
{
	switch (way) {
	case 0:
		CHECK_EQ(pthread_setaffinity_np(pthread_self(), sizeof(*set),
						set), 0);
		break;
	case 1:
		CHECK_EQ(sched_setaffinity(0, sizeof(*set), set), 0);
		break;
	case 2:
		CHECK_EQ(sched_setaffinity(gettid(), sizeof(*set), set), 0);
		break;
	default:
		CHECK_EQ(syscall(SYS_sched_setaffinity, 0, sizeof(*set), set),
			 0);
		break;
	}
}

static void *bind_oneself(void *arg)
{
	(void)arg;
	usleep(100);
	for (int way = 0; way < 4; way++) {
		for (int i = 0; i < count; i++) {
			const cpu_set_t set = only(cores[i]);

			bind_self(way, &set);
			stays_on(cores[i]);
		}
		bind_self(way, &all);
		has(&all);
		usleep(100);
		has(&all);
	}
	return NULL;
}

TEST_LIMIT(a_thread_binds_itself, 60)
{
	pthread_t threads[4];

	find_cores();
	start_all(threads, 4, bind_oneself, NULL);
	bind_oneself(NULL);
	join_all(threads, 4);
}

/* Bind other threads. */

struct other {
	pthread_t thread;
	_Atomic pid_t tid;
	/* number of the core that the thread was bound to, plus 1 */
	atomic_int bound;
	atomic_bool asked, done, over;
	sem_t sem;
	int fds[2];
	bool computes;
};

/* Waits in two ways, or computes, until "over" is set. */
static void *be_bound(void *arg)
{
	struct other *other = arg;
	char byte;

	other->tid = gettid();
	while (!other->over) {
		if (!other->computes) {
			CHECK_EQ(read(other->fds[0], &byte, 1), 1);
			while (sem_wait(&other->sem))
				CHECK_EQ(errno, EINTR);
		}
		if (!other->asked)
			continue;
		if (other->bound)
			runs_on(other->bound - 1);
		else
			has(&all);
		other->asked = false;
		other->done = true;
	}
	return NULL;
}

static void begin_other(struct other *other, bool computes)
{
	*other = (struct other){ .computes = computes };
	CHECK_EQ(sem_init(&other->sem, 0, 0), 0);
	CHECK_EQ(pipe(other->fds), 0);
	other->thread = start(be_bound, other);
	while (!other->tid)
		usleep(100);
	settle();
}

static void let_go_on(struct other *other)
{
	if (other->computes)
		return;
	CHECK_EQ(write(other->fds[1], "x", 1), 1);
	CHECK_EQ(sem_post(&other->sem), 0);
}

static void ask_other(struct other *other, int bound)
{
	other->bound = bound;
	other->done = false;
	other->asked = true;
	let_go_on(other);
	while (!other->done)
		usleep(100);
}

static void end_other(struct other *other)
{
	other->over = true;
	let_go_on(other);
	join(other->thread);
	CHECK_EQ(close(other->fds[0]), 0);
	CHECK_EQ(close(other->fds[1]), 0);
}

static void bind_other(const struct other *other, const cpu_set_t *set,
		       bool by_tid)
{
	cpu_set_t got;

	if (by_tid)
		CHECK_EQ(sched_setaffinity(other->tid, sizeof(*set), set), 0);
	else
		CHECK_EQ(pthread_setaffinity_np(other->thread, sizeof(*set),
						set), 0);
	CPU_ZERO(&got);
	CHECK_EQ(pthread_getaffinity_np(other->thread, sizeof(got), &got), 0);
	CHECK(CPU_EQUAL(&got, set));
	CPU_ZERO(&got);
	CHECK_EQ(sched_getaffinity(other->tid, sizeof(got), &got), 0);
	CHECK(CPU_EQUAL(&got, set));
}

static void *bind_others(void *arg)
{
	struct other others[2];

	for (int i = 0; i < 2; i++)
		begin_other(&others[i], i);
	for (int round = 0; round < 12; round++) {
		int core = cores[round % count];
		const cpu_set_t set = only(core);

		for (int i = 0; i < 2; i++) {
			bind_other(&others[i], &set, round / 2 % 2);
			ask_other(&others[i], core + 1);
			ask_other(&others[i], core + 1);
		}
		for (int i = 0; i < 2 && round % 3 == 0; i++) {
			bind_other(&others[i], &all, round / 2 % 2);
			ask_other(&others[i], 0);
		}
		has(&all);
	}
	for (int i = 0; i < 2; i++)
		end_other(&others[i]);
	return arg;
}

TEST_LIMIT(a_thread_binds_another_that_waits_or_computes, 60)
{
	find_cores();
	bind_others(NULL);
	join(start(bind_others, NULL));
}

static atomic_bool was_bound;

/* Binding doesn't interrupt or shorten a sleep. A busy machine may prolong it. */
static void *sleep_for(void *arg)
{
	const uint64_t begin = now_ns();
	int fds[2];
	char byte;

	atomic_store((_Atomic pid_t *)arg, gettid());
	CHECK_EQ(usleep(200000), 0);
	CHECK(now_ns() - begin >= 200 * MS);
	/* On a busy machine the other thread may be late. */
	while (!was_bound)
		usleep(1000);
	CHECK_EQ(sched_getcpu(), cores[0]);
	CHECK_EQ(pipe(fds), 0);
	CHECK_EQ(write(fds[1], "x", 1), 1);
	CHECK_EQ(read(fds[0], &byte, 1), 1);
	CHECK_EQ(sched_getcpu(), cores[0]);
	return NULL;
}

TEST_LIMIT(binding_a_thread_that_sleeps_does_not_wake_it, 60)
{
	_Atomic pid_t tid = 0;
	pthread_t thread;
	cpu_set_t set;

	find_cores();
	set = only(cores[0]);
	thread = start(sleep_for, &tid);
	while (!tid)
		usleep(100);
	settle();
	for (int i = 0; i < 5; i++)
		CHECK_EQ(pthread_setaffinity_np(thread, sizeof(set), &set), 0);
	was_bound = true;
	join(thread);
}

/* The affinity that new threads get. */

static void *have_all(void *arg)
{
	for (int i = 0; i < 20; i++) {
		has(&all);
		usleep(100);
	}
	return arg;
}

static void *make_children(void *cpu)
{
	const cpu_set_t set = only((int)(intptr_t)cpu);

	join(start(have_all, NULL));
	CHECK_EQ(pthread_setaffinity_np(pthread_self(), sizeof(set), &set), 0);
	for (int i = 0; i < 3; i++) {
		join(start(stay_on, cpu));
		usleep(100);
	}
	CHECK_EQ(pthread_setaffinity_np(pthread_self(), sizeof(all), &all), 0);
	join(start(have_all, NULL));
	usleep(100);
	join(start(have_all, NULL));
	return NULL;
}

TEST_LIMIT(a_new_thread_has_its_maker_s_affinity, 60)
{
	pthread_t threads[CORES];

	find_cores();
	for (int i = 0; i < count; i++)
		threads[i] = start(make_children, (void *)(intptr_t)cores[i]);
	make_children((void *)(intptr_t)cores[1]);
	join_all(threads, count);
}

/* Binds all threads that /proc shows, as taskset(1) does. */
static void bind_all(int pid, const cpu_set_t *set)
{
	struct dirent *entry;
	char path[64];
	DIR *tasks;

	snprintf(path, sizeof(path), "/proc/%d/task", pid);
	tasks = opendir(path);
	CHECK(tasks);
	while ((entry = readdir(tasks))) {
		int tid = atoi(entry->d_name);

		if (tid && sched_setaffinity(tid, sizeof(*set), set))
			CHECK_EQ(errno, ESRCH);
	}
	CHECK_EQ(closedir(tasks), 0);
}

static void bind_from_outside(const cpu_set_t *set)
{
	int process = getpid(), pid = test_fork();

	if (!pid) {
		bind_all(process, set);
		test_leave();
	}
	test_reap(pid);
}

static void *wait_and_stay(void *sem)
{
	while (sem_wait(sem))
		CHECK_EQ(errno, EINTR);
	stays_on(cores[1]);
	return NULL;
}

static void bind_by(void (*bind)(const cpu_set_t *))
{
	pthread_t threads[4];
	cpu_set_t set;
	sem_t sem;

	find_cores();
	CHECK_EQ(sem_init(&sem, 0, 0), 0);
	start_all(threads, 4, wait_and_stay, &sem);
	settle();
	set = only(cores[1]);
	bind(&set);
	for (int i = 0; i < 4; i++)
		CHECK_EQ(sem_post(&sem), 0);
	stays_on(cores[1]);
	join(start(stay_on, (void *)(intptr_t)cores[1]));
	join_all(threads, 4);
	bind(&all);
	have_all(NULL);
	join(start(have_all, NULL));
	join(start(bind_oneself, NULL));
}

TEST_LIMIT(a_process_is_bound_from_outside, 60)
{
	bind_by(bind_from_outside);
}

/* Affinities that the kernel refuses. */

static void *refuse(void *arg)
{
	cpu_set_t none;

	CPU_ZERO(&none);
	usleep(100);
	CHECK_EQ(pthread_setaffinity_np(pthread_self(), sizeof(none), &none),
		 EINVAL);
	CHECK_EQ(sched_setaffinity(0, sizeof(none), &none), -1);
	CHECK_EQ(errno, EINVAL);
	CHECK_EQ(sched_setaffinity(0, sizeof(none), (void *)8), -1);
	CHECK_EQ(errno, EFAULT);
	CHECK_EQ(pthread_getaffinity_np(pthread_self(), 1, &none), EINVAL);
	CHECK_EQ(syscall(SYS_sched_getaffinity, 0, 1, &none), -1);
	CHECK_EQ(errno, EINVAL);
	has(&all);
	return arg;
}

TEST_LIMIT(an_affinity_that_is_not_possible_is_refused, 60)
{
	find_cores();
	refuse(NULL);
	join(start(refuse, NULL));
}
