/* SPDX-License-Identifier: MIT */
/*
 * study --raw memory: how fast several cores read memory at the same time: the
 * memory benchmark of Geneves 2012. Each core reads its own memory, which is
 * resident, and local because a thread on that core touched it first. It is read
 * from its beginning to its end, alternately in words of 8 bytes and in vectors
 * of 16.
 *
 * Each reading starts a new thread for each core. The threads don't wait for each
 * other, so if one can't be made, the others end nevertheless. The time is from
 * the first thread's beginning to the last thread's end; threads begin within a
 * tenth of a millisecond.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "lib/base/cores.h"

#include "study/cases.h"
#include "bench/raw/loop.h"
#include "bench/raw/report.h"
#include "ticks.h"

enum { PLAIN, VECTOR, KINDS };

#define LINE	64	/* bytes per iteration of the reading loops */
#define MIB	((size_t)1 << 20)

typedef uint64_t vector __attribute__((vector_size(16)));

/* A core's reader; one thread at a time uses it. */
struct reader {
	int core;
	char *memory;
	size_t bytes;
	int kind;
	uint64_t begin, end;	/* ticks */
	double waited;		/* percentage of this time spent waiting for the core */
	bool right;		/* all words were 1 */
};

struct memory {
	struct reader *readers;
	int count;
	struct bench_series rate[KINDS];	/* bytes per tick, all cores together */
	struct bench_series waited[KINDS];	/* longest wait of a reader */
};

static const char *const rate_names[] = {
	"plain_bytes_per_tick", "vector_bytes_per_tick",
};
static const char *const waited_names[] = {
	"plain_waited_percent", "vector_waited_percent",
};

/* volatile keeps the compiler from vectorising the words. */
static uint64_t plain_sum(const char *memory, size_t bytes)
{
	uint64_t a = 0, b = 0;

	for (size_t i = 0; i < bytes; i += LINE) {
		const volatile uint64_t *line =
			(const volatile void *)(memory + i);

		a += line[0] + line[1] + line[2] + line[3];
		b += line[4] + line[5] + line[6] + line[7];
	}
	return a + b;
}

static uint64_t vector_sum(const char *memory, size_t bytes)
{
	vector a = { 0, 0 }, b = { 0, 0 };

	for (size_t i = 0; i < bytes; i += LINE) {
		const volatile vector *line =
			(const volatile void *)(memory + i);

		a += line[0] + line[1];
		b += line[2] + line[3];
	}
	a += b;
	return a[0] + a[1];
}

static void *touch(void *arg)
{
	struct reader *reader = arg;
	uint64_t *words = (void *)reader->memory;

	for (size_t i = 0; i < reader->bytes / sizeof(*words); i++)
		words[i] = 1;
	return NULL;
}

static void *read_all(void *arg)
{
	struct reader *reader = arg;
	uint64_t ns = bench_clock(CLOCK_MONOTONIC);
	uint64_t used = bench_clock(CLOCK_THREAD_CPUTIME_ID);
	uint64_t sum;

	reader->begin = bench_ticks();
	sum = reader->kind == PLAIN ?
	      plain_sum(reader->memory, reader->bytes) :
	      vector_sum(reader->memory, reader->bytes);
	reader->end = bench_ticks();
	used = bench_clock(CLOCK_THREAD_CPUTIME_ID) - used;
	ns = bench_clock(CLOCK_MONOTONIC) - ns;
	reader->waited = used < ns ? 100 * (1 - (double)used / (double)ns) : 0;
	reader->right = sum == reader->bytes / sizeof(uint64_t);
	return NULL;
}

static int start(pthread_t *thread, struct reader *reader,
		 void *(*run)(void *arg))
{
	pthread_attr_t attr;
	cpu_set_t core;
	int err;

	CPU_ZERO(&core);
	CPU_SET((size_t)reader->core, &core);
	pthread_attr_init(&attr);
	err = pthread_attr_setaffinity_np(&attr, sizeof(core), &core);
	if (!err)
		err = pthread_create(thread, &attr, run, reader);
	pthread_attr_destroy(&attr);
	return err;
}

