/* SPDX-License-Identifier: MIT */
/*
 * Restartable sequences: the area that libc announces is valid on every thread and
 * at any time.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <sched.h>
#include <stdint.h>
#include <sys/rseq.h>
#include <sys/syscall.h>
#include <sys/sysinfo.h>

#include "threads.h"

static const struct rseq *area(void)
{
	return (struct rseq *)((char *)__builtin_thread_pointer() +
			       __rseq_offset);
}

/* An allocator with per-processor data makes these checks. */
static void is_as_said(void)
{
	int32_t id = (int32_t)__atomic_load_n(&area()->cpu_id,
					      __ATOMIC_RELAXED);
	unsigned int cpu;

	CHECK_EQ(__rseq_flags, 0);
	if (__rseq_size)
		CHECK(id >= 0 && id < get_nprocs_conf());
	else
		CHECK_EQ(id, RSEQ_CPU_ID_REGISTRATION_FAILED);
	CHECK(sched_getcpu() >= 0 && sched_getcpu() < get_nprocs_conf());
	CHECK_EQ(getcpu(&cpu, NULL), 0);
	CHECK(cpu < (unsigned int)get_nprocs_conf());
}

/*
 * A library that must work with older C libraries looks the symbols up like this.
 * The program's symbols may be copies of the loader's, which come next.
 */
static void is_found(void *library)
{
	const unsigned int *size = dlsym(library, "__rseq_size");
	const unsigned int *flags = dlsym(library, "__rseq_flags");
	const ptrdiff_t *offset = dlsym(library, "__rseq_offset");

	CHECK(size && flags && offset);
	CHECK_EQ(*size, __rseq_size);
	CHECK_EQ(*flags, __rseq_flags);
	CHECK_EQ(*offset, __rseq_offset);
}

static void *ask(void *size)
{
	CHECK_EQ(__rseq_size, *(unsigned int *)size);
	is_as_said();
	for (int i = 0; i < 20; i++) {
		usleep(100);
		is_as_said();
		sched_yield();
		is_as_said();
	}
	return NULL;
}

static void ask_everywhere(unsigned int *size)
{
	pthread_t threads[4];

	is_as_said();
	start_all(threads, 4, ask, size);
	ask(size);
	join_all(threads, 4);
}

TEST(an_area_is_as_libc_announces_it)
{
	/* A program reads this once, perhaps before it has a thread. */
	unsigned int size = __rseq_size;
	int pid;

	is_found(RTLD_DEFAULT);
	is_found(RTLD_NEXT);
	ask_everywhere(&size);
	is_found(RTLD_DEFAULT);
	is_found(RTLD_NEXT);
	pid = test_fork();
	if (!pid) {
		ask_everywhere(&size);
		test_leave();
	}
	test_reap(pid);
}

static void *bound(void *arg)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET((int)(intptr_t)arg, &set);
	CHECK_EQ(pthread_setaffinity_np(pthread_self(), sizeof(set), &set), 0);
	CHECK_EQ(sched_getcpu(), (intptr_t)arg);
	if (__rseq_size)
		CHECK_EQ(area()->cpu_id, (intptr_t)arg);
	return NULL;
}

TEST(the_processor_is_the_one_that_a_thread_is_bound_to)
{
	cpu_set_t set;

	CHECK_EQ(sched_getaffinity(0, sizeof(set), &set), 0);
	for (int cpu = 0; cpu < CPU_SETSIZE; cpu++)
		if (CPU_ISSET(cpu, &set))
			join(start(bound, (void *)(intptr_t)cpu));
}
