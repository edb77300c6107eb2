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
	struct sock_filter filter[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
			 offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_io_uring_enter, 0, 3),
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
			 offsetof(struct seccomp_data, args[3])),
		BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, IORING_ENTER_NO_IOWAIT, 1,
			 0),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = {
		.len = sizeof(filter) / sizeof(filter[0]),
		.filter = filter,
	};

	CHECK_EQ(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0);
	if (syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program))
		SKIP("can't install a seccomp filter: %s", strerror(errno));
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
