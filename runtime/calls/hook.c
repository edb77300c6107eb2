/* SPDX-License-Identifier: MIT */
#include "hook.h"

#include <errno.h>
#include <linux/flexsc.h>
#include <sys/wait.h>

#include "lib/calls/call_info.h"
#include "lib/files/effects.h"
#include "lib/files/fds.h"
#include "runtime/sched/carrier.h"
#include "runtime/sched/count.h"
#include "runtime/sched/exit.h"
#include "runtime/sched/host.h"
#include "runtime/sched/thread_count.h"
#include "runtime/sched/state.h"
#include "runtime/sched/sticky.h"
#include "runtime/sched/wait.h"
#include "runtime/signals/actions.h"
#include "runtime/signals/signals.h"
#include "affinity.h"
#include "calls.h"
#include "cpuclock.h"
#include "descriptors.h"
#include "life.h"
#include "loop_calls.h"
#include "perform.h"
#include "polling.h"
#include "strict.h"
#include "ufutex.h"

/*
 * A user thread that makes calls without waiting lets other user threads run after
 * SLICE_TICKS of the processor's ticks, about 1 ms. It checks the time once in
 * SLICE_CALLS calls.
 */
#define SLICE_TICKS	2500000U
#define SLICE_CALLS	16U

/* For rare cases: not inlined, so that the native path saves few registers. */
#define RARE		__attribute__((noinline))

/*
 * Is the caller a child of vfork() or posix_spawn()? Such a child has the user thread's
 * memory, but its own descriptors. So what it does to descriptors must not be noted,
 * and its calls must leave no trace in the user thread.
 */
static bool in_child(struct uthread *u)
{
	if (!u->forks)
		return false;
	if (runtime_is_lent())
		return true;
	/*
	 * The caller is the parent, in which u->forks stays set until the function that
	 * creates the child has ended, because posix_spawn() makes calls in the parent
	 * before there is a child.
	 */
	if (u->forks == FORKS_NOW && !flexsc__stay_goes_on(u))
		u->forks = FORKS_NOT;
	return false;
}

static long dispatch_plain(struct uthread *u, const struct call_info *row, long nr,
		     const uint64_t a[6])
{
	const struct flexsc_entry entry = {
		.nr = (__u16)nr,
		.args = { a[0], a[1], a[2], a[3], a[4], a[5] },
	};
	struct fds_call call = {
		.row = row,
		.variant = call_variant_of(row, (const __u64 *)a),
		.entry = &entry,
	};
	long ret;

	if (!flexsc__descriptors_begin(&call))
		return -EBADF;
	ret = row->closes == CLOSES_RANGE ?
		      flexsc__descriptors_close_range(u, nr, &entry) :
		      flexsc__dispatch(u, nr, &entry);
	if (ret < 0)
		flexsc__raise_error(u, row, a, ret);
	flexsc__descriptors_end(&call, ret);
	return ret;
}

/*
 * Send a signal to a thread. If the target is the calling thread, the signal arrives
 * before the function returns.
 */
static long send_signal(struct uthread *u, long nr, const uint64_t a[6])
{
	const uint64_t *to = &a[nr != SYS_tkill];
	int32_t tid = (int32_t)to[0];
	long ret;

	/* A thread can send some siginfos only to itself: the host makes the call. */
	if (tid == u->host.k.tid || nr == SYS_rt_tgsigqueueinfo)
		ret = flexsc__perform_go_to_host(u, nr, a);
	else
		ret = flexsc__perform_plainly(nr, a);
	if (!ret && tid != u->host.k.tid)
		flexsc__signal_sent(tid, (int)to[1]);
	return ret;
}

/*
 * syscall(SYS_exit) ends the calling thread alone, and libc still counts that thread.
 * Natively the process ends with its last kernel thread, but here the runtime's threads
 * would be left. So this function decrements libc's count, and the last thread that is
 * counted ends the process.
 *
 * A thread that libc itself ends may come here, too, from a patched place (glibc 2.43).
 * Such a thread has already left the list of user threads and libc's count. A thread in
 * a destructor of thread-specific data has left the list, but not the count.
 */
