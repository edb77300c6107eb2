// SPDX-License-Identifier: MIT
/*
 * What a process may do to the kernel module on purpose, each thing by itself.
 * Nothing here has a result that matters: the kernel has to survive, and not to
 * complain. Runs in a guest, as root.
 */
#include "raw.h"

/* Make so many registrations wait inside of one another. */
TEST(waits_dont_nest)
{
	enum { COUNT = 200 };
	static struct raw raws[COUNT];

	for (int i = COUNT - 1; i >= 0; i--) {
		raw_open(&raws[i], 1, 0);
		if (i < COUNT - 1)
			raw_post(&raws[i], 0, 0, SYS_ioctl,
				 (uint64_t)raws[i + 1].fd, FLEXSC_IOC_WAIT, 0);
		raws[i].shared->timeout = 0;
	}
	CHECK_EQ(raw_wait(&raws[0], 0), 0);
	CHECK_EQ(raw_reap(&raws[0]), 1);
	CHECK_EQ(raws[0].entries[0].ret, -ELOOP);
	for (int i = 0; i < COUNT; i++)
		raw_close(&raws[i]);
}

TEST(a_wait_is_no_place_to_serve)
{
	struct flexsc_serve serve = { .index = FLEXSC_NO_ENTRY };
	struct raw raw;

	raw_open(&raw, 1, 0);
	raw_post(&raw, 0, 0, SYS_ioctl, (uint64_t)raw.fd, FLEXSC_IOC_SERVE,
		 (uint64_t)&serve);
	CHECK_EQ(raw_wait(&raw, 0), 0);
	CHECK_EQ(raw.entries[0].ret, -ELOOP);
	raw_close(&raw);
}

/* With a single thread, whose descriptors the kernel may borrow. */
TEST(a_registration_closes_itself)
{
	int closed = 0;

	for (int round = 0; round < 100; round++) {
		struct raw raw;

		raw_open(&raw, 1, 0);
		raw_post(&raw, 0, 0, SYS_munmap, (uint64_t)raw.shared,
			 raw.args.area, 0);
		raw_post(&raw, 1, 0, SYS_close, (uint64_t)raw.fd, 0, 0);
		for (uint32_t i = 2; i < FLEXSC_PAGE_ENTRIES; i++)
			raw_post(&raw, i, 0, SYS_getppid, 0, 0, 0);
		raw.shared->timeout = 0;
		CHECK(ioctl(raw.fd, FLEXSC_IOC_WAIT, 0) >= 0);
		/* Unless the wait was cut short. */
		closed += close(raw.fd) == -1;
	}
	CHECK(closed > 50);
}
