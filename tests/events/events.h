/* SPDX-License-Identifier: MIT */
/*
 * Shared by the tests of event control blocks. FLEXSC_ECB names the backend under
 * test. If the backend doesn't work, the tests are skipped with its own reason.
 */
#ifndef FLEXSC_TESTS_EVENTS_H
#define FLEXSC_TESTS_EVENTS_H

#include "tests/harness/harness.h"

#include <flexsc/ecb.h>

#define ALL	UINT32_MAX

static inline struct flexsc_ecb *
test_ecb_with(const struct flexsc_ecb_options *options)
{
	char why[192] = "";
	struct flexsc_ecb *ecb;
	int err = flexsc_ecb_create(&ecb, options);

	if (err == -EOPNOTSUPP) {
		flexsc_ecb_probe(getenv("FLEXSC_ECB"), why, sizeof(why));
		SKIP("%s", why);
	}
	CHECK_EQ(err, 0);
	return ecb;
}

#define NEW_ECB(...)							\
	test_ecb_with(&(struct flexsc_ecb_options){			\
		.size = sizeof(struct flexsc_ecb_options), __VA_ARGS__ })

/* An ECB that delivers all groups. */
static inline struct flexsc_ecb *test_ecb(void)
{
	struct flexsc_ecb *ecb = NEW_ECB(.events = 0);

	CHECK_EQ(flexsc_ecb_deliver(ecb, ALL), 0);
	return ecb;
}

/*
 * An ECB_TEST() has an ECB that delivers all groups, created with the options that
 * follow the test's name, and destroyed after the test. The ECB of a
 * QUIET_ECB_TEST() delivers nothing at first.
 */
#define ECB_TEST(id, ...)	ECB_TEST_LIMIT(id, 20, __VA_ARGS__)
#define ECB_TEST_LIMIT(id, seconds, ...)				\
	ECB_TEST_ENTRY(id, seconds, ecb = NEW_ECB(__VA_ARGS__);		\
		       CHECK_EQ(flexsc_ecb_deliver(ecb, ALL), 0))
#define QUIET_ECB_TEST(id, ...)						\
	ECB_TEST_ENTRY(id, 20, ecb = NEW_ECB(__VA_ARGS__))
#define ECB_TEST_ENTRY(id, seconds, make)				\
	static void with_ecb_##id(void);				\
	TEST_LIMIT(id, seconds)						\
	{								\
		make;							\
		with_ecb_##id();					\
		CHECK_EQ(flexsc_ecb_destroy(ecb), 0);			\
	}								\
	static void with_ecb_##id(void)

static struct flexsc_ecb *ecb __attribute__((unused));

static inline bool test_is_kmod(const struct flexsc_ecb *ecb)
{
	return !strcmp(flexsc_ecb_backend(ecb), "kmod");
}

/* Returns the next event. Waits for it if necessary. */
static inline struct flexsc_ecb_event test_next(struct flexsc_ecb *ecb,
						uint32_t groups)
{
	struct flexsc_ecb_event event;

	while (!flexsc_ecb_next(ecb, groups, &event))
		CHECK(flexsc_ecb_wait(ecb, groups, FLEXSC_FOREVER) >= 0);
	return event;
}

/*
 * Computes until the counter is n, without calls of the library. TSan delays a
 * handler until its thread calls a libc function.
 */
static inline void compute_until(const volatile unsigned int *counter,
				 unsigned int n)
{
	while (*counter < n)
		now_ns();
}

/* Waits until the owner is about to sleep in flexsc_ecb_wait(). Any thread. */
static inline void await_wait(struct flexsc_ecb *ecb)
{
	const struct flexsc_event_control *control = flexsc_ecb_control(ecb);

	while (!__atomic_load_n(&control->waiting, __ATOMIC_RELAXED))
		sleep_ms(1);
}

/* Checks that no event arrives within some time. */
static inline void test_none(struct flexsc_ecb *ecb, uint32_t groups)
{
	struct flexsc_ecb_event event;

	CHECK_EQ(flexsc_ecb_next(ecb, groups, &event), 0);
	sleep_ms(10);
	CHECK_EQ(flexsc_ecb_next(ecb, groups, &event), 0);
}

/* Makes this many turns of a loop that does nothing. */
static inline void test_compute(unsigned int turns)
{
	for (volatile unsigned int i = 0; i < turns; i++)
		;
}

static inline void test_pair(int fds[2])
{
	CHECK_EQ(socketpair(AF_UNIX,
			    SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fds),
		 0);
}

/* A pair whose first end is watched. Returns the event's index. */
static inline unsigned int watched_pair(int fds[2], int group)
{
	int index;

	test_pair(fds);
	index = flexsc_ecb_watch(ecb, fds[0], POLLIN, group, NULL);
	CHECK(index >= 0);
	return (unsigned int)index;
}

static inline void test_write(int fd)
{
	CHECK_EQ(write(fd, "x", 1), 1);
}

#endif /* FLEXSC_TESTS_EVENTS_H */
