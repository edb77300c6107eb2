/* SPDX-License-Identifier: MIT */
/*
 * A seccomp filter may end the process at a call instead of making the call fail, as the
 * default action of systemd's SystemCallFilter= does. No interface shows what a filter
 * would do. So a child tries io_uring's calls (base/trial.h), and the filter ends the
 * child. Any thread. The last result is kept, with the number of filters that the
 * trying thread had.
 */
#include "uring_kills.h"

#include <fcntl.h>
#include <linux/io_uring.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>

#include "../base/status.h"
#include "../base/syscall.h"
#include "../base/trial.h"

enum { NOT_TRIED, SURVIVES, KILLS };

/* A number of filters, and the result of a trial with so many: one word, no order. */
#define LEARNED(filters, what)	((uint32_t)(filters) << 2 | (what))
static _Atomic uint32_t learned;

struct filters {
	bool any;
	int count;		/* -1: unknown, on Linux before 5.9 */
};

/* prctl(PR_GET_SECCOMP) would do as well, but a filter may end that, too. */
static struct filters filters_here(void)
{
	struct status_value values[] = { { .name = "Seccomp:" },
					 { .name = "Seccomp_filters:" } };
	const char *mode = values[0].text, *count = values[1].text;
	long fd = raw_syscall(SYS_openat, (uint64_t)AT_FDCWD,
			      PTR("/proc/thread-self/status"),
			      O_RDONLY | O_CLOEXEC, 0, 0, 0);
	bool any = false;

	if (fd >= 0) {
		any = flexsc__status_read((int)fd, values, 2);
		raw_syscall(SYS_close, (uint64_t)fd, 0, 0, 0, 0, 0);
	}
	/* Without /proc there may be a filter. Without seccomp the file shows no mode. */
	return (struct filters){
		.any = !any || atoi(mode) == 2,
		.count = *count ? atoi(count) : -1,
	};
}

bool flexsc__is_filtered(void)
{
	return filters_here().any;
}

/* In a child. The arguments are wrong, which a filter doesn't see: it acts before. */
static int try_calls(const void *arg)
{
	struct io_uring_params params = { 0 };
	long fd = raw_syscall(SYS_io_uring_setup, 1, PTR(&params), 0, 0, 0, 0);

	(void)arg;
	raw_syscall(SYS_io_uring_register, (uint64_t)fd,
		    IORING_UNREGISTER_FILES, 0, 0, 0, 0);
	raw_syscall(SYS_io_uring_enter, (uint64_t)fd, 0, 0, 0, 0, 0);
	return 0;
}

bool flexsc__uring_kills(void)
{
	const struct filters here = filters_here();
	uint32_t known = atomic_load_explicit(&learned, memory_order_relaxed);
	int tried;

	if (!here.any)
		return false;
	if (here.count >= 0 && known == LEARNED(here.count, SURVIVES))
		return false;
	if (here.count >= 0 && known == LEARNED(here.count, KILLS))
		return true;
	tried = flexsc__trial(try_calls, NULL);
	/* Then the real ring's calls show it. */
	if (tried == TRIAL_NOT_MADE)
		return false;
	atomic_store_explicit(&learned,
			      LEARNED(here.count, tried == TRIAL_KILLED ?
							  KILLS : SURVIVES),
			      memory_order_relaxed);
	return tried == TRIAL_KILLED;
}