static long end_thread(struct uthread *u, const uint64_t a[6])
{
	/*
	 * Test u->site first: in a thread that libc ends, a filter may forbid getpid(),
	 * which runtime_is_lent() calls.
	 */
	if ((u->site && !u->listed) || runtime_is_lent())
		return flexsc__perform_plainly(SYS_exit, a);
	/* flexsc__life_end() would do so for a thread that is listed. */
	if (!u->listed)
		flexsc__strict_count_ended();
	flexsc__exit(u);
	flexsc__life_end(u);
	flexsc__count_program_ends_by_call((uint32_t)a[0]);
	return flexsc__perform_plainly(SYS_exit, a);
}

static long dispatch_special(struct uthread *u, long nr, const uint64_t a[6])
{
	const struct call_info *row = flexsc__call_info((unsigned int)nr);

	switch ((enum call_user)row->user) {
	case USER_FUTEX:
		return flexsc__ufutex(u, a);
	case USER_FUTEX2:
		return flexsc__futex2(u, nr, a);
	case USER_SIGACTION:
		return flexsc__signal_action(a);
	case USER_RSEQ:
		/*
		 * Refuse rseq(2): the kernel would also write to u's area while u's
		 * kernel thread runs other user threads.
		 */
		return -ENOSYS;
	case USER_SIGMASK:
		return flexsc__sigmask(u, a);
	case USER_GETTID:
		u->way = WAY_ANSWERED;
		return u->host.k.tid;
	case USER_KILL:
		return send_signal(u, nr, a);
	case USER_CPUCLOCK:
		return flexsc__cpuclock_get(u, a);
	case USER_USAGE:
		return flexsc__cpuclock_usage(u, a);
	case USER_TIMER:
		flexsc__cpuclock_anchor(u, (clockid_t)a[0]);
		return dispatch_plain(u, row, nr, a);
	case USER_YIELD:
		flexsc__wait_yield(u);
		return 0;
	case USER_NANOSLEEP:
		return flexsc__sleep_nanosleep(u, nr, a);
	case USER_CLOCK_SLEEP:
		return flexsc__sleep_clock(u, nr, a);
	case USER_POLL:
		return flexsc__polling(u, nr, a);
	case USER_HOST:
		if (call_awaits_any(nr, a))
			sticky_needs_host(u);
		return flexsc__perform_wait_on_host(u, nr, a);
	case USER_EXIT:
		return end_thread(u, a);
	case USER_RING:
		return flexsc__apart_make(u, nr, a);
	case USER_EXIT_GROUP:
		u->cause = CAUSE_ENDS;
		flexsc__return_to_host(u);
		flexsc__exit_begins();
		return flexsc__perform_plainly(nr, a);
	case USER_WAIT:
		/*
		 * With __WNOTHREAD, the call finds only the calling kernel thread's
		 * children, so the host makes the call.
		 */
		if (a[row->flags_arg] & __WNOTHREAD)
			return flexsc__perform_wait_on_host(u, nr, a);
		break;
	case USER_SIGWAIT:
		return flexsc__sigwait(u, a);
	case USER_AFFINITY:
		return flexsc__affinity_set(u, a);
	case USER_BY_CLASS:
		break;
	}
	return dispatch_plain(u, row, nr, a);
}

/* Make a call of the runtime itself, or of a thread that isn't a user thread. */
static RARE long outside_runtime(long nr, const uint64_t a[6])
{
	struct flexsc_entry entry = { .nr = (__u16)nr };
	long ret;

	if (flexsc__self.strict)
		return flexsc__strict_call(&flexsc__self, nr, a);
	switch ((enum call_user)flexsc__call_info((unsigned int)nr)->user) {
	case USER_FUTEX:
		return flexsc__ufutex(NULL, a);
	case USER_FUTEX2:
		return flexsc__futex2(NULL, nr, a);
	case USER_SIGACTION:
		return flexsc__signal_action(a);
	case USER_RSEQ:
		return -ENOSYS;
	case USER_CPUCLOCK:
		return flexsc__cpuclock_get(NULL, a);
	case USER_EXIT_GROUP:
		flexsc__exit_begins();
		/* fall through */
	default:
		ret = flexsc__perform_of_other(nr, a);
		break;
	}
	/*
	 * Record signalfds, because threads that become user threads later may use
	 * them.
	 */
	for (unsigned int i = 0; i < 3; i++)
		entry.args[i] = a[i];
	flexsc__fds_note_signals(&entry, ret);
	/*
	 * Record socket options. A forked child shares its sockets with its parent, so
	 * the options that the child sets apply to the parent, too.
	 */
	if (call_info_of(entry.nr, entry.args)->changes == CHANGES_OPTION)
		flexsc__fds_note(&entry);
	return ret;
}

