/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "open.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>

#include "crowd.h"
#include "bench/raw/loop.h"
#include "outcome.h"
#include "bench/raw/report.h"

#define SECOND		1000000000ULL
#define DELAY		(SECOND / 10)	/* delay before the first request is due */
#define OTHER_FDS	64
#define SOURCE		"127.0.0.2"

/* The state of one thread. */
struct part {
	struct bench_crowd crowd;
	pthread_t thread;
	uint64_t begin;
	const char *wrong;	/* NULL, or an error that ended it */
};

struct open_loop {
	const struct bench_settings *settings;
	struct bench_fileset set;
	struct bench_trace trace;
	struct part *parts;
	size_t count;		/* number of parts */
	clockid_t clock;	/* clock of the server's processor time */
};

static int complain(const char *what)
{
	fprintf(stderr, "flexsc: study: load: %s\n", what);
	return 1;
}

/* Settings. */

static int set_pages(struct bench_crowd *crowd, const char *sizes)
{
	const char *at = sizes;
	char *end;

	if (!at) {
		bench_page_init(&crowd->pages[crowd->page_count++], 0, false);
		return 0;
	}
	for (;; at = end + 1) {
		unsigned long kib = strtoul(at, &end, 10);

		if (end == at || !kib || kib > 65536 || (*end && *end != ',') ||
		    crowd->page_count == BENCH_PAGES)
			return complain("sizes: give up to 256 sizes in KiB, "
					"such as 1,2,4");
		bench_page_init(&crowd->pages[crowd->page_count++],
				(uint32_t)kib, false);
		if (!*end)
			return 0;
	}
}

static int set_arrivals(struct bench_crowd *crowd,
			const struct bench_settings *settings)
{
	/* A closed loop of sessions has no rate: any value but 0. */
	uint64_t rate = settings->rate ? (uint64_t)settings->rate : 1;
	uint64_t count = (uint64_t)settings->count;
	bool poisson = bench_is(settings->arrivals, "poisson");

	if (!poisson && !bench_is(settings->arrivals, "even"))
		return complain("arrivals: give even or poisson");
	crowd->warm_up = (uint64_t)settings->warm_ms * 1000000;
	crowd->timeout = (uint64_t)settings->timeout_ms * 1000000;
	crowd->spin = (uint64_t)settings->spin_us * 1000;
	crowd->cut = settings->cut;
	if (settings->trace && !count) {
		crowd->length = (uint64_t)settings->seconds * SECOND;
		count = UINT64_MAX;
	} else if (!count) {
		count = rate * (uint64_t)settings->seconds;
	}
	/*
	 * If the number of sessions is given, the duration is known only at the
	 * end: see merge().
	 */
	if (crowd->length ? crowd->warm_up >= crowd->length :
	    !settings->trace &&
			    rate * (uint64_t)settings->warm_ms / 1000 >= count)
		return complain("warm_ms: too long: no time would be left to "
				"measure");
	bench_arrivals_init(&crowd->arrivals, rate, count, poisson,
			    (uint64_t)settings->seed);
	return 0;
}

/* One thread's share of a total. */
static size_t part_of(const struct open_loop *o, size_t all, size_t index)
{
	return all / o->count + (index < all % o->count);
}

/* Each thread may have as many connections as its share of the descriptors. */
static int set_connections(const struct open_loop *o, size_t index)
{
	const struct bench_settings *settings = o->settings;
	struct bench_crowd *crowd = &o->parts[index].crowd;
	struct bench_connections *connections = &crowd->connections;
	size_t limit = bench_descriptors(BENCH_FDS_MAX);

	if (limit <= OTHER_FDS + o->count)
		return complain("too few descriptors are allowed: raise ulimit -Hn");
	connections->max = part_of(o, limit - OTHER_FDS, index);
	if (settings->trace && !settings->rate)
		crowd->places = part_of(o, (size_t)settings->connections,
					index);
	if (crowd->places > connections->max)
		return complain("connections: too few descriptors are allowed: "
				"raise ulimit -Hn");
	return 0;
}

static int set_crowd(struct open_loop *o, size_t index)
{
	const struct bench_settings *settings = o->settings;
	struct bench_crowd *crowd = &o->parts[index].crowd;
	int err;

	if (bench_route_init(&crowd->connections.route, "load", settings, SOURCE) ||
	    set_arrivals(crowd, settings) || set_connections(o, index))
		return 1;
	if (settings->trace)
		crowd->trace = &o->trace;
	else if (set_pages(crowd, settings->sizes))
		return 1;
	bench_arrivals_share(&crowd->arrivals, index, o->count);
	crowd->connections.begun = index;
	err = bench_crowd_init(crowd, settings->order);
	return err ? bench_failed("load", err) : 0;
}

