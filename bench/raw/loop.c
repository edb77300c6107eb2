/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "loop.h"

#include <errno.h>
#include <flexsc/flexsc.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "report.h"
#include "settings.h"

int bench_pin(long core)
{
	cpu_set_t set;

	if (core < 0)
		return 0;
	CPU_ZERO(&set);
	if (core < 8 * (long)sizeof(set))
		CPU_SET((size_t)core, &set);
	if (!sched_setaffinity(0, sizeof(set), &set))
		return 0;
	fprintf(stderr, "%s: core=%ld: can't run on this core: %s\n", bench_who,
		core, strerror(errno));
	return 1;
}

int bench_loop_create(struct flexsc_loop **loop,
		      const struct bench_settings *settings)
{
	struct flexsc_options options = FLEXSC_OPTIONS_INIT;
	bool polled = false;
	int err;

	options.engine = settings->variant;
	if (bench_is(settings->variant, "uring-sqpoll")) {
		options.engine = "uring";
		polled = true;
	}
	options.kernel_cores = polled && !settings->kernel_cores ?
				       "0-1023" : settings->kernel_cores;
	options.poll_us = (uint32_t)settings->poll_us;
	/* A poller is created on another core than the one where the thread runs. */
	if (options.kernel_cores && bench_pin(settings->core))
		return 1;
	err = flexsc_loop_create(loop, &options);
	if (err)
		return bench_failed(settings->variant, err);
	if (polled && flexsc_loop_why(*loop)) {
		fprintf(stderr, "%s: %s: %s\n", bench_who, settings->variant,
			flexsc_loop_why(*loop));
		return 1;
	}
	return bench_pin(settings->core);
}

void *bench_memory(size_t count, size_t size)
{
	void *memory = malloc(count * size);

	/* Write to the memory, so that page faults happen now. */
	if (memory)
		memset(memory, 0, count * size);
	else
		bench_failed("memory", -ENOMEM);
	return memory;
}

static void swap(uint32_t *a, uint32_t *b)
{
	uint32_t was = *a;

	*a = *b;
	*b = was;
}

static void shuffle(uint32_t *order, uint64_t n)
{
	uint64_t seed = 2463534242;

	for (uint64_t i = n; i > 1; i--)
		swap(&order[i - 1], &order[bench_random(&seed) % i]);
}

uint32_t *bench_order(uint64_t outstanding, uint64_t active)
{
	uint32_t *order = bench_memory(outstanding, sizeof(*order));

	if (!order)
		return NULL;
	for (uint64_t i = 0; i < outstanding; i++)
		order[i] = (uint32_t)i;
	/*
	 * Move each active number to the front, in exchange for a number that
	 * hasn't moved.
	 */
	for (uint64_t i = 0; i < active; i++)
		swap(&order[i], &order[i * (outstanding / active)]);
	shuffle(order, active);
	shuffle(order + active, outstanding - active);
	return order;
}

size_t bench_descriptors(size_t wanted)
{
	struct rlimit limit;

	getrlimit(RLIMIT_NOFILE, &limit);
	if (limit.rlim_cur >= wanted)
		return limit.rlim_cur;
	/* root may raise the hard limit. */
	limit.rlim_cur = wanted;
	if (limit.rlim_max < wanted)
		limit.rlim_max = wanted;
	if (setrlimit(RLIMIT_NOFILE, &limit)) {
		getrlimit(RLIMIT_NOFILE, &limit);
		limit.rlim_cur = limit.rlim_max;
		setrlimit(RLIMIT_NOFILE, &limit);
		getrlimit(RLIMIT_NOFILE, &limit);
	}
	return limit.rlim_cur;
}

int bench_allow(const char *name, size_t wanted)
{
	size_t limit = bench_descriptors(wanted);

	if (limit >= wanted)
		return 0;
	fprintf(stderr, "%s: %s: %zu descriptors are needed, but only %zu are "
			"allowed: raise ulimit -Hn\n", bench_who, name, wanted, limit);
	return 1;
}

double bench_resident(void)
{
	FILE *file = fopen("/proc/self/statm", "re");
	long size, pages;

	if (!file)
		return 0;
	if (fscanf(file, "%ld %ld", &size, &pages) != 2)
		pages = 0;
	fclose(file);
	return (double)pages * (double)sysconf(_SC_PAGESIZE);
}
