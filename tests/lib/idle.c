/* SPDX-License-Identifier: MIT */
/*
 * An owner that waits for calls is idle. The kernel must not count the wait as one for a
 * disk (iowait), as it does by default in io_uring_enter().
 */
#include "tests/harness/harness.h"

#include <linux/filter.h>
#include <linux/io_uring.h>
#include <linux/seccomp.h>

#ifndef IORING_FEAT_NO_IOWAIT
#define IORING_FEAT_NO_IOWAIT	(1U << 17)
#define IORING_ENTER_NO_IOWAIT	(1U << 7)
#endif

static bool kernel_has_flag(void)
{
	struct io_uring_params params = { 0 };
	long fd = syscall(SYS_io_uring_setup, 1, &params);

	CHECK(fd >= 0);
	close((int)fd);
	return params.features & IORING_FEAT_NO_IOWAIT;
}

/* Each io_uring_enter() without the flag fails, which would end the use of the ring. */
static void require_flag(void)
{
	filter_argument(SYS_io_uring_enter, 3, BPF_JSET, IORING_ENTER_NO_IOWAIT,
			SECCOMP_RET_ALLOW, SECCOMP_RET_ERRNO | EPERM);
}

TEST(a_wait_is_not_counted_as_one_for_a_disk)
{
	static const struct timespec brief = { 0, 1000000 };
	struct flexsc_loop *loop;

	if (strcmp(test_engine(), "uring") != 0)
		SKIP("only io_uring counts waits");
	if (!kernel_has_flag())
		SKIP("the kernel is older than Linux 6.15");
	require_flag();
	loop = test_loop();
	CHECK_EQ(DO(loop, SYS_nanosleep, &brief, NULL), 0);
	run_for(loop, 1);
	CHECK_EQ(strcmp(flexsc_loop_engine(loop), "uring"), 0);
	CHECK_EQ(flexsc_loop_destroy(loop), 0);
}
