/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "open.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/resource.h>

#include "crowd.h"
#include "loop.h"
#include "netstat.h"
#include "report.h"

#define SECOND		1000000000ULL
#define OTHER_FDS	64
#define SOURCE		"127.0.0.2"

/* Counters of the server's network that are reported, by the kernel's names. */
static const struct {
	const char *name, *netstat;
} counters[] = {
	{ "listen_overflows", "ListenOverflows" },
	{ "listen_drops", "ListenDrops" },
	{ "syn_cookies", "SyncookiesSent" },
};

#define COUNTERS	(sizeof(counters) / sizeof(counters[0]))

struct open_loop {
	const struct bench_settings *settings;
	struct bench_crowd crowd;
	clockid_t clock;	/* the server's processor time */
};

static int complain(const char *what)
{
	fprintf(stderr, "flexsc: bench: load: %s\n", what);
	return 1;
}

/* The report. */

static void report_one(const char *name, double value)
{
	struct bench_series series = { name, &value, 1 };

	bench_report_series(&series);
}

static void report_times(const char *name, const struct bench_times *times)
{
	static const struct {
		const char *name;
		double share;
	} shares[] = {
		{ "p50", 0.5 }, { "p90", 0.9 }, { "p99", 0.99 },
		{ "p999", 0.999 },
	};
	char full[64];

	snprintf(full, sizeof(full), "%s_mean_us", name);
	report_one(full, bench_times_mean(times) / 1000);
	for (size_t i = 0; i < sizeof(shares) / sizeof(shares[0]); i++) {
		snprintf(full, sizeof(full), "%s_%s_us", name, shares[i].name);
		report_one(full, bench_histogram_at(&times->histogram,
						    shares[i].share) / 1000);
	}
	snprintf(full, sizeof(full), "%s_max_us", name);
	report_one(full, (double)times->max / 1000);
}

static void report_ends(const struct bench_tally *tally)
{
	static const char *const names[BENCH_ENDS] = {
		"answered", "late", "refused", "reset", "closed", "unsent",
	};

	bench_report_count("offered", (double)bench_tally_offered(tally));
	for (int i = 0; i < BENCH_ENDS; i++)
		bench_report_count(names[i], (double)tally->ends[i]);
	bench_report_count("warm_up", (double)tally->warm_up);
}

static void report(const struct open_loop *o, const double *before,
		   uint64_t cpu)
{
	const struct bench_crowd *crowd = &o->crowd;
	const struct bench_tally *tally = crowd->tally;
	struct bench_series order = {
		"order_us", crowd->order, crowd->order_count,
	};
	double length = (double)(tally->until - tally->from) / 1e9;

	bench_report_begin("load", o->settings);
	report_one("responses_per_s", bench_tally_response_rate(tally));
	report_one("goodput_per_s", bench_tally_goodput(tally));
	report_one("mbit_per_s", bench_tally_response_rate(tally) * 8e-6 *
		   (double)tally->bytes /
		   (double)(tally->ends[BENCH_ANSWERED] ?: 1));
	report_times("connect", &tally->connect);
	report_times("response", &tally->response);
	report_times("behind", &tally->behind);
	if (crowd->order)
		bench_report_series(&order);
	bench_report_counts();
	report_ends(tally);
	bench_report_count("seconds", length);
	for (size_t i = 0; i < COUNTERS; i++)
		bench_report_count(counters[i].name,
				   bench_netstat(o->settings->pid,
						 counters[i].netstat) -
				   before[i]);
	if (o->settings->pid)
		bench_report_count("server_cpu_us", (double)cpu / 1000);
	bench_report_end();
}

/* Settings. */

static int set_pages(struct bench_crowd *crowd, const char *sizes)
{
	const char *at = sizes;
	char *end;

	if (!at) {
		bench_page_init(&crowd->pages[crowd->page_count++], 0,
				crowd->kept);
		return 0;
	}
	for (;; at = end + 1) {
		unsigned long kib = strtoul(at, &end, 10);

		if (end == at || !kib || kib > 65536 || (*end && *end != ',') ||
		    crowd->page_count == BENCH_PAGES)
			return complain("sizes: give up to 256 numbers of KiB, "
					"as 1,2,4");
		bench_page_init(&crowd->pages[crowd->page_count++],
				(uint32_t)kib, crowd->kept);
		if (!*end)
			return 0;
	}
}

