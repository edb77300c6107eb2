/* SPDX-License-Identifier: MIT */
#include "hook.h"

#include <errno.h>
#include <linux/flexsc.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "call.h"
#include "../run/carrier.h"
#include "../report/counters.h"
#include "lib/calls/fds.h"
#include "futex2.h"
#include "../run/home.h"
#include "lib/loop/loop.h"
#include "polling.h"
#include "lib/calls/refine.h"
#include "../runtime.h"
#include "../signals/signals.h"
#include "sleep.h"
#include "lib/calls/table.h"
#include "ufutex.h"
#include "../run/wait.h"

/* What a user thread has of its carrier, if its calls don't wait: about 1 ms. */
#define SLICE_TICKS	2500000U
#define SLICE_CALLS	16U

/* What is made at home, what plainly, and what is posted. */

static bool reads_identity(long nr)
{
	switch (nr) {
	case SYS_getuid:
	case SYS_geteuid:
	case SYS_getgid:
	case SYS_getegid:
	case SYS_getresuid:
	case SYS_getresgid:
	case SYS_getgroups:
		return true;
	default:
		return false;
	}
}

/* Of those that wait for a device: the ones that do so as a rule. */
static bool syncs(long nr)
{
	switch (nr) {
	case SYS_fsync:
	case SYS_fdatasync:
	case SYS_sync:
	case SYS_syncfs:
	case SYS_sync_file_range:
	case SYS_msync:
		return true;
	default:
		return false;
	}
}

/* Does the caller not want to wait? Then there is nothing to switch for. */
static bool is_impatient(long nr, const struct table_row *row,
			 const uint64_t a[6])
{
	switch (nr) {
	case SYS_recvfrom:
	case SYS_sendto:
		if (a[3] & MSG_DONTWAIT)
			return true;
		break;
	case SYS_recvmsg:
	case SYS_sendmsg:
		if (a[2] & MSG_DONTWAIT)
			return true;
		break;
	case SYS_recvmmsg:
	case SYS_sendmmsg:
		if (a[3] & MSG_DONTWAIT)
			return true;
		break;
	default:
		break;
	}
	return (row->poll != POLL_NONE || nr == SYS_connect) &&
	       flexsc__fds_never_wait((uint32_t)a[0]);
}

static long may_wait(struct uthread *u, long nr, const struct table_row *row,
		     const uint64_t a[6])
{
	return is_impatient(nr, row, a) ? flexsc__call_exposed(u, nr, a) :
					  flexsc__call_post(u, nr, a);
}

/*
 * Does it make its thread unlike the others, for what the kernel permits or
 * shows? Carriers stay like those. (libc changes users of all threads, and its
 * patched places aren't asked.)
 */
static bool sets_apart(const struct uthread *u, long nr, const uint64_t a[6])
{
	switch (nr) {
	case SYS_setuid:
	case SYS_setgid:
	case SYS_setreuid:
	case SYS_setregid:
	case SYS_setresuid:
	case SYS_setresgid:
	case SYS_setgroups:
		return !u->site;
	case SYS_setfsuid:
	case SYS_setfsgid:
	case SYS_capset:
	case SYS_unshare:
	case SYS_setns:
	case SYS_seccomp:
	case SYS_landlock_restrict_self:
		return true;
	case SYS_personality:
		/* Or does it only ask? */
		return (uint32_t)a[0] != ~0U;
	case SYS_prctl:
		return a[0] == PR_SET_SECCOMP;
	default:
		return false;
	}
}

/* Of a thread's own, what new ones get from their maker. */
static bool is_inherited_option(uint64_t option)
{
	switch (option) {
	case PR_SET_KEEPCAPS:
	case PR_SET_SECUREBITS:
	case PR_CAPBSET_DROP:
	case PR_CAP_AMBIENT:
	case PR_SET_NO_NEW_PRIVS:
	case PR_SET_TIMERSLACK:
	case PR_SET_TSC:
	case PR_MCE_KILL:
	case PR_SET_SPECULATION_CTRL:
	case PR_SET_IO_FLUSHER:
		return true;
	default:
		return false;
	}
}

