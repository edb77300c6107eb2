/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "outcome.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/raw/report.h"

/*
 * The reported counters of the server's network, and their names in the kernel.
 */
static const struct {
	const char *name, *netstat;
} counters[BENCH_NETWORK] = {
	{ "listen_overflows", "ListenOverflows" },
	{ "listen_drops", "ListenDrops" },
	{ "syn_cookies", "SyncookiesSent" },
};

/*
 * The file consists of pairs of lines: names, then the values in the same
 * order.
 */
static double value_of(char *names, char *values, const char *name)
{
	char *names_at = NULL, *values_at = NULL;
	char *found = strtok_r(names, " \n", &names_at);
	char *value = strtok_r(values, " \n", &values_at);

	while (found && value && strcmp(found, name) != 0) {
		found = strtok_r(NULL, " \n", &names_at);
		value = strtok_r(NULL, " \n", &values_at);
	}
	return found && value ? strtod(value, NULL) : 0;
}

/*
 * A counter of /proc/PID/net/netstat; pid 0: this process. Returns 0 on
 * failure.
 */
static double netstat(long pid, const char *name)
{
	char path[64], *names = NULL, *values = NULL;
	size_t names_room = 0, values_room = 0;
	double value = 0;
	FILE *file;

	if (pid)
		snprintf(path, sizeof(path), "/proc/%ld/net/netstat", pid);
	else
		snprintf(path, sizeof(path), "/proc/self/net/netstat");
	file = fopen(path, "re");
	if (!file)
		return 0;
	while (!value && getline(&names, &names_room, file) > 0 &&
	       getline(&values, &values_room, file) > 0)
		value = value_of(names, values, name);
	free(names);
	free(values);
	fclose(file);
	return value;
}

void bench_outcome_before(struct bench_outcome *outcome)
{
	for (int i = 0; i < BENCH_NETWORK; i++)
		outcome->network[i] = netstat(outcome->settings->pid,
					      counters[i].netstat);
}

void bench_outcome_after(struct bench_outcome *outcome)
{
	for (int i = 0; i < BENCH_NETWORK; i++) {
		double now = netstat(outcome->settings->pid,
				     counters[i].netstat);
		double before = outcome->network[i];

		/* The counters can't be read if the server has ended. */
		outcome->network[i] = now > before ? now - before : 0;
	}
}

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
		report_one(full, bench_times_at(times, shares[i].share) / 1000);
	}
	snprintf(full, sizeof(full), "%s_max_us", name);
	report_one(full, (double)times->max / 1000);
}

/* Report a run whose end time was known in advance. */
static void report_answers(const struct bench_tally *tally)
{
	double rate = bench_tally_answer_rate(tally);

	report_one("answers_per_s", rate);
	report_one("answers_mbit_per_s", rate * 8e-6 *
		   (double)tally->within_bytes / (double)(tally->within ?: 1));
}

static void report_samples(const struct bench_outcome *outcome)
{
	const struct bench_tally *tally = outcome->tally;
	struct bench_series order = {
		"order_us", outcome->order, outcome->order_count,
	};

	report_one("responses_per_s", bench_tally_response_rate(tally));
	report_one("goodput_per_s", bench_tally_goodput(tally));
	if (!outcome->settings->count)
		report_answers(tally);
	report_one("mbit_per_s", bench_tally_response_rate(tally) * 8e-6 *
		   (double)tally->bytes /
		   (double)(tally->ends[BENCH_ANSWERED] ?: 1));
	report_times("connect", &tally->connect);
	report_times("exchange", &tally->exchange);
	report_times("response", &tally->response);
	report_times("behind", &tally->behind);
	if (outcome->order)
		bench_report_series(&order);
}

static void report_ends(const struct bench_tally *tally)
{
	static const char *const names[BENCH_ENDS] = {
		"answered", "late", "refused", "reset", "closed", "unsent",
		"wrong_status", "wrong_length", "wrong_body", "wrong_head",
		"cut",
	};

	bench_report_count("offered", (double)bench_tally_offered(tally));
	for (int i = 0; i < BENCH_ENDS; i++)
		bench_report_count(names[i], (double)tally->ends[i]);
	bench_report_count("warm_up", (double)tally->warm_up);
}

static void report_sessions(const struct bench_tally *tally)
{
	bench_report_count("sessions", (double)tally->begun);
	bench_report_count("sessions_done", (double)tally->done);
	bench_report_count("sessions_failed", (double)tally->failed);
	bench_report_count("unasked", (double)tally->unasked);
	bench_report_count("lost_thinking", (double)tally->lost);
}

void bench_outcome_report(const struct bench_outcome *outcome)
{
	const struct bench_settings *settings = outcome->settings;
	const struct bench_tally *tally = outcome->tally;

	bench_report_begin("load", settings);
	report_samples(outcome);
	bench_report_counts();
	report_ends(tally);
	if (settings->trace)
		report_sessions(tally);
	bench_report_count("spun_us", (double)tally->spun / 1000);
	bench_report_count("seconds", (double)(tally->until - tally->from) /
				      1e9);
	for (int i = 0; i < BENCH_NETWORK; i++)
		bench_report_count(counters[i].name, outcome->network[i]);
	if (settings->pid)
		bench_report_count("server_cpu_us",
				   (double)outcome->cpu / 1000);
	bench_report_end();
}