static int set_arrivals(struct bench_crowd *crowd,
			const struct bench_settings *settings)
{
	uint64_t rate = (uint64_t)settings->rate, count;
	bool poisson = bench_is(settings->arrivals, "poisson");

	if (!poisson && !bench_is(settings->arrivals, "even"))
		return complain("arrivals: give even or poisson");
	count = settings->count ? (uint64_t)settings->count :
				  rate * (uint64_t)settings->seconds;
	if (rate * (uint64_t)settings->warm_ms / 1000 >= count)
		return complain("warm_ms: nothing would be left to be counted");
	bench_arrivals_init(&crowd->arrivals, rate, count, poisson,
			    (uint64_t)settings->seed);
	crowd->warm_up = (uint64_t)settings->warm_ms * 1000000;
	crowd->timeout = (uint64_t)settings->timeout_ms * 1000000;
	return 0;
}

/* Raise the limit of descriptors, root's beyond the hard one. Returns the limit. */
static rlim_t descriptors(void)
{
	struct rlimit limit = { BENCH_FDS_MAX, BENCH_FDS_MAX };

	if (!setrlimit(RLIMIT_NOFILE, &limit))
		return limit.rlim_cur;
	getrlimit(RLIMIT_NOFILE, &limit);
	if (limit.rlim_max < BENCH_FDS_MAX)
		limit.rlim_cur = limit.rlim_max;
	else
		limit.rlim_cur = BENCH_FDS_MAX;
	setrlimit(RLIMIT_NOFILE, &limit);
	getrlimit(RLIMIT_NOFILE, &limit);
	return limit.rlim_cur;
}

/* At most one connection for each descriptor; kept ones as the settings say. */
static int set_connections(struct bench_crowd *crowd,
			   const struct bench_settings *settings)
{
	const char *conns = settings->conns ? settings->conns : "new";
	rlim_t limit = descriptors();

	crowd->kept = bench_is(conns, "kept");
	if (!crowd->kept && !bench_is(conns, "new"))
		return complain("conns: give new or kept");
	if (limit <= OTHER_FDS)
		return complain("too few descriptors are allowed");
	crowd->connections_max = (size_t)limit - OTHER_FDS;
	if (crowd->kept &&
	    crowd->connections_max > (size_t)settings->connections)
		crowd->connections_max = (size_t)settings->connections;
	return 0;
}

static int set(struct open_loop *o)
{
	const struct bench_settings *settings = o->settings;
	struct bench_crowd *crowd = &o->crowd;
	int err;

	if (!settings->port)
		return complain("give port=N");
	if (bench_route_init(&crowd->route, "load", settings, SOURCE) ||
	    set_arrivals(crowd, settings) ||
	    set_connections(crowd, settings) ||
	    set_pages(crowd, settings->sizes))
		return 1;
	err = settings->pid ? clock_getcpuclockid((pid_t)settings->pid,
						  &o->clock) : 0;
	if (err)
		return bench_failed("load: the server's clock", -err);
	err = bench_crowd_init(crowd, settings->trace);
	return err ? bench_failed("load", err) : 0;
}

static int measure(struct open_loop *o)
{
	long pid = o->settings->pid;
	double before[COUNTERS];
	uint64_t cpu = 0;
	const char *wrong;

	for (size_t i = 0; i < COUNTERS; i++)
		before[i] = bench_netstat(pid, counters[i].netstat);
	if (pid)
		cpu = bench_clock(o->clock);
	wrong = bench_crowd_run(&o->crowd);
	if (wrong)
		return complain(wrong);
	if (pid)
		cpu = bench_clock(o->clock) - cpu;
	report(o, before, cpu);
	return 0;
}

int bench_open(const struct bench_settings *settings)
{
	struct open_loop *o = calloc(1, sizeof(*o));
	int err;

	if (!o)
		return bench_failed("load", -ENOMEM);
	o->settings = settings;
	o->crowd.epoll = -1;
	/* Timers are to be exact: a request begins when it is due. */
	prctl(PR_SET_TIMERSLACK, 1UL);
	err = bench_pin(settings->core) || set(o) || measure(o);
	bench_crowd_fini(&o->crowd);
	free(o);
	return err;
}
