/* SPDX-License-Identifier: MIT */
#include "hook.h"

#include <errno.h>
#include <linux/close_range.h>
#include <linux/flexsc.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "affinity.h"
#include "apart.h"
#include "perform.h"
#include "runtime/sched/carrier.h"
#include "lib/pool/closing.h"
#include "runtime/sched/count.h"
#include "cpuclock.h"
#include "lib/files/fds.h"
#include "lib/files/private_fd.h"
#include "lib/calls/call_info.h"
#include "futex2.h"
#include "life.h"
#include "runtime/sched/host.h"
#include "runtime/sched/closings.h"
#include "runtime/sched/internal_thread.h"
#include "polling.h"
#include "dispatch.h"
#include "runtime/sched/exit.h"
#include "runtime/signals/actions.h"
#include "runtime/signals/signals.h"
#include "sigmask.h"
#include "sigwait.h"
#include "sleep.h"
#include "ufutex.h"
#include "runtime/sched/wait.h"
#include "runtime/sched/state.h"

/*
 * A user thread whose calls don't wait lets others run after SLICE_TICKS of the
 * processor's ticks, about 1 ms. A carrier looks once in SLICE_CALLS calls.
 */
#define SLICE_TICKS	2500000U
#define SLICE_CALLS	16U

/* Not inlined, so that calls which are made natively save few registers. */
#define RARE		__attribute__((noinline))

/*
 * close_range() without the runtime's own descriptors: to the program they don't
 * exist.
 */
static long close_others(const uint64_t a[6])
{
	uint64_t first = (uint32_t)a[0], last = (uint32_t)a[1], own;
	long ret = 0;

	for (; !ret && first <= last; first = own + 1) {
		own = flexsc__fds_next(first, last);
		while (own <= last && !fds_is_own((uint32_t)own))
			own = flexsc__fds_next(own + 1, last);
		if (own > first)
			ret = raw_syscall(SYS_close_range, first, own - 1, 0, 0,
					  0, 0);
	}
	return ret;
}

/*
 * The same in a table of u's own. u gets the table first, by a call that closes
 * nothing, and stays on its host for it. Without another thread it keeps the table that
 * it has, and the runtime needs its descriptors there.
 */
static long close_others_alone(struct uthread *u, const uint64_t a[6])
{
	const struct flexsc_entry nothing = {
		.nr = SYS_close_range,
		.args = { UINT32_MAX, UINT32_MAX, CLOSE_RANGE_UNSHARE },
	};
	const uint64_t others[6] = { a[0], a[1] };
	long ret = flexsc__dispatch(u, SYS_close_range, &nothing);

	return ret ? ret : close_others(others);
}

static bool closes_own(const struct call_info *row, const uint64_t a[6])
{
	return (row->closes == CLOSES_ONE && fds_is_own((uint32_t)a[0])) ||
	       (row->closes == CLOSES_OTHER && fds_is_own((uint32_t)a[1]));
}

/* Does the kernel send SIGPIPE if the call fails with EPIPE? */
static bool raises_pipe(const struct call_info *row, const uint64_t a[6])
{
	return row->traits & CALL_PIPE ||
	       (row->traits & CALL_SEND && !(a[row->flags_arg] & MSG_NOSIGNAL));
}

/*
 * Does the kernel send SIGXFSZ if the call fails with EFBIG? Not if the limit is
 * the file system's, so ask whether the process has a limit of its own.
 */
static bool raises_size(const struct call_info *row)
{
	struct rlimit limit;

	return row->traits & CALL_FSIZE &&
	       !raw_syscall(SYS_prlimit64, 0, RLIMIT_FSIZE, 0, PTR(&limit), 0,
			    0) &&
	       limit.rlim_cur != RLIM_INFINITY;
}

/*
 * The signal that the kernel sends with the call's error, to the kernel thread
 * that made the call; 0 if none.
 */
static int raised(const struct call_info *row, const uint64_t a[6], long ret)
{
	if (ret == -EPIPE && raises_pipe(row, a))
		return SIGPIPE;
	if (ret == -EFBIG && raises_size(row))
		return SIGXFSZ;
	return 0;
}

/* Was the call made on its host? Then the signal of its error has come already. */
static bool made_on_host(const struct uthread *u)
{
	return u->way != WAY_POSTED && on_host();
}

/*
 * Before a descriptor is closed: calls that wait for its file go on with a copy.
 * While there are several threads no carrier ends, so the loops are used without a lock.
 */
static void hold(uint32_t fd)
{
	flexsc__fds_unmark(fd);
	flexsc__polling_hold(fd);
	for (unsigned int i = 0; i < flexsc__runtime.count; i++)
		flexsc__closing_hold(flexsc__runtime.carriers[i].loop, fd);
}

static void closed(uint32_t fd)
{
	for (unsigned int i = 0; i < flexsc__runtime.count; i++)
		flexsc__closing_closed(flexsc__runtime.carriers[i].loop, fd);
}

