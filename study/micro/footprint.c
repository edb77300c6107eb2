/* SPDX-License-Identifier: MIT */
/*
 * study --raw footprint: how many lines of a cache, or entries of the
 * translation lookaside buffer (TLB), a system call takes from the program
 * (OSDI 2010, table 1). Below, the TLB is treated as a cache whose lines are
 * the entries of pages.
 *
 * A chain through seven eighths of the cache's lines is followed until all of
 * its lines are in the cache. Then the call is made. Then the chain is followed
 * backwards and timed; in the forward direction, each line that is fetched
 * would evict the next one. To convert times into lines, the same is measured
 * with functions in place of the call, as a scale. Each function touches a known
 * number of lines of other memory. The call and the functions alternate.
 *
 * For the instruction cache the chain consists of jumps (jumps.h), and the
 * functions execute lines.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>
#ifdef __x86_64__
#include <cpuid.h>
#endif

#include "study/cases.h"
#include "jumps.h"
#include "bench/raw/loop.h"
#include "bench/raw/report.h"
#include "ticks.h"
#include "trap.h"

#define LINE	64
#define PAGE	4096
#define HUGE	((size_t)2 << 20)
#define LEAST	32	/* in lines */
#define WARM	3	/* how often a chain is followed both ways as a warm-up */

/*
 * The measured kinds: function k, from 0 to 16, touches (k/16)^2 of the cache's
 * lines, so most functions touch few lines, as calls do; then the call.
 */
#define SCALE	17
#define PARTS	((SCALE - 1) * (SCALE - 1))
#define KINDS	(SCALE + 1)

struct line {
	struct line *next, *before;
	char rest[LINE - 2 * sizeof(struct line *)];
};

struct footprint {
	struct bench_trap trap;
	const struct level *level;
	size_t lines;		/* lines of the cache */
	size_t chained;		/* lines of the chain */
	struct line *first, *last;
	char *memory;		/* a mapping that contains two huge pages */
	char *other;		/* the functions' page, which follows the chain's */
	struct bench_jumps jumps;	/* l1i: used instead of the memory */
	struct bench_series walk[KINDS];
	struct bench_series call;
};

static size_t lines_of_l1d(void)
{
	long size = sysconf(_SC_LEVEL1_DCACHE_SIZE);

	return size > 0 ? (size_t)size / LINE : 0;
}

static size_t lines_of_l1i(void)
{
#ifdef __x86_64__
	long size = sysconf(_SC_LEVEL1_ICACHE_SIZE);

	return size > 0 ? (size_t)size / BENCH_JUMPS_LINE : 0;
#else
	return 0;
#endif
}

static size_t lines_of_l2(void)
{
	long size = sysconf(_SC_LEVEL2_CACHE_SIZE);

	return size > 0 ? (size_t)size / LINE : 0;
}

/*
 * The size of the first-level TLB for small pages; only AMD's processors report
 * it.
 */
static size_t entries_of_dtlb(void)
{
#ifdef __x86_64__
	unsigned int a, b, c, d;

	if (__get_cpuid(0x80000005, &a, &b, &c, &d))
		return b >> 16 & 0xff;
#endif
	return 0;
}

static const struct level {
	const char *name;
	size_t (*lines)(void);	/* size of the cache; 0: unknown on this processor */
	int advice;		/* advice for madvise() */
	size_t apart;		/* bytes between lines; 0: the lines are code */
	size_t most;		/* largest supported number of lines */
} levels[] = {
	{ "l1d", lines_of_l1d, MADV_HUGEPAGE, LINE, HUGE / LINE },
	{ "l1i", lines_of_l1i, 0, 0, 4096 },
	{ "l2", lines_of_l2, MADV_HUGEPAGE, LINE, HUGE / LINE },
	/* PAGE + LINE puts the touched lines into different sets of the cache. */
	{ "dtlb", entries_of_dtlb, MADV_NOHUGEPAGE, PAGE + LINE,
	  HUGE / (PAGE + LINE) },
};

static const char *const names[KINDS] = {
	"touch_0", "touch_1", "touch_2", "touch_3", "touch_4", "touch_5",
	"touch_6", "touch_7", "touch_8", "touch_9", "touch_10", "touch_11",
	"touch_12", "touch_13", "touch_14", "touch_15", "touch_16", "call",
};

static size_t touched(const struct footprint *footprint, int kind)
{
	return footprint->lines * (size_t)(kind * kind) / PARTS;
}

static bool is_code(const struct footprint *footprint)
{
	return !footprint->level->apart;
}

static void touch(const struct footprint *footprint, size_t lines)
{
	if (is_code(footprint)) {
		bench_jumps_execute(&footprint->jumps, lines);
		return;
	}
	for (size_t i = 0; i < lines; i++)
		(void)*(volatile const char *)(footprint->other +
						   i * footprint->level->apart);
}

static struct line *forwards(struct line *line)
{
	while (line->next)
		line = line->next;
	return line;
}

static struct line *backwards(struct line *line)
{
	while (line->before)
		line = line->before;
	return line;
}

/* Compare the chain's ends, so that the compiler can't omit the walks. */
static void walk_back(struct footprint *footprint)
{
	if (is_code(footprint))
		bench_jumps_follow(&footprint->jumps);
	else if (backwards(footprint->last) != footprint->first)
		abort();
}

