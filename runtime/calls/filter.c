/* SPDX-License-Identifier: MIT */
#include "filter.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <linux/io_uring.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>

#include "lib/base/futex.h"
#include "lib/base/sigaction.h"
#include "lib/base/trial.h"
#include "runtime/counters/run_page.h"
#include "runtime/sched/monitor.h"
#include "runtime/sched/retire.h"
#include "runtime/sched/spare.h"
#include "runtime/sched/state.h"
#include "runtime/sched/uthreads.h"
#include "perform.h"
#include "strict.h"

/* an invalid id: of a descriptor, process, clock or signal */
#define NO_ID	((uint64_t)-2)

/* Which carriers make a call. */
enum user { BY_ALL, WITH_RINGS, WITH_MODULE };

struct own_call {
	enum user user;
	long nr;
	uint64_t args[6];
};

static const struct own_call own_calls[] = {
#define OWN_CALL(name, ...)	{ BY_ALL, SYS_##name, { __VA_ARGS__ } },
#define RING_CALL(name, ...)	{ WITH_RINGS, SYS_##name, { __VA_ARGS__ } },
#define MODULE_CALL(name, ...)	{ WITH_MODULE, SYS_##name, { __VA_ARGS__ } },
#include "own_calls.def"
#undef OWN_CALL
#undef RING_CALL
#undef MODULE_CALL
};

enum { OWN_CALLS = sizeof(own_calls) / sizeof(own_calls[0]) };

struct filter {
	uint64_t program;
	uint64_t flags;
};

enum verdict { PERMITS, FORBIDS, IS_REFUSED };

static bool is_needed(const struct own_call *call)
{
	/* A dormant runtime has no carriers. Later ones test their engine themselves. */
	if (call->user != BY_ALL && atomic_load(&flexsc__runtime.dormant))
		return false;
	return call->user == BY_ALL ||
	       (call->user == WITH_RINGS ? flexsc__runtime.polls :
					   flexsc__runtime.module);
}

static long make(const struct own_call *call)
{
	const uint64_t *a = call->args;

	return raw_syscall(call->nr, a[0], a[1], a[2], a[3], a[4], a[5]);
}

static void ignore(int signo)
{
	(void)signo;
}

static void prepare_signal(void)
{
	extern void flexsc__cancel_restorer(void);
	const struct kernel_sigaction action = {
		.handler = (uintptr_t)ignore,
		.flags = SA_RESTORER,
		.restorer = (uintptr_t)flexsc__cancel_restorer,
	};
	const sigmask_t others = ~SIGNAL_BIT(SIGUSR1);

	kernel_sigaction(SIGUSR1, &action, NULL);
	raw_syscall(SYS_rt_sigprocmask, SIG_SETMASK, PTR(&others), 0,
		    sizeof(others), 0, 0);
}

/*
 * Try rt_sigreturn(2). The call needs the frame of a signal, so send a signal whose
 * handler ends by rt_sigreturn(2). If the filter forbids the call, the child dies.
 */
static void signal_itself(void)
{
	raw_syscall(SYS_tgkill,
		    (uint64_t)raw_syscall(SYS_getpid, 0, 0, 0, 0, 0, 0),
		    (uint64_t)raw_syscall(SYS_gettid, 0, 0, 0, 0, 0, 0), SIGUSR1,
		    0, 0, 0);
}

/*
 * Test the filter in a child process. The filter is installed without
 * SECCOMP_FILTER_FLAG_NEW_LISTENER. So calls that the filter would pass to a listener
 * fail, and count as forbidden.
 */
static int try_filter(const void *arg)
{
	const uint64_t kept = SECCOMP_FILTER_FLAG_SPEC_ALLOW |
			      SECCOMP_FILTER_FLAG_LOG;
	const struct filter *filter = arg;
	long before[OWN_CALLS];

	for (size_t i = 0; i < OWN_CALLS; i++)
		before[i] = is_needed(&own_calls[i]) ? make(&own_calls[i]) : 0;
	prepare_signal();
	if (raw_syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER,
			filter->flags & kept, filter->program, 0, 0, 0))
		return IS_REFUSED;
	for (size_t i = 0; i < OWN_CALLS; i++)
		if (is_needed(&own_calls[i]) && make(&own_calls[i]) != before[i])
			return FORBIDS;
	signal_itself();
	return PERMITS;
}

/*
 * Does the filter forbid a call that carriers need? False if the kernel refuses the
 * filter, because then nothing changes. True if no child can be created.
 */
static bool forbids(const struct filter *filter)
{
	const int ret = flexsc__trial(try_filter, filter);

	return ret != PERMITS && ret != IS_REFUSED;
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