/*
 * Is the caller a child of vfork() or posix_spawn()? It has the user thread's
 * memory and descriptors of its own, so what it does to descriptors must not be
 * noted, and its calls must leave no trace in the user thread.
 */
static bool in_child(struct uthread *u)
{
	if (!u->forks)
		return false;
	if (runtime_is_lent())
		return true;
	/*
	 * The parent runs here. u->forks stays set until the function that
	 * makes the child is over, because in posix_spawn() the parent makes
	 * calls before there is a child.
	 */
	if (u->forks == FORKS_NOW && !flexsc__stay_goes_on(u))
		u->forks = FORKS_NOT;
	return false;
}

void flexsc__hook_closes(uint32_t fd)
{
	struct uthread *u = &flexsc__self;
	bool enters = u->alive && !u->busy;

	if (fds_is_marked(fd)) {
		if (enters)
			flexsc__enter(u);
		hold(fd);
		if (enters)
			flexsc__exit(u);
	}
	closings_count(fd);
	closings_wait();
	fds_forget_closed(fd);
}

/*
 * Before the call and after it: a call that is posted in between may have the old file,
 * and mustn't be moved either (sched/closings.h).
 */
static void count_closing(const struct call_info *row, const uint64_t a[6])
{
	if (row->closes == CLOSES_RANGE)
		flexsc__closings_count_range((uint32_t)a[0], (uint32_t)a[1]);
	else
		closings_count((uint32_t)a[row->closes == CLOSES_OTHER]);
}

static long by_class(struct uthread *u, long nr, const uint64_t a[6])
{
	struct flexsc_entry entry = {
		.nr = (__u16)nr,
		.args = { a[0], a[1], a[2], a[3], a[4], a[5] },
	};
	const struct call_info *row = flexsc__call_info((unsigned int)nr);
	const bool closes = row->closes && row->closes != CLOSES_SHUT;
	long ret;
	int signo;

	if (closes_own(row, a))
		return -EBADF;
	if (closes) {
		count_closing(row, a);
		closings_wait();
		flexsc__closing_each(nr, entry.args, hold);
	}
	flexsc__fds_note(&entry);
	if (row->closes == CLOSES_RANGE && a[0] <= a[1] &&
	    !(a[2] & ~(uint64_t)CLOSE_RANGE_UNSHARE))
		ret = a[2] ? close_others_alone(u, a) : close_others(a);
	else
		ret = flexsc__dispatch(u, nr, &entry);
	signo = raised(row, a, ret);
	if (signo && !made_on_host(u))
		flexsc__signal_self(u, signo);
	/*
	 * Between the first note and the call, another thread may have asked
	 * about the descriptor or begun to wait for it.
	 */
	flexsc__fds_note(&entry);
	if (closes)
		count_closing(row, a);
	if (row->closes)
		flexsc__closing_each(nr, entry.args, closed);
	flexsc__fds_note_made(&entry, ret);
	if (row->passes)
		flexsc__fds_note_sent(row->passes, a[1], ret);
	return ret;
}

/*
 * Send a signal to a thread. A signal to the calling thread itself arrives
 * before this returns.
 */
static long send_signal(struct uthread *u, long nr, const uint64_t a[6])
{
	const uint64_t *to = &a[nr != SYS_tkill];
	int32_t tid = (int32_t)to[0];
	long ret;

	/* The kernel lets a kernel thread send some siginfos only to itself. */
	if (tid == u->host.k.tid || nr == SYS_rt_tgsigqueueinfo)
		ret = flexsc__perform_go_to_host(u, nr, a);
	else
		ret = flexsc__perform_plainly(nr, a);
	if (!ret && tid != u->host.k.tid)
		flexsc__signal_sent(tid, (int)to[1]);
	return ret;
}

/*
 * syscall(SYS_exit) ends the calling thread alone, and libc doesn't count the thread
 * off. Natively the process ends with its last kernel thread. Here the runtime's threads
 * would be left. So this takes the thread off libc's count, and the last one ends the
 * process. A thread that libc itself ends may come here, too, from a patched place
 * (glibc 2.43). It has left the list of user threads and libc's count already. In a
 * destructor of thread-specific data a thread has left the list, but not the count.
 */
static long end_thread(struct uthread *u, const uint64_t a[6])
{
	if (runtime_is_lent() || (u->site && !u->listed))
		return flexsc__perform_plainly(SYS_exit, a);
	flexsc__exit(u);
	if (u->listed)
		flexsc__life_end(u);
	flexsc__internal_program_ends_by_call((uint32_t)a[0]);
	return flexsc__perform_plainly(SYS_exit, a);
}

static long choose(struct uthread *u, long nr, const uint64_t a[6])
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
		 * The kernel thread runs many user threads, and the kernel
		 * would write to the area of whichever runs.
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
		return by_class(u, nr, a);
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
		/* A child belongs to the kernel thread that made it: a host. */
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
	return by_class(u, nr, a);
}