/*
 * A user thread whose calls never wait would keep its carrier. So once in SLICE_CALLS
 * calls on a carrier, the user thread checks how long it has run there.
 */
static void end_slice(struct uthread *u)
{
	struct carrier *c = kthread_self()->carrier;

	if (c && ++c->calls % SLICE_CALLS == 0 &&
	    context_ticks() - c->began >= SLICE_TICKS)
		flexsc__wait_yield(u);
}

static RARE long inside_runtime(struct uthread *u, long nr, const uint64_t a[6],
			bool site)
{
	long ret;

	/*
	 * The caller is a child that uses the user thread's memory. It doesn't enter
	 * the runtime: if its call never returned, the user thread would stay marked as
	 * inside.
	 */
	if (in_child(u))
		return flexsc__perform_plainly(nr, a);
	flexsc__enter(u);
	if (call_transfers(call_turn(nr)))
		sticky_transfers(u);
	u->site = site;
	/* Handle a signal that arrived before the call. */
	if (atomic_load_explicit(&u->wanted, memory_order_relaxed)) {
		u->cause = CAUSE_SIGNAL;
		flexsc__return_to_host(u);
		flexsc__wait_test_cancel(u);
	}
	/* A handler that runs from here on interrupts the call if the call waits. */
	u->handled = HANDLED_NOT;
	u->way = WAY_PLAINLY;
	ret = dispatch_special(u, nr, a);
	counters_call(u);
	end_slice(u);
	u->site = false;
	flexsc__exit(u);
	return ret;
}

/*
 * May a receive or send with MSG_DONTWAIT be made inline on the carrier? If so, count
 * the call. It needs no more preparation, because no signal could interrupt it, and it
 * changes no descriptor. False: make the call by inside_runtime(). One call in
 * SLICE_CALLS is made so, because inside_runtime() calls end_slice().
 */
static inline bool begin_quick(struct uthread *u)
{
	struct carrier *c;
	bool quick;

	if (u->forks)
		return false;
	flexsc__enter(u);
	c = kthread_self()->carrier;
	quick = c && !atomic_load_explicit(&u->wanted, memory_order_relaxed) &&
		(c->calls + 1) % SLICE_CALLS;
	sticky_transfers(u);
	if (quick) {
		c->calls++;
		u->way = WAY_PLAINLY;
		counters_call(u);
	}
	flexsc__exit(u);
	return quick;
}

static RARE long quick_call(struct uthread *u, long nr, const uint64_t a[6], bool site)
{
	long ret;

	if (!begin_quick(u))
		return inside_runtime(u, nr, a, site);
	ret = flexsc__perform_plainly(nr, a);
	if (unlikely(ret == -EPIPE)) {
		flexsc__enter(u);
		flexsc__raise_error(u, flexsc__call_info((unsigned int)nr), a, ret);
		flexsc__exit(u);
	}
	return ret;
}

static long hook(long nr, const uint64_t a[6], bool site)
{
	struct uthread *u = &flexsc__self;
	enum call_turn turn;
	enum make_natively how;

	if (!u->alive || u->busy || kthread_is_asleep(u))
		return outside_runtime(nr, a);
	turn = call_turn(nr);
	how = loop_call_how(u, turn, a);
	if (how)
		return loop_call(u, nr, a, turn, how);
	if (turn == TURN_SOCKET && (uint32_t)a[3] & MSG_DONTWAIT)
		return quick_call(u, nr, a, site);
	return inside_runtime(u, nr, a, site);
}

long flexsc__hook(long nr, const uint64_t a[6])
{
	return hook(nr, a, false);
}

long flexsc__hook_site(long nr, const uint64_t a[6])
{
	return hook(nr, a, true);
}

long flexsc__hook_site_point(long nr, const uint64_t a[6])
{
	struct uthread *u = &flexsc__self;
	bool original = u->point;
	long ret;

	u->point = true;
	ret = flexsc__hook_site(nr, a);
	u->point = original;
	return ret;
}
