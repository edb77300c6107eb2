/* SPDX-License-Identifier: MIT */
/*
 * Many events of many descriptors: none is lost, and none arrives twice. Another
 * thread writes to each descriptor once per round, in a different order in each
 * round, while the owner takes events.
 *
 *	events-many [events=N] [descriptors=N]
 */
#include "events.h"

static unsigned long descriptors, rounds;
static int *fds;
static atomic_ulong taken;

/* Primes above any number of descriptors: each one makes a different order. */
static const unsigned long strides[] = { 1048583, 1299709, 1500007, 15485863 };

static void *write_rounds(void *arg)
{
	for (unsigned long round = 0; round < rounds; round++) {
		unsigned long stride = strides[round % 4];

		for (unsigned long i = 0; i < descriptors; i++)
			CHECK_EQ(eventfd_write(fds[i * stride % descriptors],
					       round + 1), 0);
		while (atomic_load(&taken) < (round + 1) * descriptors)
			sleep_ms(1);
	}
	return arg;
}

static void have_descriptors(unsigned long n)
{
	struct rlimit limit;

	CHECK_EQ(getrlimit(RLIMIT_NOFILE, &limit), 0);
	limit.rlim_cur = n;
	if (limit.rlim_max < n)
		limit.rlim_max = n;
	if (setrlimit(RLIMIT_NOFILE, &limit))
		SKIP("%lu descriptors are more than RLIMIT_NOFILE allows", n);
}

static void watch_all(struct flexsc_ecb *ecb)
{
	struct flexsc_ecb_event event;

	fds = calloc(descriptors, sizeof(*fds));
	CHECK(fds);
	for (unsigned long i = 0; i < descriptors; i++) {
		fds[i] = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
		CHECK(fds[i] >= 0);
		CHECK(flexsc_ecb_watch(ecb, fds[i], POLLIN, (int)i % 32,
				       &fds[i]) >= 0);
	}
	CHECK_EQ(flexsc_ecb_next(ecb, ALL, &event), 0);
}

TEST_LIMIT(each_event_of_many_comes_once, 120)
{
	struct flexsc_ecb_event event;
	struct flexsc_ecb *ecb;
	unsigned long all;
	pthread_t writer;
	eventfd_t value;

	descriptors = test_parameter("descriptors", 10000);
	rounds = test_parameter("events", 200000) / descriptors;
	CHECK(rounds);
	all = rounds * descriptors;
	have_descriptors(descriptors + 100);
	ecb = NEW_ECB(.events = (uint32_t)descriptors);
	CHECK_EQ(flexsc_ecb_deliver(ecb, ALL), 0);
	watch_all(ecb);
	writer = test_thread(write_rounds, NULL);
	for (unsigned long n = 0; n < all; n++) {
		event = test_next(ecb, ALL);
		CHECK_EQ(eventfd_read(event.fd, &value), 0);
		/*
		 * Each round writes its own number. Another number shows a lost
		 * event.
		 */
		CHECK_EQ(value, n / descriptors + 1);
		CHECK_EQ(*(int *)event.data, event.fd);
		atomic_store(&taken, n + 1);
	}
	CHECK_EQ(pthread_join(writer, NULL), 0);
	test_none(ecb, ALL);
	CHECK_EQ(flexsc_ecb_destroy(ecb), 0);
}
