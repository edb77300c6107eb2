/* SPDX-License-Identifier: MIT */
/* Times, as programs give them and are told of them. */
#define _GNU_SOURCE
#include <linux/futex.h>
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include "threads.h"

static long made(long ret)
{
	return ret < 0 ? -errno : ret;
}

/* What can't be read or isn't right, given by a thread that sleeps else. */

static void refuse_time(const struct timespec *bad, long err)
{
	uint32_t word = 0;
	struct pollfd fd = { .fd = -1 };

	CHECK_EQ(made(syscall(SYS_nanosleep, bad, NULL)), err);
	CHECK_EQ(made(syscall(SYS_clock_nanosleep, CLOCK_REALTIME,
			      TIMER_ABSTIME, bad, NULL)), err);
	CHECK_EQ(made(syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, 0, bad,
			      NULL, 0)), err);
	CHECK_EQ(made(syscall(SYS_ppoll, &fd, 1, bad, NULL, 8)), err);
}

static void *refuse_times(void *arg)
{
	const struct timespec wrong = { 0, 1000000000 }, negative = { -1, 0 };
	char *pages = arg;

	usleep(100);
	refuse_time((void *)8, -EFAULT);
	refuse_time((void *)(pages + 4096), -EFAULT);
	/* Half of it is there. */
	refuse_time((void *)(pages + 4088), -EFAULT);
	refuse_time(&wrong, -EINVAL);
	refuse_time(&negative, -EINVAL);
	CHECK_EQ(nanosleep((void *)8, NULL), -1);
	CHECK_EQ(errno, EFAULT);
	/* Where nothing is left it isn't told. */
	CHECK_EQ(nanosleep((void *)pages, (void *)8), 0);
	return arg;
}

TEST(a_time_that_is_not_there_is_refused)
{
	char *pages = mmap(NULL, 8192, PROT_READ | PROT_WRITE,
			   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	CHECK(pages != MAP_FAILED);
	CHECK_EQ(mprotect(pages + 4096, 4096, PROT_NONE), 0);
	join(start(refuse_times, pages));
	refuse_times(pages);
}

static void *refuse_clocks(void *arg)
{
	const struct timespec moment = { 0, 1 };

	CHECK_EQ(clock_nanosleep(CLOCK_THREAD_CPUTIME_ID, 0, &moment, NULL),
		 EINVAL);
	CHECK_EQ(clock_nanosleep(77, 0, &moment, NULL), EINVAL);
	CHECK_EQ(clock_nanosleep(CLOCK_BOOTTIME, 0, &moment, NULL), 0);
	return arg;
}

TEST(a_clock_that_nobody_sleeps_by_is_refused)
{
	join(start(refuse_clocks, NULL));
	refuse_clocks(NULL);
}

/* Sets of signals and handlers are given in the same way. */

static void *refuse_sets(void *arg)
{
	usleep(100);
	CHECK_EQ(made(syscall(SYS_rt_sigprocmask, SIG_BLOCK, 8, NULL, 8)),
		 -EFAULT);
	CHECK_EQ(made(syscall(SYS_rt_sigprocmask, SIG_BLOCK, NULL, 8, 8)),
		 -EFAULT);
	CHECK_EQ(made(syscall(SYS_rt_sigaction, SIGUSR1, 8, NULL, 8)),
		 -EFAULT);
	CHECK_EQ(made(syscall(SYS_rt_sigaction, SIGUSR1, NULL, 8, 8)),
		 -EFAULT);
	CHECK_EQ(pthread_sigmask(SIG_BLOCK, NULL, (void *)8), EFAULT);
	return arg;
}

TEST(a_set_that_is_not_there_is_refused)
{
	join(start(refuse_sets, NULL));
	refuse_sets(NULL);
}
