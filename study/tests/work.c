/* SPDX-License-Identifier: MIT */
/*
 * Tests of the work of "flexsc study cost": its units are executed, and all
 * periods are equal. A test of the clock of ticks.h: it advances; its rate
 * isn't tested.
 */
#include "study/micro/ticks.h"
#include "study/micro/work.h"
#include "tests/harness/harness.h"
#include "tests/harness/steps.h"

/*
 * What one period adds to bench_work.sum: the same in every build, on every
 * processor. If this number changes, the work has changed, and earlier figures
 * of the bench can't be compared with new ones.
 */
static const struct kind {
	const char *name;
	uint32_t period;
	/* The bounds of a unit's instructions in an optimised build. */
	uint64_t least, most;
} kinds[] = {
	{ "tree", 2576399855u, 300, 700 },
	{ "heap", 1284487459u, 100, 300 },
};
#define KINDS	(sizeof(kinds) / sizeof(kinds[0]))

#define STEPPED	32	/* units; a step takes tens of microseconds */

TEST(a_period_of_work_has_the_sum_that_it_had)
{
	for (size_t i = 0; i < KINDS; i++) {
		struct bench_work work;

		CHECK_EQ(bench_work_init(&work, kinds[i].name), 0);
		CHECK_EQ(work.period, kinds[i].period);
		for (int j = 0; j < 100; j++) {
			bench_work_run(&work, BENCH_WORK_PERIOD);
			CHECK_EQ(bench_work_check(&work), 0);
		}
		CHECK_EQ(work.units, 101 * BENCH_WORK_PERIOD);
		CHECK_EQ(work.sum, (uint32_t)(101 * kinds[i].period));
		bench_work_fini(&work);
	}
}

TEST(work_that_was_not_done_is_noticed)
{
	struct bench_work work;

	CHECK_EQ(bench_work_init(&work, "tree"), 0);
	bench_work_run(&work, BENCH_WORK_PERIOD - 1);
	CHECK_EQ(bench_work_check(&work), 1);
	bench_work_run(&work, 1);
	CHECK_EQ(bench_work_check(&work), 0);
	work.units += BENCH_WORK_PERIOD;
	CHECK_EQ(bench_work_check(&work), 1);
	bench_work_fini(&work);
	CHECK_EQ(bench_work_init(&work, "field"), 1);
}

/* The instructions of some units after some periods, and a few more. */
static uint64_t instructions(const char *name, unsigned int periods,
			     unsigned int units)
{
	int child = test_fork();

	if (!child) {
		struct bench_work work;

		CHECK_EQ(bench_work_init(&work, name), 0);
		bench_work_run(&work, periods * BENCH_WORK_PERIOD);
		steps_begin();
		bench_work_run(&work, units);
		steps_mark();
		test_leave();
	}
	return steps_of(child);
}

TEST_LIMIT(each_period_has_equal_instructions, 120)
{
	for (size_t i = 0; i < KINDS; i++) {
		const struct kind *kind = &kinds[i];
		uint64_t none = instructions(kind->name, 1, 0);
		uint64_t some = instructions(kind->name, 1, STEPPED) - none;

		/* A sanitizer adds instructions. */
		if (!SANITIZED)
			CHECK_EQ(instructions(kind->name, 2, STEPPED) - none,
				 some);
		test_note("%s: %lu instructions a unit", kind->name,
			  (unsigned long)(some / STEPPED));
#ifdef __OPTIMIZE__
		CHECK(SANITIZED || (some >= kind->least * STEPPED &&
				    some <= kind->most * STEPPED));
#endif
	}
}

TEST(the_middle_of_samples_ignores_what_disturbs)
{
	double one[] = { 7 }, few[] = { 9, 1, 2 };
	double many[] = { 26, 52, 26, 9999, 52, 26, 52, 0 };

	CHECK(bench_middle(one, 1) == 7);
	CHECK(bench_middle(few, 3) == 4);
	CHECK(bench_middle(many, 8) == 39);
}

TEST(the_clock_goes_on)
{
	uint64_t before = bench_ticks();

	CHECK(bench_ticks_per_us() > 0);
	CHECK(bench_ticks() > before);
}