/* Calls of the runtime itself, and of threads that aren't user threads. */
static RARE long without(long nr, const uint64_t a[6])
{
	struct flexsc_entry entry = { .nr = (__u16)nr };
	long ret;

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
	 * A signalfd that is made now may be open when there are user threads.
	 */
	for (unsigned int i = 0; i < 3; i++)
		entry.args[i] = a[i];
	flexsc__fds_note_signals(&entry, ret);
	return ret;
}

/*
 * A user thread whose calls never wait would keep its carrier. Once in SLICE_CALLS
 * calls on a carrier, the user thread there looks how long it has had the carrier.
 */
static void end_slice(struct uthread *u)
{
	struct carrier *c = kthread_self()->carrier;

	if (c && ++c->calls % SLICE_CALLS == 0 &&
	    context_ticks() - c->began >= SLICE_TICKS)
		flexsc__wait_yield(u);
}

/* How a user thread on its host makes a call: natively, or as hook.h lists. */
enum make_natively {
	NATIVELY_NOT = 0,
	NATIVELY_AT_ONCE,	/* the call doesn't wait, so isn't cancelled */
	NATIVELY_POINT,		/* as libc does, as a cancellation point */
};

/*
 * How to make a call on a descriptor. If its file has other descriptors, one of
 * them may have been used to clear the O_NONBLOCK that was noted: then the call
 * waits on its host, as natively, and may be cancelled there.
 */
static enum make_natively by_descriptor(uint32_t fd)
{
	uint32_t facts = fds_known(fd);

	if (!(facts & FD_NEVER_WAITS))
		return NATIVELY_NOT;
	return facts & FD_ALONE ? NATIVELY_AT_ONCE : NATIVELY_POINT;
}

/*
 * Does a user thread on its host make the call as a plain thread would? So it is with
 * the calls of an event loop: accepting, receiving and sending where nothing waits,
 * submitting requests, and waiting for any of many.
 */
static enum make_natively as_natively(const struct uthread *u, enum call_turn turn,
				 const uint64_t a[6])
{
	if (!on_host() || !flexsc__runtime.loops ||
	    atomic_load_explicit(&u->wanted, memory_order_relaxed))
		return NATIVELY_NOT;
	switch (turn) {
	case TURN_TRANSFER:
	case TURN_MESSAGE:
		return by_descriptor((uint32_t)a[0]);
	case TURN_ACCEPT:
		/* The caller may be a child, whose descriptors aren't noted. */
		return u->forks ? NATIVELY_NOT : by_descriptor((uint32_t)a[0]);
	case TURN_SUBMIT:
	case TURN_AWAIT:
		return NATIVELY_POINT;
	case TURN_POLL:
		return a[1] != 1 ? NATIVELY_POINT : NATIVELY_NOT;
	case TURN_OTHER:
		break;
	}
	return NATIVELY_NOT;
}

static RARE void note_accepted(long nr, const uint64_t a[6], long ret)
{
	struct flexsc_entry entry = {
		.nr = (__u16)nr,
		.args = { a[0], a[1], a[2], a[3] },
	};

	flexsc__fds_note_made(&entry, ret);
}

static long make_natively(struct uthread *u, long nr, const uint64_t a[6],
		     enum call_turn turn, enum make_natively how)
{
	long ret = u->point && how == NATIVELY_POINT ?
			   flexsc__perform_point(nr, a) :
			   flexsc__perform_plainly(nr, a);

	if (turn == TURN_ACCEPT)
		note_accepted(nr, a, ret);
	else if (turn == TURN_MESSAGE)
		flexsc__fds_note_sent(PASSES_ONE, a[1], ret);
	u->way = WAY_NATIVELY;
	counters_call(u);
	return ret;
}

static RARE long inside(struct uthread *u, long nr, const uint64_t a[6],
			bool site)
{
	long ret;

	/*
	 * The child's call may not return, and the user thread, whose memory this is,
	 * would stay marked as inside the runtime.
	 */
	if (in_child(u))
		return flexsc__perform_plainly(nr, a);
	flexsc__enter(u);
	u->site = site;
	/* A signal that came before the call is handled before it. */
	if (atomic_load_explicit(&u->wanted, memory_order_relaxed)) {
		u->cause = CAUSE_SIGNAL;
		flexsc__return_to_host(u);
		flexsc__wait_test_cancel(u);
	}
	/* A handler from here on interrupts the call, if the call waits. */
	u->handled = HANDLED_NOT;
	u->way = WAY_PLAINLY;
	ret = choose(u, nr, a);
	counters_call(u);
	end_slice(u);
	u->site = false;
	flexsc__exit(u);
	return ret;
}

static long hook(long nr, const uint64_t a[6], bool site)
{
	struct uthread *u = &flexsc__self;
	enum call_turn turn;
	enum make_natively how;

	if (!u->alive || u->busy || flexsc__is_asleep(u))
		return without(nr, a);
	turn = call_turn(nr);
	how = as_natively(u, turn, a);
	return how ? make_natively(u, nr, a, turn, how) : inside(u, nr, a, site);
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