static void walk_there(struct footprint *footprint)
{
	if (is_code(footprint))
		bench_jumps_follow(&footprint->jumps);
	else if (forwards(footprint->first) != footprint->last)
		abort();
}

static void warm(struct footprint *footprint)
{
	for (int i = 0; i < WARM; i++) {
		walk_back(footprint);
		walk_there(footprint);
	}
}

static void measure(struct footprint *footprint, int kind)
{
	uint64_t before, after, end;

	warm(footprint);
	before = bench_ticks();
	if (kind == SCALE)
		bench_trap_make(&footprint->trap);
	else
		touch(footprint, touched(footprint, kind));
	after = bench_ticks();
	walk_back(footprint);
	end = bench_ticks();
	bench_series_add(&footprint->walk[kind], (double)(end - after));
	if (kind == SCALE)
		bench_series_add(&footprint->call, (double)(after - before));
}

/* Make the chain, in random order. */
static int make_chain(struct footprint *footprint)
{
	uint32_t *order = bench_order(footprint->chained, footprint->chained);
	char *memory = footprint->other - HUGE;
	struct line *before = NULL;

	if (!order)
		return 1;
	for (size_t i = 0; i < footprint->chained; i++) {
		struct line *line = (struct line *)(void *)
			(memory + order[i] * footprint->level->apart);

		line->before = before;
		if (before)
			before->next = line;
		else
			footprint->first = line;
		before = line;
	}
	before->next = NULL;
	footprint->last = before;
	free(order);
	return 0;
}

static int make_code(struct footprint *footprint)
{
	int err = bench_jumps_init(&footprint->jumps, footprint->chained,
				   footprint->lines);

	return err ? bench_failed("memory to execute", err) : 0;
}

static int make_memory(struct footprint *footprint)
{
	uintptr_t begin;

	if (is_code(footprint))
		return make_code(footprint);
	footprint->memory = mmap(NULL, 3 * HUGE, PROT_READ | PROT_WRITE,
				 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (footprint->memory == MAP_FAILED)
		return bench_failed("memory", -errno);
	begin = ((uintptr_t)footprint->memory + HUGE - 1) & ~(HUGE - 1);
	footprint->other = (char *)begin + HUGE;
	/* Ignore an error: small pages are good enough for the L1 data cache. */
	madvise((void *)begin, 2 * HUGE, footprint->level->advice);
	for (size_t i = 0; i < 2 * HUGE; i += LINE)
		((volatile char *)begin)[i] = 0;
	return make_chain(footprint);
}

static int choose(struct footprint *footprint, const char *name)
{
	for (size_t i = 0; i < sizeof(levels) / sizeof(levels[0]); i++) {
		const struct level *level = &levels[i];

		if (!bench_is(level->name, name))
			continue;
		footprint->level = level;
		footprint->lines = level->lines();
		footprint->chained = footprint->lines / 8 * 7;
		if (footprint->lines >= LEAST && footprint->lines <= level->most)
			return 0;
		fprintf(stderr, "flexsc: study: level=%s: its size is unknown "
				"here, or not between %d and %zu lines\n", name, LEAST,
			level->most);
		return 1;
	}
	fprintf(stderr, "flexsc: study: level=%s: give l1d, l1i, l2 or dtlb\n",
		name);
	return 1;
}

static int report(struct footprint *footprint,
		  const struct bench_settings *settings)
{
	if (bench_trap_check(&footprint->trap))
		return 1;
	bench_report_begin("footprint", settings);
	for (int kind = 0; kind < KINDS; kind++)
		bench_report_series(&footprint->walk[kind]);
	bench_report_series(&footprint->call);
	bench_report_counts();
	bench_report_count("lines", (double)footprint->lines);
	bench_report_count("chained", (double)footprint->chained);
	bench_report_count("clock_ticks", bench_ticks_between());
	bench_report_end();
	return 0;
}

static int run(struct footprint *footprint,
	       const struct bench_settings *settings)
{
	for (int kind = 0; kind < KINDS; kind++)
		if (bench_series_init(&footprint->walk[kind], names[kind],
				      settings))
			return 1;
	if (bench_series_init(&footprint->call, "call_ticks", settings) ||
	    make_memory(footprint))
		return 1;
	for (long rep = 0; rep < settings->reps; rep++)
		for (int i = 0; i < KINDS; i++)
			/*
			 * Measure the kinds alternately forwards and backwards.
			 */
			measure(footprint, rep % 2 ? KINDS - 1 - i : i);
	return report(footprint, settings);
}

int bench_footprint(const struct bench_settings *settings)
{
	struct footprint *footprint = bench_memory(1, sizeof(*footprint));
	int err = 1;

	if (!footprint)
		return 1;
	footprint->memory = MAP_FAILED;
	if (!choose(footprint, settings->level) && !bench_pin(settings->core) &&
	    !bench_trap_init(&footprint->trap, settings->call)) {
		err = run(footprint, settings);
		for (int kind = 0; kind < KINDS; kind++)
			bench_series_fini(&footprint->walk[kind]);
		bench_series_fini(&footprint->call);
		if (footprint->memory != MAP_FAILED)
			munmap(footprint->memory, 3 * HUGE);
		bench_jumps_fini(&footprint->jumps);
		bench_trap_fini(&footprint->trap);
	}
	free(footprint);
	return err;
}
