/* SPDX-License-Identifier: MIT */
#include "tally.h"

#define SECOND	1e9

void bench_times_add(struct bench_times *times, uint64_t ns)
{
	bench_histogram_add(&times->histogram, ns);
	times->sum += (double)ns;
	if (ns > times->max)
		times->max = ns;
}

double bench_times_mean(const struct bench_times *times)
{
	uint64_t total = times->histogram.total;

	return total ? times->sum / (double)total : 0;
}

void bench_tally_end(struct bench_tally *tally, uint64_t due, uint64_t now,
		     enum bench_end end)
{
	if (due < tally->from) {
		tally->warm_up++;
		return;
	}
	tally->ends[end]++;
	if (end != BENCH_ANSWERED)
		return;
	bench_times_add(&tally->response, now - due);
	if (now > tally->last)
		tally->last = now;
}

uint64_t bench_tally_offered(const struct bench_tally *tally)
{
	uint64_t sum = 0;

	for (int i = 0; i < BENCH_ENDS; i++)
		sum += tally->ends[i];
	return sum;
}

static double rate(const struct bench_tally *tally, uint64_t until)
{
	return (double)tally->ends[BENCH_ANSWERED] * SECOND /
	       (double)(until - tally->from);
}

double bench_tally_response_rate(const struct bench_tally *tally)
{
	return rate(tally, tally->last > tally->until ? tally->last :
							tally->until);
}

double bench_tally_goodput(const struct bench_tally *tally)
{
	return rate(tally, tally->until);
}
