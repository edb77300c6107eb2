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

static void times_merge(struct bench_times *into, const struct bench_times *from)
{
	bench_histogram_merge(&into->histogram, &from->histogram);
	into->sum += from->sum;
	if (from->max > into->max)
		into->max = from->max;
}

double bench_times_mean(const struct bench_times *times)
{
	uint64_t total = times->histogram.total;

	return total ? times->sum / (double)total : 0;
}

void bench_tally_answered(struct bench_tally *tally, uint64_t now,
			  size_t bytes)
{
	if (now < tally->from || now > tally->until)
		return;
	tally->within++;
	tally->within_bytes += bytes;
}

double bench_times_at(const struct bench_times *times, double share)
{
	double at = bench_histogram_at(&times->histogram, share);

	return at < (double)times->max ? at : (double)times->max;
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

void bench_tally_merge(struct bench_tally *into, const struct bench_tally *from)
{
	if (from->last > into->last)
		into->last = from->last;
	if (from->until > into->until)
		into->until = from->until;
	into->warm_up += from->warm_up;
	for (int i = 0; i < BENCH_ENDS; i++)
		into->ends[i] += from->ends[i];
	into->bytes += from->bytes;
	into->within += from->within;
	into->within_bytes += from->within_bytes;
	into->spun += from->spun;
	times_merge(&into->connect, &from->connect);
	times_merge(&into->response, &from->response);
	times_merge(&into->behind, &from->behind);
	times_merge(&into->exchange, &from->exchange);
	into->begun += from->begun;
	into->done += from->done;
	into->failed += from->failed;
	into->unasked += from->unasked;
	into->lost += from->lost;
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

double bench_tally_answer_rate(const struct bench_tally *tally)
{
	uint64_t length = tally->until - tally->from;

	return length ? (double)tally->within * SECOND / (double)length : 0;
}