static bool is_inherited(long nr, const uint64_t a[6])
{
	switch (nr) {
	case SYS_sched_setaffinity:
	case SYS_sched_setscheduler:
	case SYS_sched_setparam:
	case SYS_sched_setattr:
	case SYS_setpriority:
	case SYS_ioprio_set:
	case SYS_set_mempolicy:
		return true;
	case SYS_prctl:
		return is_inherited_option(a[0]);
	default:
		return false;
	}
}

/* What kind of file is it, for a call that isn't the same on all of them? */
static uint32_t kind_that_matters(const struct table_row *row,
				  const struct flexsc_entry *entry)
{
	uint32_t fd = (uint32_t)entry->args[0];

	if (flexsc__fds_at_position(entry))
		return flexsc__fds_kind(fd);
	if (entry->nr == SYS_sendfile ||
	    (entry->nr == SYS_ioctl &&
	     flexsc__refine(row, entry) != CLASS_FAST))
		return flexsc__fds_kind(fd) & FD_TERMINAL;
	return 0;
}

static long choose_way(struct uthread *u, long nr, const uint64_t a[6],
		       const struct flexsc_entry *entry)
{
	const struct table_row *row = flexsc__table_row((unsigned int)nr);

	/* It asks for the signals of the kernel thread that reads it. */
	if (row->poll == POLL_READ && fds_has_signals((uint32_t)a[0]))
		return flexsc__call_go_home(u, nr, a);
	switch (kind_that_matters(row, entry)) {
	case FD_PLACED:
		/* It waits for a disk at most, as pread() and pwrite() do. */
		return flexsc__call_exposed(u, nr, a);
	case FD_TERMINAL:
		/* It may stop the process, unless the caller blocks that. */
		return flexsc__call_go_home(u, nr, a);
	default:
		break;
	}
	switch (flexsc__refine(row, entry)) {
	case CLASS_FAST:
		return flexsc__call_plainly(nr, a);
	case CLASS_DISK:
		return syncs(nr) ? flexsc__call_post(u, nr, a) :
				   flexsc__call_exposed(u, nr, a);
	case CLASS_WAIT:
		return may_wait(u, nr, row, a);
	case CLASS_SELF:
		if (reads_identity(nr))
			return flexsc__call_plainly(nr, a);
		/* fall through */
	case CLASS_NEVER:
	case CLASS_NONE:
		break;
	}
	if (sets_apart(u, nr, a))
		u->rooted = true;
	if (is_inherited(nr, a))
		atomic_store(&flexsc__home_inherited, true);
	return flexsc__call_go_home(u, nr, a);
}

/*
 * A program that closes what it doesn't know of doesn't reach what is the
 * runtime's: it isn't there.
 */
static long close_others(const uint64_t a[6])
{
	uint64_t first = (uint32_t)a[0], last = (uint32_t)a[1], own;
	long ret = 0;

	for (; !ret && first <= last; first = own + 1) {
		for (own = first; own <= last && own < FDS_MAX; own++)
			if (fds_is_own((uint32_t)own))
				break;
		if (own >= FDS_MAX)
			own = last + 1;
		if (own > first)
			ret = raw_syscall(SYS_close_range, first, own - 1, a[2],
					  0, 0, 0);
	}
	return ret;
}

static bool closes_own(long nr, const uint64_t a[6])
{
	return (nr == SYS_close && fds_is_own((uint32_t)a[0])) ||
	       ((nr == SYS_dup2 || nr == SYS_dup3) &&
		fds_is_own((uint32_t)a[1]));
}

/* Does EPIPE come with a SIGPIPE? */
static bool raises_pipe(long nr, const uint64_t a[6])
{
	switch (nr) {
	case SYS_write:
	case SYS_writev:
	case SYS_pwritev2:
	case SYS_sendfile:
	case SYS_splice:
	case SYS_tee:
	case SYS_vmsplice:
		return true;
	case SYS_sendto:
	case SYS_sendmmsg:
		return !(a[3] & MSG_NOSIGNAL);
	case SYS_sendmsg:
		return !(a[2] & MSG_NOSIGNAL);
	default:
		return false;
	}
}

