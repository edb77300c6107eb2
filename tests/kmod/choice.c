// SPDX-License-Identifier: MIT
/*
 * Which engine a loop gets if the module is loaded, and when a loop on the module
 * makes its calls without the module: if they would bounce. Runs in a guest, as
 * root.
 */
#include <linux/seccomp.h>

#include "raw.h"
#include "system.h"

#define FORBIDDEN	"/proc/sys/kernel/io_uring_disabled"
#define WATCH		"/sys/kernel/tracing/events/raw_syscalls/sys_enter/enable"
#define BATCH		10

static uint64_t by_kmod(void)
{
	struct flexsc_stats stats;

	CHECK_EQ(flexsc_loop_stats(loop, &stats, sizeof(stats)), 0);
	return stats.by_kmod;
}

/* Makes batches of calls that a device answers, and checks the results. */
static void make_calls(int batches)
{
	static struct call calls[BATCH];
	static char bytes[BATCH];
	static int fd = -1;

	if (fd < 0)
		fd = open("/dev/zero", O_RDONLY | O_CLOEXEC);
	CHECK(fd >= 0);
	for (int i = 0; i < batches; i++) {
		for (int k = 0; k < BATCH; k++) {
			calls[k] = (struct call)CALL_INIT;
			bytes[k] = 1;
			POST(loop, &calls[k], SYS_pread64, fd, &bytes[k], 1, 0);
		}
		for (int k = 0; k < BATCH; k++) {
			CHECK_EQ(await_call(loop, &calls[k]), 1);
			CHECK_EQ(bytes[k], 0);
		}
	}
}

static void watch(bool on)
{
	CHECK_EQ(system_set(WATCH, on ? "1" : "0"), 0);
}

TEST(the_module_is_not_chosen_by_default)
{
	if (access(FORBIDDEN, W_OK))
		SKIP("this kernel can't forbid io_uring alone");
	unsetenv("FLEXSC_ENGINE");
	CHECK_EQ(system_set(FORBIDDEN, "2"), 0);
	loop = test_loop();
	CHECK_EQ(strcmp(flexsc_loop_engine(loop), "threads"), 0);
	CHECK(strstr(flexsc_loop_why(loop), "uring: "));
	test_end_loop();
	setenv("FLEXSC_ENGINE", "kmod", 1);
	loop = test_loop();
	CHECK_EQ(strcmp(flexsc_loop_engine(loop), "kmod"), 0);
	test_end_loop();
	CHECK_EQ(system_set(FORBIDDEN, "0"), 0);
}

TEST(a_check_reports_that_calls_would_bounce)
{
	char why[256] = "untouched";

	CHECK_EQ(flexsc_engine_probe("kmod", why, sizeof(why)), 0);
	CHECK_EQ(strcmp(why, ""), 0);
	watch(true);
	CHECK_EQ(flexsc_engine_probe("kmod", why, sizeof(why)), 0);
	watch(false);
	CHECK(strstr(why, "would bounce: a tracepoint"));
	CHECK(!strchr(why, '\n'));
}

TEST(a_watched_loop_spares_the_kernel)
{
	watch(true);
	loop = NEW_LOOP(.engine = "kmod");
	CHECK(strstr(flexsc_loop_why(loop), "would bounce"));
	make_calls(20);
	CHECK_EQ(by_kmod(), 0);
	CHECK_EQ(raw_shown(NULL, " bounced "), 0);
	/* From time to time the loop tries the module again, with one batch at most. */
	make_calls(80);
	usleep(1100000);
	make_calls(10);
	CHECK(raw_shown(NULL, " bounced ") > 0);
	CHECK(by_kmod() <= 3 * BATCH);
	CHECK(flexsc_loop_why(loop));
	test_end_loop();
	watch(false);
}

TEST(a_loop_spares_the_kernel_while_its_calls_bounce)
{
	uint64_t before;

	loop = NEW_LOOP(.engine = "kmod");
	make_calls(20);
	CHECK(!flexsc_loop_why(loop));
	CHECK_EQ(by_kmod(), 20 * BATCH);
	watch(true);
	make_calls(100);
	watch(false);
	CHECK(strstr(flexsc_loop_why(loop), "would bounce: a tracer, a seccomp filter, "));
	CHECK(by_kmod() <= 20 * BATCH + 5 * BATCH);
	CHECK(raw_shown(NULL, " bounced ") >= 16);
	/* The tracepoint is off by now. */
	usleep(1100000);
	before = by_kmod();
	make_calls(20);
	CHECK_EQ(by_kmod() - before, 20 * BATCH);
	CHECK(!flexsc_loop_why(loop));
	test_end_loop();
}

/* The loop finds out what watches its calls without a call that the filter forbids. */
TEST(a_loop_spares_the_kernel_under_a_filter_that_kills)
{
	static const int forbidden[] = { SYS_openat, SYS_prctl };

	loop = NEW_LOOP(.engine = "kmod");
	make_calls(20);
	CHECK_EQ(filter_install(forbidden, 2, SECCOMP_RET_KILL_PROCESS, SECCOMP_RET_ALLOW,
				0), 0);
	make_calls(100);
	CHECK(strstr(flexsc_loop_why(loop), "a seccomp filter"));
	CHECK(by_kmod() <= 20 * BATCH + 5 * BATCH);
	test_end_loop();
	/* The harness would open files. */
	test_leave();
}