static int set(struct open_loop *o)
{
	const struct bench_settings *settings = o->settings;
	int err = 0;

	if (!settings->port)
		return complain("give port=N");
	if (!settings->rate && !settings->trace)
		return complain("missing rate=N or trace=FILE; for a closed "
				"loop use flexsc bench --raw load");
	if (settings->order && (settings->trace || settings->threads > 1))
		return complain("order=1: not possible with a trace or with "
				"threads");
	if (settings->cut && settings->count)
		return complain("cut=1: needs seconds instead of count");
	if (settings->trace &&
	    (bench_fileset_read(&o->set, settings->trace) ||
	     bench_trace_read(&o->trace, settings->trace, &o->set,
			      settings->think)))
		return 1;
	for (size_t i = 0; i < o->count && !err; i++)
		err = set_crowd(o, i);
	if (err || !settings->pid)
		return err;
	err = clock_getcpuclockid((pid_t)settings->pid, &o->clock);
	return err ? bench_failed("load: the server's clock", -err) : 0;
}

/* The run. */

static void *run_part(void *arg)
{
	struct part *part = arg;

	part->wrong = bench_crowd_run(&part->crowd, part->begin);
	return NULL;
}

static int run(struct open_loop *o)
{
	uint64_t begin = bench_clock(CLOCK_MONOTONIC) + DELAY;
	const char *wrong = NULL;
	size_t started = 0;
	int err = 0;

	while (started < o->count && !err) {
		struct part *part = &o->parts[started];

		part->begin = begin;
		err = pthread_create(&part->thread, NULL, run_part, part);
		started += !err;
	}
	for (size_t i = 0; i < started; i++) {
		pthread_join(o->parts[i].thread, NULL);
		wrong = wrong ?: o->parts[i].wrong;
	}
	if (err)
		return bench_failed("load: threads", -err);
	return wrong ? complain(wrong) : 0;
}

/* With a trace, wrong answers are counted, and the first one is reported. */
static void warn(const struct open_loop *o)
{
	for (size_t i = 0; i < o->count; i++) {
		const struct bench_crowd *crowd = &o->parts[i].crowd;
		const char *name;

		if (!crowd->first_wrong)
			continue;
		name = crowd->first_wrong->get + sizeof("GET ") - 1;
		fprintf(stderr, "flexsc: study: load: %.*s: %s\n",
			(int)strcspn(name, " "), name, crowd->first_why);
		return;
	}
}

/* The server's processor time in ns, or 0 without pid=. */
static int server_time(const struct open_loop *o, uint64_t *time)
{
	struct timespec now = { };

	if (o->settings->pid && clock_gettime(o->clock, &now))
		return complain("pid: the process has ended");
	*time = (uint64_t)now.tv_sec * SECOND + (uint64_t)now.tv_nsec;
	return 0;
}

/* Add all tallies to the first one. */
static int merge(struct open_loop *o)
{
	const struct bench_settings *settings = o->settings;
	struct bench_tally *tally = o->parts[0].crowd.tally;

	for (size_t i = 1; i < o->count; i++)
		bench_tally_merge(tally, o->parts[i].crowd.tally);
	/*
	 * A run of sessions ends with its last answer, or now if there was no
	 * answer.
	 */
	if (settings->trace && settings->count && !tally->last)
		tally->until = bench_clock(CLOCK_MONOTONIC);
	return tally->until > tally->from ? 0 :
	       complain("warm_ms: too long: no time was left to measure");
}

static int measure(struct open_loop *o)
{
	struct bench_crowd *first = &o->parts[0].crowd;
	struct bench_outcome outcome = {
		.settings = o->settings, .tally = first->tally,
	};
	uint64_t before, after;
	const char *wrong = NULL;

	for (size_t i = 0; i < o->count && !wrong; i++)
		wrong = bench_crowd_learn(&o->parts[i].crowd);
	if (wrong)
		return complain(wrong);
	bench_outcome_before(&outcome);
	if (server_time(o, &before) || run(o) || server_time(o, &after))
		return 1;
	outcome.cpu = after - before;
	bench_outcome_after(&outcome);
	if (merge(o))
		return 1;
	outcome.order = first->order;
	outcome.order_count = first->order_count;
	warn(o);
	bench_outcome_report(&outcome);
	return 0;
}

static size_t threads(const struct bench_settings *settings)
{
	return (size_t)(settings->threads < settings->connections ?
				settings->threads : settings->connections);
}

int bench_open(const struct bench_settings *settings)
{
	struct open_loop o = { .settings = settings };
	int err;

	o.count = threads(settings);
	o.parts = calloc(o.count, sizeof(*o.parts));
	if (!o.parts)
		return bench_failed("load", -ENOMEM);
	for (size_t i = 0; i < o.count; i++)
		o.parts[i].crowd.connections.epoll = -1;
	/* Make timers exact, so that a request begins when it is due. */
	prctl(PR_SET_TIMERSLACK, 1UL);
	err = bench_pin(settings->core) || set(&o) || measure(&o);
	for (size_t i = 0; i < o.count; i++)
		bench_crowd_fini(&o.parts[i].crowd);
	bench_trace_fini(&o.trace);
	bench_fileset_fini(&o.set);
	free(o.parts);
	return err;
}
