/* SPDX-License-Identifier: MIT */
#include "filter.h"

#include <errno.h>
#include <linux/futex.h>
#include <linux/io_uring.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/prctl.h>

#include "../run/carrier.h"
#include "../run/spare.h"
#include "../run/state.h"
#include "../run/uthreads.h"
#include "lib/base/trial.h"

#define NO_FD	((uint64_t)-2)

struct own_call {
	long nr;
	uint64_t args[6];
};

/*
 * Calls that carriers, the monitor and syscall threads need, with arguments that have
 * no effect. Those of io_uring come last.
 */
static const struct own_call own_calls[] = {
	{ SYS_futex, { 0, FUTEX_WAKE | FUTEX_PRIVATE_FLAG, 1 } },
	{ SYS_rt_sigprocmask, { SIG_BLOCK, 0, 0, 8 } },
	{ SYS_sigaltstack, { 0 } },
	{ SYS_read, { NO_FD } },
	{ SYS_write, { NO_FD } },
	{ SYS_pread64, { NO_FD } },
	{ SYS_close, { NO_FD } },
	{ SYS_fcntl, { NO_FD, 3 /* F_GETFL */ } },
	{ SYS_poll, { 0 } },
	{ SYS_epoll_create1, { NO_FD } },
	{ SYS_epoll_ctl, { NO_FD, EPOLL_CTL_DEL, NO_FD } },
	{ SYS_epoll_pwait, { NO_FD } },
	{ SYS_eventfd2, { 0, NO_FD } },
	{ SYS_timer_settime, { NO_FD } },
	{ SYS_tgkill, { NO_FD, NO_FD } },
	{ SYS_rt_tgsigqueueinfo, { NO_FD, NO_FD } },
	{ SYS_mmap, { 0 } },
	{ SYS_munmap, { 0 } },
	{ SYS_mprotect, { 0 } },
	{ SYS_madvise, { 0 } },
	{ SYS_clone3, { 0 } },
	{ SYS_clone, { CLONE_SIGHAND } },
	{ SYS_io_uring_enter, { NO_FD } },
	{ SYS_io_uring_register, { NO_FD, IORING_UNREGISTER_FILES } },
};

#define OWN_CALLS	(sizeof(own_calls) / sizeof(own_calls[0]))
#define RING_CALLS	2

struct filter {
	uint64_t program;
	uint64_t flags;
};

enum verdict { PERMITS, FORBIDS, IS_REFUSED };

static long make(const struct own_call *call)
{
	const uint64_t *a = call->args;

	return raw_syscall(call->nr, a[0], a[1], a[2], a[3], a[4], a[5]);
}

/* In a child. Its filter is for it alone, and has no listener. */
static int try_filter(const void *arg)
{
	const uint64_t kept = SECCOMP_FILTER_FLAG_SPEC_ALLOW |
			      SECCOMP_FILTER_FLAG_LOG;
	const struct filter *filter = arg;
	/* Carriers that are started later find out about io_uring by themselves. */
	const bool rings = flexsc__runtime.polls &&
			   !atomic_load(&flexsc__runtime.rests);
	const size_t n = OWN_CALLS - (rings ? 0 : RING_CALLS);
	long before[OWN_CALLS];

	for (size_t i = 0; i < n; i++)
		before[i] = make(&own_calls[i]);
	if (raw_syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER,
			filter->flags & kept, filter->program, 0, 0, 0))
		return IS_REFUSED;
	for (size_t i = 0; i < n; i++)
		if (make(&own_calls[i]) != before[i])
			return FORBIDS;
	return PERMITS;
}

/* The kernel refuses a filter without changing anything. */
static bool forbids(const struct filter *filter)
{
	const int ret = flexsc__trial(try_filter, filter);

	return ret != PERMITS && ret != IS_REFUSED;
}

static void tie(struct uthread *u)
{
	flexsc__uthreads_lock();
	flexsc__tie(u, TIED_FILTER, true);
	flexsc__uthreads_unlock();
}

/* No carrier gets anything to do from here on. */
static void bring_all_home(struct uthread *u)
{
	atomic_store(&flexsc__runtime.filtered, true);
	flexsc__tie_others(u, TIED_FILTER);
	/* So there is no carrier that the retiring misses. */
	flexsc__spares_end();
	flexsc__carriers_retire();
}

void flexsc__filter_comes(struct uthread *u, long nr, const uint64_t a[6])
{
	const bool by_prctl = nr == SYS_prctl && a[0] == PR_SET_SECCOMP;
	const bool by_seccomp = nr == SYS_seccomp &&
				a[0] == SECCOMP_SET_MODE_FILTER;
	const struct filter filter = { a[2], by_prctl ? 0 : a[1] };
	/* At rest, threads that are made later are all that there will be. */
	const bool is_all = filter.flags & SECCOMP_FILTER_FLAG_TSYNC ||
			    atomic_load(&flexsc__runtime.rests);

	if (!(by_prctl ? a[1] == SECCOMP_MODE_FILTER : by_seccomp)) {
		/* The strict mode is for the calling thread alone. */
		if (by_prctl ||
		    (nr == SYS_seccomp && a[0] == SECCOMP_SET_MODE_STRICT))
			tie(u);
		return;
	}
	if (is_all && !forbids(&filter))
		return;
	if (is_all)
		bring_all_home(u);
	tie(u);
}
