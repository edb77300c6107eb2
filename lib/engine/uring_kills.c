/* SPDX-License-Identifier: MIT */
/*
 * A seccomp filter may end the process at a call instead of letting the call
 * fail. The default action of systemd's SystemCallFilter= does so. No interface
 * shows what a filter would do, so a child tries io_uring's calls: the filter
 * then ends the child. Any thread; what was learned is kept for the number of
 * filters that it was learned with.
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

/* The number of filters, and what was learned with so many. */
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
	/* Without /proc there may be a filter; a kernel that has none shows no mode. */
	return (struct filters){
		.any = !any || atoi(mode) == 2,
		.count = *count ? atoi(count) : -1,
	};
}

bool flexsc__is_filtered(void)
{
	return filters_here().any;
}

/* In a child: their arguments are wrong, and a filter acts before the kernel looks. */
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
	/* The calls of the real ring decide, this time. */
	if (tried == TRIAL_NOT_MADE)
		return false;
	atomic_store_explicit(&learned,
			      LEARNED(here.count, tried == TRIAL_KILLED ?
							  KILLS : SURVIVES),
			      memory_order_relaxed);
	return tried == TRIAL_KILLED;
}