/* Does EFBIG come with a SIGXFSZ? Not if there's no limit but the file's own. */
static bool raises_size(long nr)
{
	struct rlimit limit;

	switch (nr) {
	case SYS_write:
	case SYS_writev:
	case SYS_pwrite64:
	case SYS_pwritev:
	case SYS_pwritev2:
	case SYS_truncate:
	case SYS_ftruncate:
	case SYS_fallocate:
	case SYS_copy_file_range:
	case SYS_sendfile:
	case SYS_splice:
		return !raw_syscall(SYS_prlimit64, 0, RLIMIT_FSIZE, 0,
				    PTR(&limit), 0, 0) &&
		       limit.rlim_cur != RLIM_INFINITY;
	default:
		return false;
	}
}

/* The signal that comes with an error, to whoever made the call; or 0. */
static int raised(long nr, const uint64_t a[6], long ret)
{
	if (ret == -EPIPE && raises_pipe(nr, a))
		return SIGPIPE;
	if (ret == -EFBIG && raises_size(nr))
		return SIGXFSZ;
	return 0;
}

/* Then it has come already. */
static bool made_at_home(const struct uthread *u)
{
	return u->way != WAY_POSTED && at_home();
}

/* Who waits for a file goes on, though its descriptor is closed. */
static void hold(uint32_t fd)
{
	if (!fds_is_parked(fd))
		return;
	flexsc__polling_hold(fd);
	for (unsigned int i = 0; i < flexsc__carriers_count; i++) {
		struct flexsc_loop *loop = flexsc__carriers[i].loop;

		if (loop->engine->hold)
			loop->engine->hold(loop, (int)fd);
	}
}

static void hold_what_closes(long nr, const uint64_t a[6])
{
	switch (nr) {
	case SYS_close:
		hold((uint32_t)a[0]);
		break;
	case SYS_dup2:
	case SYS_dup3:
		if (a[0] != a[1])
			hold((uint32_t)a[1]);
		break;
	case SYS_close_range:
		for (uint64_t fd = a[0]; fd < FDS_MAX && fd <= a[1]; fd++)
			hold((uint32_t)fd);
		break;
	default:
		break;
	}
}

/*
 * vfork() and posix_spawn() lend the caller's memory to a child, whose
 * descriptors are its own: of what it does to them nothing is to be noted here.
 */
static bool in_child(struct uthread *u)
{
	if (!u->forks)
		return false;
	if (flexsc__runtime_is_child())
		return true;
	/* The parent: posix_spawn() makes calls before it makes the child. */
	if (!flexsc__stays(u))
		u->forks = false;
	return false;
}

static long by_class(struct uthread *u, long nr, const uint64_t a[6])
{
	struct flexsc_entry entry = {
		.nr = (__u16)nr,
		.args = { a[0], a[1], a[2], a[3], a[4], a[5] },
	};
	long ret;
	int signo;

	if (closes_own(nr, a))
		return -EBADF;
	if (in_child(u))
		return flexsc__call_plainly(nr, a);
	hold_what_closes(nr, a);
	flexsc__fds_note(&entry);
	if (nr == SYS_close_range && a[0] <= a[1] && !a[2])
		ret = close_others(a);
	else
		ret = choose_way(u, nr, a, &entry);
	signo = raised(nr, a, ret);
	if (signo && !made_at_home(u))
		flexsc__signal_self(u, signo);
	/* Others may have asked before the call was made. */
	flexsc__fds_note(&entry);
	flexsc__fds_made(&entry, ret);
	return ret;
}

