/* SPDX-License-Identifier: MIT */
/*
 * bench --raw timers: the cost of a timer while many are outstanding.
 *
 * 	dormant		nearly all are far away; some, the active ones, expire
 * 			all the time and are armed again
 * 	all		all of them expire, at random times
 * 	cancel		none expires; the active ones are cancelled and armed
 * 			again, as read timeouts are
 * 	cancel-all	like cancel, but with all timers, in random order
 *
 * In "dormant" and "all", one timer expires every SPACING nanoseconds on
 * average, whatever the number of timers, so the loop always has the same
 * number of wake-ups. The measured time is the thread's processor time, because
 * the thread sleeps while no timer is due.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <flexsc/flexsc.h>
#include <stdio.h>
#include <stdlib.h>

#include "bench/cases.h"
#include "loop.h"
#include "report.h"

#define FAR		3600000000000ULL	/* an hour */
#define SPACING		1000ULL		/* ns between timers that expire */
#define ARM_NS		500	/* an upper limit of the time to arm a timer */

struct timers {
	const struct bench_settings *settings;
	struct flexsc_loop *loop;
	struct flexsc_cb *cbs;
	uint32_t *order;	/* order of the timers; the active ones come first */
	uint64_t outstanding;
	uint64_t active;
	uint64_t left;		/* completions until the end of the run */
	uint64_t next;		/* index in "order" of the next one to cancel */
	uint64_t seed;
	struct bench_series cost;
	struct bench_series arming;
};

static uint64_t now(void)
{
	return bench_clock(CLOCK_THREAD_CPUTIME_ID);
}

static uint64_t far_away(struct timers *timers)
{
	return FAR + bench_random(&timers->seed) % FAR;
}

/* A time within which n timers expire, one every SPACING. */
static uint64_t soon(struct timers *timers, uint64_t n)
{
	return bench_random(&timers->seed) %
	       (n * SPACING);
}

static void counted(struct timers *timers)
{
	if (timers->left && !--timers->left)
		flexsc_loop_stop(timers->loop);
}

/* The callback of an expired timer, for "dormant". */

static void expired_again(struct flexsc_cb *cb)
{
	struct timers *timers = cb->arg;

	flexsc_loop_timer(timers->loop, cb, soon(timers, 2 * timers->active));
	counted(timers);
}

static void run_dormant(struct timers *timers)
{
	uint64_t calls = (uint64_t)timers->settings->calls, begin = now();

	timers->left = calls;
	flexsc_loop_run(timers->loop);
	bench_series_add(&timers->cost,
			 (double)(now() - begin) / (double)calls);
}

/* The callback of an expired timer, for "all". */

static void expired(struct flexsc_cb *cb)
{
	struct timers *timers = cb->arg;

	timers->left--;
}

static void run_all(struct timers *timers)
{
	uint64_t n = timers->outstanding, arming = 0, running = 0;
	uint64_t rounds = (uint64_t)timers->settings->calls / n + 1;

	for (uint64_t round = 0; round < rounds; round++) {
		uint64_t begin = now(), armed;

		timers->left = n;
		for (uint64_t i = 0; i < n; i++)
			flexsc_loop_timer(timers->loop, &timers->cbs[i],
					  n * ARM_NS + soon(timers, n));
		armed = now();
		flexsc_loop_run(timers->loop);
		arming += armed - begin;
		running += now() - armed;
	}
	bench_series_add(&timers->cost,
			 (double)running / (double)(rounds * n));
	bench_series_add(&timers->arming,
			 (double)arming / (double)(rounds * n));
}

/* The callback of a cancelled timer, for "cancel" and "cancel-all". */

static void cancelled(struct flexsc_cb *cb)
{
	struct timers *timers = cb->arg;

	flexsc_loop_timer(timers->loop, cb, far_away(timers));
	counted(timers);
}

static void cancel_some(struct timers *timers, uint64_t of)
{
	for (uint64_t i = 0; i < timers->active; i++) {
		uint32_t which = timers->order[timers->next];

		timers->next = timers->next + 1 < of ? timers->next + 1 : 0;
		flexsc_loop_cancel(timers->loop, &timers->cbs[which]);
	}
	timers->left = timers->active;
	flexsc_loop_run(timers->loop);
}

