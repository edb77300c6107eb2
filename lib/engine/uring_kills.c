/* SPDX-License-Identifier: MIT */
/*
 * A seccomp filter may end the process at a call instead of making the call fail; this
 * is the default action of systemd's SystemCallFilter=. No interface shows in advance
 * what a filter does. So a child makes io_uring's calls (base/trial.h), and such a
 * filter ends only the child. Any thread.
 *
 * A thread's filters are never removed. So if a thread has as many filters as at its
 * last trial, it has the same filters. Two threads with equally many filters may have
 * different ones, so each thread keeps its own result. A result from when the process
 * had one thread is valid for all later threads with the same number of filters,
 * because each thread inherits its creator's filters.
 */
#include "uring_kills.h"

#include <fcntl.h>
#include <linux/io_uring.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>

#include "lib/base/status.h"
#include "lib/base/syscall.h"
#include "lib/base/trial.h"

enum { NOT_TRIED, SURVIVES, KILLS };

/*
 * A number of filters and the result of their trial, in one word: a reader always gets
 * both from the same trial.
 */
#define LEARNED(filters, what)	((uint32_t)(filters) << 2 | (what))
static _Thread_local uint32_t learned_here;
static _Atomic uint32_t learned_alone;

struct filters {
	bool any;
	int count;		/* -1: unknown, on Linux before 5.9 */
	bool alone;		/* the process has no other thread */
};

/*
 * Read /proc instead of calling prctl(PR_GET_SECCOMP), at which a filter may end the
 * process, too.
 */
static struct filters filters_here(void)
{
	struct status_value values[] = { { .name = "Seccomp:" },
					 { .name = "Seccomp_filters:" },
					 { .name = "Threads:" } };
	const char *mode = values[0].text, *count = values[1].text;
	long fd = raw_syscall(SYS_openat, (uint64_t)AT_FDCWD,
			      PTR("/proc/thread-self/status"),
			      O_RDONLY | O_CLOEXEC, 0, 0, 0);
	bool any = false;

	if (fd >= 0) {
		any = flexsc__status_read((int)fd, SYS_read, values, 3);
		raw_syscall(SYS_close, (uint64_t)fd, 0, 0, 0, 0, 0);
	}
	/*
	 * Without /proc, assume a filter. A kernel without seccomp has no
	 * "Seccomp:" line.
	 */
	return (struct filters){
		.any = !any || atoi(mode) == 2,
		.count = *count ? atoi(count) : -1,
		.alone = atoi(values[2].text) == 1,
	};
}

bool flexsc__is_filtered(void)
{
	return filters_here().any;
}

/*
 * Runs in the child. The arguments are invalid, but the kernel runs the filter before
 * it checks them.
 */
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

static unsigned int known(const struct filters *here)
{
	const uint32_t results[] = {
		learned_here,
		atomic_load_explicit(&learned_alone, memory_order_relaxed),
	};

	for (unsigned int i = 0; i < 2 && here->count >= 0; i++)
		if (results[i] >> 2 == (uint32_t)here->count)
			return results[i] & 3;
	return NOT_TRIED;
}

static void learn(const struct filters *here, unsigned int what)
{
	if (here->alone)
		atomic_store_explicit(&learned_alone,
				      LEARNED(here->count, what),
				      memory_order_relaxed);
	else
		learned_here = LEARNED(here->count, what);
}

bool flexsc__uring_kills(void)
{
	const struct filters here = filters_here();
	unsigned int what;
	int tried;

	if (!here.any)
		return false;
	what = known(&here);
	if (what != NOT_TRIED)
		return what == KILLS;
	tried = flexsc__trial(try_calls, NULL);
	/*
	 * No trial was possible: creating the real ring will show whether the calls
	 * are allowed.
	 */
	if (tried == TRIAL_NOT_MADE)
		return false;
	learn(&here, tried == TRIAL_KILLED ? KILLS : SURVIVES);
	return tried == TRIAL_KILLED;
}
