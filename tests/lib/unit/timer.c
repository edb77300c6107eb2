/* SPDX-License-Identifier: MIT */
/*
 * Compares the timing wheel with a model: an array of the armed timers, which is
 * searched linearly. Time is simulated, so it can jump by nanoseconds and by
 * centuries.
 */
#include "tests/harness/harness.h"

#include "lib/loop/wheel.h"

#define TIMERS		300
#define TICK		(1ULL << WHEEL_TICK_BITS)
#define STEPS		MANY(400000)

static struct wheel wheel;
static uint64_t now;

/* A timer of the model. Its index in the array is its owner number. */
static struct armed {
	bool used;
	uint32_t timer;
	uint64_t at;		/* earliest time */
} armed[TIMERS];

static unsigned int fired;

/* A number of random magnitude: tiny ones are as frequent as huge ones. */
static uint64_t any_span(void)
{
	return test_random() >> test_random() % 64;
}

/* Advances time, but not beyond the end of 64 bits. */
static uint64_t later(uint64_t span)
{
	uint64_t at;

	return __builtin_add_overflow(now, span, &at) ? UINT64_MAX : at;
}

static void begin(uint64_t start)
{
	now = start;
	CHECK_EQ(flexsc__wheel_init(&wheel, now), 0);
}

static void arm(unsigned int i, uint64_t ns)
{
	armed[i].used = true;
	armed[i].at = later(ns);
	CHECK_EQ(flexsc__wheel_arm(&wheel, now, ns, i % 3, i, &armed[i].timer), 0);
	CHECK(armed[i].timer != TIMER_NONE);
}

static void cancel(unsigned int i)
{
	flexsc__wheel_cancel(&wheel, armed[i].timer);
	armed[i].used = false;
}

/* Removes a due timer from either list. */
static int pop(struct timer *timer)
{
	return flexsc__wheel_pop(&wheel, WHEEL_DUE_CBS, timer) ||
	       flexsc__wheel_pop(&wheel, WHEEL_DUE_DEADLINES, timer);
}

/* Returns the earliest armed timer, or TIMERS. */
static unsigned int earliest(void)
{
	unsigned int first = TIMERS;

	for (unsigned int i = 0; i < TIMERS; i++)
		if (armed[i].used &&
		    (first == TIMERS || armed[i].at < armed[first].at))
			first = i;
	return first;
}

static void check_popped(const struct timer *timer)
{
	unsigned int i = (unsigned int)timer->owner;

	CHECK(i < TIMERS && armed[i].used);
	CHECK_EQ(timer->kind, i % 3);
	if (armed[i].at > now)
		test_fail(__FILE__, __LINE__, "%llu ns early",
			  (unsigned long long)(armed[i].at - now));
	armed[i].used = false;
	fired++;
}

/* Exactly the timers that are due expire, to within a tick. */
static void advance(void)
{
	unsigned int first;
	struct timer timer;

	flexsc__wheel_advance(&wheel, now);
	while (pop(&timer))
		check_popped(&timer);
	first = earliest();
	if (first == TIMERS) {
		CHECK_EQ(wheel.armed, 0);
		CHECK(flexsc__wheel_next(&wheel, now) == UINT64_MAX);
		return;
	}
	if (armed[first].at < UINT64_MAX - TICK)
		CHECK(now < armed[first].at + TICK);
	/* A wake-up may be early, but not late. */
	CHECK(flexsc__wheel_next(&wheel, now) <= armed[first].at + TICK - now ||
	      armed[first].at > UINT64_MAX - TICK);
}

static void random_steps(uint64_t start, unsigned int n)
{
	begin(start);
	for (unsigned int step = 0; step < n; step++) {
		unsigned int i = (unsigned int)(test_random() % TIMERS);

		if (armed[i].used && test_random() % 4 == 0)
			cancel(i);
		else if (!armed[i].used)
			arm(i, any_span());
		if (test_random() % 4 == 0) {
			now = later(any_span() >> test_random() % 64);
			advance();
		}
		if (now > UINT64_MAX / 2)
			break;
	}
	for (unsigned int i = 0; i < TIMERS; i++)
		if (armed[i].used)
			cancel(i);
	CHECK_EQ(wheel.armed, 0);
	flexsc__wheel_fini(&wheel);
}

TEST_LIMIT(random_steps_agree_with_the_model, 60)
{
	unsigned int rounds = 0;

	for (unsigned int steps = 0; steps < STEPS; steps += 1000, rounds++)
		random_steps(any_span() / 2, 1000);
	test_note("%u rounds, %u timers fired", rounds, fired);
	CHECK(fired > STEPS / 20);
}

