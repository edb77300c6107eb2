/* SPDX-License-Identifier: MIT */
/*
 * study --raw lost: how slow a program is after a system call, and when it has
 * regained its speed (OSDI 2010, figure 1).
 *
 * A period of work (work.h) is divided into slices. A measurement reads the
 * clock (ticks.h) after each slice of one period. Periods that follow the call,
 * and control periods, which follow no call, are measured alternately. A period
 * without calls precedes each measurement, so that the program has its full
 * speed again.
 */
#include <stdlib.h>

#include "study/cases.h"
#include "bench/raw/loop.h"
#include "bench/raw/report.h"
#include "ticks.h"
#include "trap.h"
#include "work.h"

#define SLICES		64
#define SLICE_UNITS	(BENCH_WORK_PERIOD / SLICES)

/* The compared sides: periods without the call, and after the call. */
enum { CONTROL, CALLED, SIDES };

struct lost {
	struct bench_work work;
	struct bench_trap trap;
	long calls;
	double *ticks[SIDES][SLICES];	/* a sample for each measurement */
	double middles[SIDES][SLICES];	/* bench_middle() of the samples */
};

static void measure(struct lost *lost, int side, long number)
{
	uint64_t at[SLICES + 1];

	bench_work_run(&lost->work, BENCH_WORK_PERIOD);
	if (side == CALLED)
		bench_trap_make(&lost->trap);
	at[0] = bench_ticks();
	for (int i = 0; i < SLICES; i++) {
		bench_work_run(&lost->work, SLICE_UNITS);
		at[i + 1] = bench_ticks();
	}
	/* Storing into the samples any earlier would disturb the next slice. */
	for (int i = 0; i < SLICES && number >= 0; i++)
		lost->ticks[side][i][number] = (double)(at[i + 1] - at[i]);
}

static void measure_all(struct lost *lost)
{
	/* The first tenth is additional: a warm-up, which stores no samples. */
	for (long i = -lost->calls / 10; i < lost->calls; i++) {
		int first = i % 2 ? CALLED : CONTROL;

		measure(lost, first, i);
		measure(lost, !first, i);
	}
	for (int side = 0; side < SIDES; side++)
		for (int i = 0; i < SLICES; i++)
			lost->middles[side][i] =
				bench_middle(lost->ticks[side][i],
					     (size_t)lost->calls);
}

static void report(struct lost *lost, const struct bench_settings *settings)
{
	const unsigned int units = SLICE_UNITS;

	bench_report_begin("lost", settings);
	bench_report_series(&(struct bench_series){
		"control_ticks", lost->middles[CONTROL], SLICES });
	bench_report_series(&(struct bench_series){
		"called_ticks", lost->middles[CALLED], SLICES });
	bench_report_counts();
	bench_report_count("slice_units", units);
	bench_report_count("clock_ticks", bench_ticks_between());
	bench_report_count("ticks_per_us", bench_ticks_per_us());
	bench_report_count("units", (double)lost->work.units);
	bench_report_end();
}

static int run(struct lost *lost, const struct bench_settings *settings)
{
	double *room = bench_memory(SIDES * SLICES * (size_t)settings->calls,
				    sizeof(*room));
	int err;

	if (!room)
		return 1;
	lost->calls = settings->calls;
	for (int side = 0; side < SIDES; side++)
		for (int i = 0; i < SLICES; i++)
			lost->ticks[side][i] =
				room + (side * SLICES + i) * lost->calls;
	measure_all(lost);
	err = bench_trap_check(&lost->trap) || bench_work_check(&lost->work);
	if (!err)
		report(lost, settings);
	free(room);
	return err;
}

int bench_lost(const struct bench_settings *settings)
{
	struct lost *lost = bench_memory(1, sizeof(*lost));
	int err = 1;

	if (!lost || bench_pin(settings->core) ||
	    bench_work_init(&lost->work, settings->work))
		goto no_work;
	if (!bench_trap_init(&lost->trap, settings->call)) {
		err = run(lost, settings);
		bench_trap_fini(&lost->trap);
	}
	bench_work_fini(&lost->work);
no_work:
	free(lost);
	return err;
}
