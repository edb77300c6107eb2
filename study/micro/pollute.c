/* SPDX-License-Identifier: MIT */
/*
 * study --raw pollute: a program's speed between its system calls, and the
 * duration of the calls, against the calls' frequency (OSDI 2010, figures 2 to
 * 4).
 *
 * A block consists of one period of work (work.h) or more, with a call after
 * every "every" units. The clock (ticks.h) is read before and after each call.
 * The time between these readings is the call's; the rest of the block's time
 * is the program's. There are three kinds of blocks, measured alternately:
 * without calls, but with the readings; with getppid, which does almost
 * nothing, so that only the cost of a mode switch remains (direct); and with
 * the call. Each block runs twice, and the second run is measured.
 */
#include <stdio.h>
#include <stdlib.h>

#include "study/cases.h"
#include "bench/raw/loop.h"
#include "bench/raw/report.h"
#include "ticks.h"
#include "trap.h"
#include "work.h"

enum { CONTROL, DIRECT, CALLED, KINDS };

struct pollute {
	struct bench_work work;
	struct bench_trap traps[KINDS];
	unsigned int every;	/* units between two calls */
	unsigned int calls;	/* calls per block */
	struct bench_series user[KINDS];	/* mean ticks per unit */
	struct bench_series call[KINDS];	/* mean ticks per call */
};

static const char *const user_names[] = {
	"control_ticks", "direct_ticks", "called_ticks",
};
static const char *const call_names[] = {
	"clock_ticks", "direct_call_ticks", "call_ticks",
};

/* Run a block. Returns the sum of its calls' ticks. */
static uint64_t block(struct pollute *pollute, struct bench_trap *trap)
{
	uint64_t calls = 0;

	for (unsigned int i = 0; i < pollute->calls; i++) {
		uint64_t begin;

		bench_work_run(&pollute->work, pollute->every);
		begin = bench_ticks();
		bench_trap_make(trap);
		calls += bench_ticks() - begin;
	}
	return calls;
}

static void measure(struct pollute *pollute, int kind)
{
	double units = (double)pollute->calls * pollute->every;
	uint64_t begin, calls, all;

	block(pollute, &pollute->traps[kind]);
	begin = bench_ticks();
	calls = block(pollute, &pollute->traps[kind]);
	all = bench_ticks() - begin;
	bench_series_add(&pollute->user[kind], (double)(all - calls) / units);
	bench_series_add(&pollute->call[kind],
			 (double)calls / pollute->calls);
}

static int report(struct pollute *pollute,
		  const struct bench_settings *settings)
{
	for (int kind = 0; kind < KINDS; kind++)
		if (bench_trap_check(&pollute->traps[kind]))
			return 1;
	if (bench_work_check(&pollute->work))
		return 1;
	bench_report_begin("pollute", settings);
	for (int kind = 0; kind < KINDS; kind++) {
		bench_report_series(&pollute->user[kind]);
		bench_report_series(&pollute->call[kind]);
	}
	bench_report_counts();
	bench_report_count("calls", pollute->calls);
	bench_report_count("ticks_per_us", bench_ticks_per_us());
	bench_report_count("units", (double)pollute->work.units);
	bench_report_end();
	return 0;
}

static int run(struct pollute *pollute, const struct bench_settings *settings)
{
	for (int kind = 0; kind < KINDS; kind++)
		if (bench_series_init(&pollute->user[kind], user_names[kind],
				      settings) ||
		    bench_series_init(&pollute->call[kind], call_names[kind],
				      settings))
			return 1;
	for (long rep = 0; rep < settings->reps; rep++)
		for (int i = 0; i < KINDS; i++)
			/*
			 * Measure the kinds alternately forwards and backwards.
			 */
			measure(pollute, rep % 2 ? KINDS - 1 - i : i);
	return report(pollute, settings);
}

static int with_traps(struct pollute *pollute,
		      const struct bench_settings *settings)
{
	const char *const names[] = { "none", "getppid", settings->call };
	int made = 0, err = 1;

	while (made < KINDS &&
	       !bench_trap_init(&pollute->traps[made], names[made]))
		made++;
	if (made == KINDS) {
		err = run(pollute, settings);
		for (int kind = 0; kind < KINDS; kind++) {
			bench_series_fini(&pollute->user[kind]);
			bench_series_fini(&pollute->call[kind]);
		}
	}
	while (made--)
		bench_trap_fini(&pollute->traps[made]);
	return err;
}

/*
 * Choose the number of calls per block: a block is the smallest number of whole
 * periods that has at least one call.
 */
static int divide(struct pollute *pollute, long every)
{
	if (every & (every - 1)) {
		fprintf(stderr, "flexsc: study: every=%ld: give a power of two\n",
			every);
		return 1;
	}
	pollute->every = (unsigned int)every;
	pollute->calls = every < BENCH_WORK_PERIOD ?
			 BENCH_WORK_PERIOD / pollute->every : 1;
	return 0;
}

int bench_pollute(const struct bench_settings *settings)
{
	struct pollute *pollute = bench_memory(1, sizeof(*pollute));
	int err = 1;

	if (!pollute)
		return 1;
	if (!divide(pollute, settings->every) && !bench_pin(settings->core) &&
	    !bench_work_init(&pollute->work, settings->work)) {
		err = with_traps(pollute, settings);
		bench_work_fini(&pollute->work);
	}
	free(pollute);
	return err;
}