/*
 * A caller that always sleeps as long as flexsc__wheel_next() returns reaches the
 * expiry in a few rounds.
 */
TEST(sleeps_lead_to_the_expiry)
{
	struct timer timer;

	for (unsigned int round = 0; round < 10000; round++) {
		uint64_t span = any_span() >> 2;
		unsigned int rounds = 0;

		begin(any_span() >> 2);
		arm(0, span);
		while (flexsc__wheel_advance(&wheel, now), !pop(&timer)) {
			uint64_t next = flexsc__wheel_next(&wheel, now);

			CHECK(next > 0 && next != UINT64_MAX);
			now += next;
			CHECK(++rounds <= WHEEL_LEVELS + 1);
		}
		CHECK(now >= armed[0].at && now < armed[0].at + TICK);
		flexsc__wheel_fini(&wheel);
	}
}

/* Removes all timers of a due list, and returns their number. */
static unsigned int pop_in_order(uint32_t due)
{
	unsigned int n = 0;
	uint64_t last = 0;
	struct timer timer;

	for (; flexsc__wheel_pop(&wheel, due, &timer); n++) {
		CHECK_EQ(timer.kind == TIMER_CB, due == WHEEL_DUE_CBS);
		CHECK(armed[timer.owner].at + TICK > last);
		last = armed[timer.owner].at;
	}
	return n;
}

/* Timers expire in the order of their times, however far time has jumped. */
TEST(timers_fire_in_order)
{

	begin(12345678);
	for (unsigned int i = 0; i < TIMERS; i++)
		arm(i, any_span() >> 4);
	now = UINT64_MAX / 2;
	flexsc__wheel_advance(&wheel, now);
	CHECK(wheel_has_cbs(&wheel));
	CHECK_EQ(pop_in_order(WHEEL_DUE_CBS), TIMERS / 3);
	CHECK(!wheel_has_cbs(&wheel));
	CHECK_EQ(pop_in_order(WHEEL_DUE_DEADLINES), TIMERS - TIMERS / 3);
	CHECK_EQ(wheel.armed, 0);
	flexsc__wheel_fini(&wheel);
}

TEST(a_due_timer_can_be_cancelled)
{
	struct timer timer;

	begin(0);
	for (unsigned int i = 0; i < 3; i++)
		arm(i, TICK * (i + 1));
	now = TICK * 10;
	flexsc__wheel_advance(&wheel, now);
	CHECK_EQ(flexsc__wheel_next(&wheel, now), 0);
	cancel(1);
	CHECK_EQ(pop(&timer), 1);
	CHECK_EQ(timer.owner, 0);
	CHECK_EQ(pop(&timer), 1);
	CHECK_EQ(timer.owner, 2);
	CHECK_EQ(pop(&timer), 0);
	CHECK_EQ(wheel.armed, 0);
	flexsc__wheel_fini(&wheel);
}

TEST(time_without_end_never_comes)
{
	struct timer timer;

	begin(1000 * SECOND);
	arm(0, UINT64_MAX);
	arm(1, UINT64_MAX - now);
	arm(2, UINT64_MAX - now - TICK);
	now += 200ULL * 365 * 86400 * SECOND;
	flexsc__wheel_advance(&wheel, now);
	CHECK_EQ(pop(&timer), 0);
	/* At the end of the loop all timers expire. */
	flexsc__wheel_advance(&wheel, UINT64_MAX);
	for (unsigned int i = 0; i < 3; i++)
		CHECK_EQ(pop(&timer), 1);
	flexsc__wheel_fini(&wheel);
}

TEST_LIMIT(a_million_timers, 60)
{
	const unsigned int n = MANY(1000000);
	uint32_t *timers = malloc(n * sizeof(*timers));
	unsigned int popped = 0;
	struct timer timer;

	CHECK(timers);
	begin(0);
	for (unsigned int i = 0; i < n; i++)
		CHECK_EQ(flexsc__wheel_arm(&wheel, 0, test_random() % (3600 * SECOND),
				   TIMER_CB, i, &timers[i]), 0);
	for (unsigned int i = 0; i < n; i += 2)
		flexsc__wheel_cancel(&wheel, timers[i]);
	CHECK_EQ(wheel.armed, n / 2);
	for (now = 0; now <= 3601 * SECOND; now += SECOND / 4) {
		flexsc__wheel_advance(&wheel, now);
		while (pop(&timer)) {
			CHECK(timer.owner & 1);
			popped++;
		}
	}
	CHECK_EQ(popped, n / 2);
	flexsc__wheel_fini(&wheel);
	free(timers);
}
