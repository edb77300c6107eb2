/* SPDX-License-Identifier: MIT */
/*
 * study --raw signals: what a real-time signal costs that a thread sends itself,
 * from sigqueue() to the end of its handler. "batch" of them are queued, while
 * they are blocked if that is more than one, and then handled.
 *
 *	memory	study/rtsignal
 *	kernel	the kernel's
 */
#define _GNU_SOURCE
#include <errno.h>
#include "study/rtsignal/rtsignal.h"
#include <stdio.h>
#include <unistd.h>

#include "study/cases.h"
#include "bench/raw/loop.h"
#include "bench/raw/report.h"

static const struct way {
	const char *name;
	int (*action)(int signo, const struct sigaction *action,
		      struct sigaction *old);
	int (*mask)(int how, const sigset_t *set, sigset_t *old);
	int (*queue)(pid_t pid, int signo, const union sigval value);
} ways[] = {
	{ "memory", rtsig_action, rtsig_procmask, rtsig_queue },
	{ "kernel", sigaction, sigprocmask, sigqueue },
};

static volatile long handled;

static void handle(int signo, siginfo_t *info, void *context)
{
	handled++;
}

static int run(const struct way *way, const struct bench_settings *settings,
	       long rounds)
{
	const union sigval value = { .sival_int = 1 };
	pid_t pid = getpid();
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGRTMIN);
	for (long round = 0; round < rounds; round++) {
		if (settings->batch > 1)
			way->mask(SIG_BLOCK, &set, NULL);
		for (long i = 0; i < settings->batch; i++)
			if (way->queue(pid, SIGRTMIN, value))
				return bench_failed("signals: queueing",
						    -errno);
		if (settings->batch > 1)
			way->mask(SIG_UNBLOCK, &set, NULL);
	}
	return 0;
}

/* One repetition. A signal that isn't handled would look like a fast one. */
static int measure(const struct way *way, const struct bench_settings *settings,
		   struct bench_series *cost)
{
	long rounds = settings->calls / settings->batch + 1;
	long signals = rounds * settings->batch;
	uint64_t begin = bench_clock(CLOCK_THREAD_CPUTIME_ID);

	handled = 0;
	if (run(way, settings, rounds))
		return 1;
	bench_series_add(cost, (double)(bench_clock(CLOCK_THREAD_CPUTIME_ID) -
					begin) / (double)signals);
	return handled == signals ? 0 : bench_failed("signals: lost", -EIO);
}

static int begin(const struct way *way, const struct bench_settings *settings)
{
	const struct sigaction action = {
		.sa_sigaction = handle,
		.sa_flags = SA_SIGINFO,
	};

	if (bench_pin(settings->core))
		return 1;
	if (way->action(SIGRTMIN, &action, NULL))
		return bench_failed("signals", -errno);
	return 0;
}

static const struct way *choose(const char *name)
{
	for (size_t i = 0; i < sizeof(ways) / sizeof(ways[0]); i++)
		if (bench_is(ways[i].name, name))
			return &ways[i];
	fprintf(stderr, "flexsc: study: signals: scenario=%s: give memory or "
		"kernel\n", name);
	return NULL;
}

int bench_signals(const struct bench_settings *settings)
{
	const struct way *way = choose(settings->scenario);
	struct bench_series cost;
	int err;

	if (!way || bench_series_init(&cost, "ns_per_signal", settings))
		return 1;
	/* The first repetition is to warm up. */
	err = begin(way, settings) || measure(way, settings, &cost);
	cost.count = 0;
	for (long rep = 0; !err && rep < settings->reps; rep++)
		err = measure(way, settings, &cost);
	if (!err) {
		bench_report_begin("signals", settings);
		bench_report_series(&cost);
		bench_report_counts();
		bench_report_end();
	}
	bench_series_fini(&cost);
	return err;
}
