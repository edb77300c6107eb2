/* SPDX-License-Identifier: MIT */
/* How long an adaptive thread polls. Time is simulated. */
#include "tests/harness/harness.h"

#include "lib/base/patience.h"

#define MOST	50000U

static struct patience patience;

/* The thread polls in vain, sleeps, and gets work after this time. */
static void wait_of(uint64_t ns)
{
	patience_sleeps(&patience, 1000000);
	CHECK_EQ(patience.since, 1000000);
	patience_wakes(&patience, 1000000 + ns);
	CHECK_EQ(patience.since, 0);
}

TEST(long_waits_end_polling_and_short_ones_resume_it)
{
	patience_init(&patience, MOST, true);
	CHECK_EQ(patience.now, MOST);
	wait_of(MOST + 1);
	CHECK_EQ(patience.now, MOST / 2);
	for (unsigned int i = 0; i < 10; i++)
		wait_of(SECOND);
	CHECK_EQ(patience.now, 0);
	wait_of(MOST);
	CHECK_EQ(patience.now, PATIENCE_LEAST);
	wait_of(MOST);
	CHECK_EQ(patience.now, 2 * PATIENCE_LEAST);
	for (unsigned int i = 0; i < 10; i++)
		wait_of(1);
	CHECK_EQ(patience.now, MOST);
}

TEST(a_limit_below_the_shortest_time_is_kept)
{
	patience_init(&patience, 300, true);
	wait_of(1000);
	CHECK_EQ(patience.now, 0);
	wait_of(300);
	CHECK_EQ(patience.now, 300);
}

TEST(a_fixed_time_stays)
{
	patience_init(&patience, MOST, false);
	patience_sleeps(&patience, 1);
	CHECK_EQ(patience.since, 0);
	CHECK_EQ(patience.now, MOST);
}