static void run_cancel(struct timers *timers)
{
	bool all = bench_is(timers->settings->scenario, "cancel-all");
	uint64_t of = all ? timers->outstanding : timers->active;
	uint64_t rounds = (uint64_t)timers->settings->calls / timers->active + 1;
	uint64_t begin = now();

	for (uint64_t round = 0; round < rounds; round++)
		cancel_some(timers, of);
	bench_series_add(&timers->cost,
			 (double)(now() - begin) /
				 (double)(rounds * timers->active));
}

static const struct scenario {
	const char *name;
	void (*callback)(struct flexsc_cb *cb);
	void (*run)(struct timers *timers);
} scenarios[] = {
	{ "dormant", expired_again, run_dormant },
	{ "all", expired, run_all },
	{ "cancel", cancelled, run_cancel },
	{ "cancel-all", cancelled, run_cancel },
};

static const struct scenario *choose(const char *name)
{
	for (size_t i = 0; i < sizeof(scenarios) / sizeof(scenarios[0]); i++)
		if (bench_is(scenarios[i].name, name))
			return &scenarios[i];
	fprintf(stderr, "flexsc: bench: timers: scenario=%s: give dormant, "
		"all, cancel or cancel-all\n", name);
	return NULL;
}

/* Arm the timers that are outstanding before the measurement. */
static void arm(struct timers *timers, const struct scenario *scenario)
{
	bool dormant = scenario->run == run_dormant;

	for (uint64_t i = 0; i < timers->outstanding; i++)
		flexsc_loop_timer(timers->loop, &timers->cbs[timers->order[i]],
				  dormant && i < timers->active ?
					  soon(timers, 2 * timers->active) :
					  far_away(timers));
}

static void report(struct timers *timers)
{
	bench_report_begin("timers", timers->settings);
	bench_report_series(&timers->cost);
	if (timers->arming.count)
		bench_report_series(&timers->arming);
	bench_report_counts();
	bench_report_stats(timers->loop);
	bench_report_end();
}

static void measure(struct timers *timers, const struct scenario *scenario)
{
	for (uint64_t i = 0; i < timers->outstanding; i++) {
		timers->cbs[i].callback = scenario->callback;
		timers->cbs[i].arg = timers;
	}
	if (scenario->run != run_all)
		arm(timers, scenario);
	/* The first run is a warm-up. */
	scenario->run(timers);
	timers->cost.count = 0;
	timers->arming.count = 0;
	for (long rep = 0; rep < timers->settings->reps; rep++)
		scenario->run(timers);
	report(timers);
}

/*
 * Destroying the loop cancels outstanding timers, which must not be armed
 * again.
 */
static void silence(struct timers *timers)
{
	for (uint64_t i = 0; i < timers->outstanding; i++)
		timers->cbs[i].callback = NULL;
}

int bench_timers(const struct bench_settings *settings)
{
	const struct scenario *scenario = choose(settings->scenario);
	struct timers timers = {
		.settings = settings,
		.outstanding = (uint64_t)settings->outstanding,
		.active = (uint64_t)settings->active,
		.seed = 88172645463325252ULL,
	};
	int err = 1;

	if (!scenario)
		return 1;
	if (timers.active > timers.outstanding)
		timers.active = timers.outstanding;
	timers.cbs = bench_memory(timers.outstanding, sizeof(*timers.cbs));
	timers.order = bench_order(timers.outstanding, timers.active);
	if (timers.cbs && timers.order &&
	    !bench_loop_create(&timers.loop, settings) &&
	    !bench_series_init(&timers.cost, "ns_per_completion", settings) &&
	    !bench_series_init(&timers.arming, "ns_per_arming", settings)) {
		measure(&timers, scenario);
		silence(&timers);
		err = 0;
	}
	flexsc_loop_destroy(timers.loop);
	bench_series_fini(&timers.cost);
	bench_series_fini(&timers.arming);
	free(timers.order);
	free(timers.cbs);
	return err;
}
