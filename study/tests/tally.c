/* SPDX-License-Identifier: MIT */
/*
 * flexsc study --raw load rate=N: the times when requests are due, and the
 * statistics of how they end.
 */
#include <math.h>

#include "tests/harness/harness.h"
#include "study/load/arrivals.h"
#include "study/load/tally.h"

#define SECOND	1000000000ULL

/* Store the times of all arrivals in "due"; "count" is their number. */
static void arrive(struct bench_arrivals *arrivals, uint64_t *due,
		   uint64_t count)
{
	for (uint64_t i = 0; i < count; i++) {
		due[i] = bench_arrivals_due(arrivals);
		CHECK(due[i] >= (i ? due[i - 1] : arrivals->begin));
		bench_arrivals_pass(arrivals);
	}
	CHECK_EQ(bench_arrivals_due(arrivals), UINT64_MAX);
}

TEST(even_arrivals_do_not_drift)
{
	static uint64_t due[3001];
	struct bench_arrivals arrivals;

	bench_arrivals_init(&arrivals, 3000, 3001, false, 1);
	arrivals.begin = 7 * SECOND;
	arrive(&arrivals, due, 3001);
	CHECK_EQ(due[0], 7 * SECOND);
	CHECK_EQ(due[1], 7 * SECOND + 333333);
	CHECK_EQ(due[2], 7 * SECOND + 666666);
	CHECK_EQ(due[3], 7 * SECOND + 1000000);
	CHECK_EQ(due[3000], 8 * SECOND);
}

/* The gaps have the rate's mean, and a standard deviation equal to it. */
TEST(poisson_arrivals_are_exponential)
{
	static uint64_t due[100000];
	struct bench_arrivals arrivals;
	double sum = 0, squares = 0, n = 99999;
	uint64_t longer = 0;

	bench_arrivals_init(&arrivals, 1000, 100000, true, 1);
	arrive(&arrivals, due, 100000);
	for (int i = 1; i < 100000; i++) {
		double gap = (double)(due[i] - due[i - 1]) / 1e6;

		sum += gap;
		squares += gap * gap;
		longer += gap > 1;
	}
	CHECK(fabs(sum / n - 1) < 0.02);
	CHECK(fabs(sqrt(squares / n - sum / n * sum / n) - 1) < 0.03);
	CHECK(fabs((double)longer / n - exp(-1)) < 0.01);
}

TEST(a_seed_repeats_its_arrivals_and_another_does_not)
{
	static uint64_t first[1000], again[1000], other[1000];
	struct bench_arrivals arrivals;
	unsigned int equal = 0;

	bench_arrivals_init(&arrivals, 1000, 1000, true, 1);
	arrive(&arrivals, first, 1000);
	bench_arrivals_init(&arrivals, 1000, 1000, true, 1);
	arrive(&arrivals, again, 1000);
	bench_arrivals_init(&arrivals, 1000, 1000, true, 2);
	arrive(&arrivals, other, 1000);
	for (int i = 1; i < 1000; i++) {
		CHECK_EQ(first[i], again[i]);
		equal += first[i] == other[i];
	}
	CHECK(equal < 10);
}

/* The threads' shares together are all arrivals, each at its due time. */
TEST(threads_share_the_arrivals)
{
	static uint64_t all[1000];
	struct bench_arrivals arrivals;

	bench_arrivals_init(&arrivals, 1000, 1000, true, 1);
	arrive(&arrivals, all, 1000);
	for (uint64_t thread = 0; thread < 3; thread++) {
		bench_arrivals_init(&arrivals, 1000, 1000, true, 1);
		bench_arrivals_share(&arrivals, thread, 3);
		for (uint64_t i = thread; i < 1000; i += 3) {
			CHECK_EQ(arrivals.made, i);
			CHECK_EQ(bench_arrivals_due(&arrivals), all[i]);
			bench_arrivals_pass(&arrivals);
		}
		CHECK_EQ(bench_arrivals_due(&arrivals), UINT64_MAX);
	}
}

static struct bench_tally tally = {
	.from = 10 * SECOND, .until = 12 * SECOND,
};

/* 100 requests, 10 ms apart, each of which ends after this time. */
static void end_all(enum bench_end end, uint64_t after)
{
	for (uint64_t i = 0; i < 100; i++) {
		uint64_t due = 10 * SECOND + i * (SECOND / 100);

		bench_tally_end(&tally, due, due + after, end);
	}
}

TEST(every_request_is_counted_once)
{
	for (int end = 0; end < BENCH_ENDS; end++)
		end_all((enum bench_end)end, SECOND / 10);
	bench_tally_end(&tally, 10 * SECOND - 1, 11 * SECOND, BENCH_ANSWERED);
	CHECK_EQ(bench_tally_offered(&tally), 100 * BENCH_ENDS);
	for (int end = 0; end < BENCH_ENDS; end++)
		CHECK_EQ(tally.ends[end], 100);
	CHECK_EQ(tally.warm_up, 1);
	CHECK_EQ(tally.response.histogram.total, 100);
	CHECK_EQ(tally.response.max, SECOND / 10);
	CHECK(bench_times_mean(&tally.response) == 1e8);
}

TEST(the_response_rate_is_over_the_time_that_answers_took)
{
	end_all(BENCH_ANSWERED, SECOND);
	/*
	 * All answers came within the arrivals' two seconds, the last one after
	 * 1.99.
	 */
	CHECK(bench_tally_response_rate(&tally) == 50);
	CHECK(bench_tally_goodput(&tally) == 50);
	end_all(BENCH_ANSWERED, 4 * SECOND + SECOND / 100);
	/* The last answer came five seconds after the first request was due. */
	CHECK(bench_tally_response_rate(&tally) == 40);
	CHECK(bench_tally_goodput(&tally) == 100);
}

/* Answers between 10 and 12 s are counted, whenever their requests were due. */
TEST(answers_behind_the_end_are_none_of_the_run_s_seconds)
{
	static struct bench_tally half, other;

	half.from = 10 * SECOND;
	half.until = 12 * SECOND;
	bench_tally_answered(&half, 10 * SECOND - 1, 1000);
	bench_tally_answered(&half, 10 * SECOND, 100);
	bench_tally_answered(&half, 12 * SECOND, 10);
	bench_tally_answered(&half, 12 * SECOND + 1, 1000);
	CHECK_EQ(half.within, 2);
	CHECK_EQ(half.within_bytes, 110);
	CHECK(bench_tally_answer_rate(&half) == 1);
	CHECK(bench_tally_answer_rate(&other) == 0);
	other.within = 4;
	other.spun = 7;
	bench_tally_merge(&half, &other);
	CHECK(bench_tally_answer_rate(&half) == 3);
	CHECK_EQ(half.spun, 7);
}

TEST(threads_tallies_are_added_up)
{
	static struct bench_tally other = { .until = 13 * SECOND };

	end_all(BENCH_ANSWERED, SECOND);
	other.from = tally.from;
	bench_tally_end(&other, 11 * SECOND, 16 * SECOND, BENCH_ANSWERED);
	bench_tally_end(&other, 11 * SECOND, 12 * SECOND, BENCH_BODY);
	bench_tally_merge(&tally, &other);
	CHECK_EQ(bench_tally_offered(&tally), 102);
	CHECK_EQ(tally.ends[BENCH_ANSWERED], 101);
	CHECK_EQ(tally.until, 13 * SECOND);
	CHECK_EQ(tally.last, 16 * SECOND);
	CHECK_EQ(tally.response.max, 5 * SECOND);
	CHECK_EQ(tally.response.histogram.total, 101);
}