/* Run a thread for each reader to its end. Returns 0, or 1 after a message. */
static int run_all(struct memory *memory, void *(*run)(void *arg))
{
	pthread_t threads[CPU_SETSIZE];
	int made = 0, err = 0;

	while (made < memory->count && !err) {
		err = start(&threads[made], &memory->readers[made], run);
		made += !err;
	}
	for (int i = 0; i < made; i++)
		pthread_join(threads[i], NULL);
	return err ? bench_failed("a thread", -err) : 0;
}

static int measure(struct memory *memory, int kind)
{
	uint64_t begin = UINT64_MAX, end = 0;
	double bytes = 0, waited = 0;

	for (int i = 0; i < memory->count; i++)
		memory->readers[i].kind = kind;
	if (run_all(memory, read_all))
		return 1;
	for (int i = 0; i < memory->count; i++) {
		struct reader *reader = &memory->readers[i];

		if (!reader->right)
			return bench_failed("memory", -EIO);
		begin = reader->begin < begin ? reader->begin : begin;
		end = reader->end > end ? reader->end : end;
		waited = reader->waited > waited ? reader->waited : waited;
		bytes += (double)reader->bytes;
	}
	bench_series_add(&memory->rate[kind], bytes / (double)(end - begin));
	bench_series_add(&memory->waited[kind], waited);
	return 0;
}

static void report(const struct memory *memory,
		   const struct bench_settings *settings)
{
	bench_report_begin("memory", settings);
	for (int kind = 0; kind < KINDS; kind++) {
		bench_report_series(&memory->rate[kind]);
		bench_report_series(&memory->waited[kind]);
	}
	bench_report_counts();
	bench_report_count("cores", memory->count);
	bench_report_count("ticks_per_us", bench_ticks_per_us());
	bench_report_end();
}

static int run(struct memory *memory, const struct bench_settings *settings)
{
	for (int kind = 0; kind < KINDS; kind++)
		if (bench_series_init(&memory->rate[kind], rate_names[kind],
				      settings) ||
		    bench_series_init(&memory->waited[kind],
				      waited_names[kind], settings))
			return 1;
	if (run_all(memory, touch))
		return 1;
	for (long rep = 0; rep < settings->reps; rep++)
		for (int i = 0; i < KINDS; i++)
			if (measure(memory, rep % 2 ? KINDS - 1 - i : i))
				return 1;
	report(memory, settings);
	return 0;
}

/* Map a core's memory, without touching it. */
static int make_reader(struct reader *reader, int core, size_t bytes)
{
	reader->core = core;
	reader->bytes = bytes;
	reader->memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
			      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (reader->memory == MAP_FAILED)
		return bench_failed("memory", -errno);
	/* Huge pages are optional; without them reading is slower. */
	madvise(reader->memory, bytes, MADV_HUGEPAGE);
	return 0;
}

static int make_readers(struct memory *memory, const cpu_set_t *cores,
			size_t bytes)
{
	memory->readers = calloc((size_t)CPU_COUNT(cores),
				 sizeof(*memory->readers));
	if (!memory->readers)
		return bench_failed("memory", -ENOMEM);
	for (int core = 0; core < CPU_SETSIZE; core++) {
		if (!CPU_ISSET((size_t)core, cores))
			continue;
		if (make_reader(&memory->readers[memory->count], core, bytes))
			return 1;
		memory->count++;
	}
	return 0;
}

/* The cores of the list, or all that this process may use. */
static int cores_of(const char *list, cpu_set_t *cores)
{
	if (!list)
		return sched_getaffinity(0, sizeof(*cores), cores) ?
		       bench_failed("cores", -errno) : 0;
	if (!flexsc__cores_parse(list, cores))
		return 0;
	fprintf(stderr, "flexsc: study: cores=%s: give cores that this process "
			"may use, such as 0,2-3\n", list);
	return 1;
}

int bench_memory_speed(const struct bench_settings *settings)
{
	struct memory memory = { 0 };
	cpu_set_t cores;
	int err;

	if (cores_of(settings->cores, &cores))
		return 1;
	err = make_readers(&memory, &cores, (size_t)settings->mib * MIB);
	if (!err)
		err = run(&memory, settings);
	for (int kind = 0; kind < KINDS; kind++) {
		bench_series_fini(&memory.rate[kind]);
		bench_series_fini(&memory.waited[kind]);
	}
	while (memory.count--)
		munmap(memory.readers[memory.count].memory,
		       memory.readers[memory.count].bytes);
	free(memory.readers);
	return err;
}
