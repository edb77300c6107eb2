/* SPDX-License-Identifier: MIT */
#include "filter.h"

#include <errno.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>

#include "lib/base/futex.h"
#include "runtime/counters/run_page.h"
#include "runtime/sched/kernel_cores.h"
#include "runtime/sched/monitor.h"
#include "runtime/sched/retire.h"
#include "runtime/sched/spare.h"
#include "runtime/sched/state.h"
#include "runtime/sched/uthreads.h"
#include "own_calls.h"
#include "perform.h"
#include "strict.h"

/* A dormant runtime has no carriers. Later ones test their engine themselves. */
static unsigned int groups(void)
{
	unsigned int needed = flexsc__kernel_cores() ? OWN_CORES : 0;

	if (atomic_load(&flexsc__runtime.dormant))
		return needed;
	if (flexsc__runtime.polls)
		needed |= OWN_RINGS;
	return flexsc__runtime.module ? needed | OWN_MODULE : needed;
}

/*
 * Does the filter forbid a call that carriers need? False if the kernel refuses the
 * filter, because then nothing changes. True if no child can be created.
 */
static bool forbids(const struct filter *filter)
{
	const char *which;
	const enum verdict verdict = flexsc__own_calls_try(groups(), filter, &which);

	return verdict != PERMITS && verdict != IS_REFUSED;
}

/*
 * The highest filter number so far. uthread.filter is the number of the first filter
 * that the thread, or one that created it, installed for itself alone; 0: none.
 */
static _Atomic uint32_t numbers;

/*
 * Does another thread have a filter that "self" lacks? If so, the kernel refuses a
 * filter for all threads. The list of user threads must stay locked until the call has
 * been made: if the other thread ended first, the kernel would install the filter,
 * which hasn't been tried.
 */
static bool one_has_another(const struct uthread *self)
{
	const struct uthread *u = flexsc__uthreads_first();

	while (u && (!u->filter || u->filter == self->filter))
		u = u->all_next;
	return u;
}

static void number(struct uthread *u)
{
	flexsc__uthreads_lock();
	u->filter = atomic_fetch_add(&numbers, 1) + 1;
	flexsc__uthreads_unlock();
}

static void anchor(struct uthread *u, bool anchored)
{
	flexsc__uthreads_lock();
	/* If a filter for all threads has anchored u meanwhile, u stays anchored. */
	flexsc__anchor(u, ANCHORED_FILTER,
		    anchored || atomic_load(&flexsc__runtime.filtered));
	flexsc__uthreads_unlock();
}

/*
 * Return the other user threads to their hosts for good, and end the carriers. Runs on
 * the thread that makes spares, if there is one, because that thread has no filter.
 */
static void retire(void *self)
{
	flexsc__anchor_others(self, ANCHORED_FILTER);
	/* End the monitor first: while carriers retire, none may get an heir. */
	flexsc__monitor_end();
	flexsc__carriers_retire();
}

static void bring_all_to_hosts(struct uthread *u)
{
	atomic_store(&flexsc__runtime.filtered, true);
	if (!atomic_load(&flexsc__runtime.dormant) &&
	    !flexsc__spares_end_by(retire, u))
		retire(u);
}

/*
 * Does the kernel refuse the flags? The kernel checks the flags before it reads the
 * filter. This call passes no filter, so -EFAULT means that the flags are valid.
 */
static bool is_refused(long nr, const struct filter *filter)
{
	return nr == SYS_seccomp &&
	       raw_syscall(nr, SECCOMP_SET_MODE_FILTER, filter->flags, 0, 0, 0,
			   0) != -EFAULT;
}

static bool retires(const struct uthread *u, const struct filter *filter)
{
	return !atomic_load(&flexsc__runtime.filtered) &&
	       (filter_is_near(u) || forbids(filter));
}

/* A thread holds this lock while it installs a filter for all threads. */
static struct lock installing;

static long install_for_all(struct uthread *u, long nr, const uint64_t a[6],
			    const struct filter *filter)
{
	bool fails;
	long ret = 0;

	flexsc__uthreads_lock();
	fails = one_has_another(u) || flexsc__strict_any() || is_refused(nr, filter);
	if (fails)
		ret = flexsc__perform_plainly(nr, a);
	flexsc__uthreads_unlock();
	if (fails)
		return ret;
	if (retires(u, filter)) {
		bring_all_to_hosts(u);
		anchor(u, true);
	}
	return flexsc__perform_plainly(nr, a);
}

/*
 * Install a filter for all threads, one thread at a time. The installer may have to
 * wait until all other threads are outside the runtime, except those with "installs"
 * set, which wait for this lock. While u holds the lock, it stays inside the runtime,
 * where no handler runs: a handler could leave by siglongjmp(), and the lock would
 * never be released.
 */
static long in_turn(struct uthread *u, long nr, const uint64_t a[6],
		    const struct filter *filter)
{
	long ret;

	atomic_store(&u->installs, true);
	lock(&installing);
	ret = install_for_all(u, nr, a, filter);
	unlock(&installing);
	atomic_store(&u->installs, false);
	u->way = WAY_ON_HOST;
	return ret;
}

/*
 * The mode that the call sets, in prctl(2)'s numbering: SECCOMP_MODE_STRICT or _FILTER.
 * Any other value means that the call sets no mode.
 */
static uint64_t mode_of(long nr, const uint64_t a[6])
{
	if (nr == SYS_seccomp)
		return a[0] + SECCOMP_MODE_STRICT;
	return nr == SYS_prctl && a[0] == PR_SET_SECCOMP ? a[1] : 0;
}

static bool is_filter(long nr, const uint64_t a[6])
{
	return mode_of(nr, a) == SECCOMP_MODE_FILTER;
}

bool flexsc__filter_is_tried(long nr, const uint64_t a[6])
{
	return is_filter(nr, a) || mode_of(nr, a) == SECCOMP_MODE_STRICT;
}

static bool is_for_all(long nr, const uint64_t a[6])
{
	return nr == SYS_seccomp && is_filter(nr, a) &&
	       a[1] & SECCOMP_FILTER_FLAG_TSYNC;
}

/* Install a filter for u alone. If the kernel refuses it, u is anchored as before. */
static long install_own(struct uthread *u, long nr, const uint64_t a[6])
{
	const bool original = filter_is_near(u);
	long ret;

	anchor(u, true);
	ret = flexsc__perform_on_host(u, nr, a);
	if (ret >= 0 && !u->filter)
		number(u);
	else if (ret < 0 && !original)
		anchor(u, false);
	return ret;
}

long flexsc__filter_make(struct uthread *u, long nr, const uint64_t a[6])
{
	const struct filter filter = { a[2], nr == SYS_prctl ? 0 : a[1] };

	/*
	 * Treat the filter as one for all threads: u is the only thread in a dormant
	 * runtime, and later threads inherit it.
	 */
	if (is_for_all(nr, a) ||
	    (is_filter(nr, a) && atomic_load(&flexsc__runtime.dormant)))
		return in_turn(u, nr, a, &filter);
	if (mode_of(nr, a) == SECCOMP_MODE_STRICT)
		return flexsc__strict_enter(u, nr, a);
	if (is_filter(nr, a))
		return install_own(u, nr, a);
	return flexsc__perform_on_host(u, nr, a);
}

void flexsc__filter_forked(void)
{
	installing = (struct lock){ 0 };
}