static long choose(struct uthread *u, long nr, const uint64_t a[6])
{
	switch (nr) {
	case SYS_futex:
		return flexsc__ufutex(u, a);
	case FUTEX2_WAITV:
	case FUTEX2_WAKE:
	case FUTEX2_WAIT:
	case FUTEX2_REQUEUE:
		return flexsc__futex2(u, nr, a);
	case SYS_rt_sigaction:
		return flexsc__signal_action(a);
	case SYS_rseq:
		/* The kernel would write to it whoever runs. */
		return -ENOSYS;
	case SYS_rt_sigprocmask:
		return flexsc__signal_mask(u, a);
	case SYS_gettid:
		u->way = WAY_ANSWERED;
		return u->home.k.tid;
	case SYS_tkill:
	case SYS_tgkill:
		/* What one sends oneself arrives at once. */
		if (a[nr == SYS_tgkill] == (uint64_t)u->home.k.tid)
			return flexsc__call_go_home(u, nr, a);
		return flexsc__call_plainly(nr, a);
	case SYS_sched_yield:
		flexsc__wait_turn(u);
		return 0;
	case SYS_nanosleep:
		return flexsc__sleep_nanosleep(u, nr, a);
	case SYS_clock_nanosleep:
		return flexsc__sleep_clock(u, nr, a);
	case SYS_poll:
	case SYS_ppoll:
	case SYS_epoll_wait:
	case SYS_epoll_pwait:
		return flexsc__polling(u, nr, a);
	case SYS_select:
	case SYS_pselect6:
	case SYS_epoll_pwait2:
		return flexsc__call_go_home(u, nr, a);
	case SYS_exit_group:
		u->cause = CAUSE_ENDS;
		flexsc__come_home(u);
		flexsc__runtime_ends();
		return flexsc__call_plainly(nr, a);
	case SYS_wait4:
	case SYS_waitid:
		/* A child is its maker's, and that is a home. */
		if (a[nr == SYS_wait4 ? 2 : 3] & __WNOTHREAD)
			return flexsc__call_go_home(u, nr, a);
		/* fall through */
	default:
		return by_class(u, nr, a);
	}
}

/* A signal handler on a parked kernel thread has its user thread's TLS. */
static bool is_parked(const struct uthread *u)
{
	return at_home() && u->home.away;
}

/* For threads that aren't user threads, and for the runtime itself. */
static long without(long nr, const uint64_t a[6])
{
	struct flexsc_entry entry = { .nr = (__u16)nr };
	long ret;

	switch (nr) {
	case SYS_futex:
		return flexsc__ufutex(NULL, a);
	case FUTEX2_WAITV:
	case FUTEX2_WAKE:
	case FUTEX2_WAIT:
	case FUTEX2_REQUEUE:
		return flexsc__futex2(NULL, nr, a);
	case SYS_rt_sigaction:
		return flexsc__signal_action(a);
	case SYS_rseq:
		return -ENOSYS;
	case SYS_exit_group:
		flexsc__runtime_ends();
		/* fall through */
	default:
		ret = flexsc__call_plainly(nr, a);
		break;
	}
	/* There may be user threads later, and these descriptors still. */
	for (unsigned int i = 0; i < 3; i++)
		entry.args[i] = a[i];
	flexsc__fds_note_signals(&entry, ret);
	return ret;
}

/*
 * A thread whose calls never wait would keep its carrier: once in some calls
 * it is looked how long it has had it.
 */
static void end_slice(struct uthread *u)
{
	struct carrier *c = kthread_self()->carrier;

	if (c && ++c->calls % SLICE_CALLS == 0 &&
	    context_ticks() - c->began >= SLICE_TICKS)
		flexsc__wait_turn(u);
}

static long hook(long nr, const uint64_t a[6], bool site)
{
	struct uthread *u = &flexsc__self;
	long ret;

	if (!u->alive || u->busy || is_parked(u))
		return without(nr, a);
	flexsc__enter(u);
	u->site = site;
	/* What came before the call is handled before it. */
	if (atomic_load_explicit(&u->wanted, memory_order_relaxed)) {
		u->cause = CAUSE_SIGNAL;
		flexsc__come_home(u);
	}
	/* A handler from here on interrupts the call, if that waits. */
	u->handled = HANDLED_NOT;
	u->way = WAY_PLAINLY;
	ret = choose(u, nr, a);
	counters_call(u);
	end_slice(u);
	u->site = false;
	flexsc__exit(u);
	return ret;
}

long flexsc__hook(long nr, const uint64_t a[6])
{
	return hook(nr, a, false);
}

long flexsc__hook_site(long nr, const uint64_t a[6])
{
	return hook(nr, a, true);
}
