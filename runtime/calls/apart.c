/* SPDX-License-Identifier: MIT */
/*
 * Calls that give one kernel thread state that the others of its process lack: in what
 * the kernel permits it, shows it, counts of it, or does on its behalf. Carriers don't
 * get that state, so the user thread stays at home. It is rooted if threads that it
 * makes inherit the state, else tied. On the user thread itself.
 */
#include "apart.h"

#include <asm/prctl.h>
#include <linux/close_range.h>
#include <linux/ioprio.h>
#include <linux/keyctl.h>
#include <linux/mempolicy.h>
#include <linux/perf_event.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>

#include "runtime/base/peek.h"
#include "runtime/counters/counters.h"
#include "runtime/sched/host.h"
#include "runtime/sched/dormant.h"
#include "runtime/sched/anchored.h"
#include "runtime/sched/uthreads.h"
#include "call.h"
#include "filter.h"
#include "rings.h"

#ifndef PR_SET_SYSCALL_USER_DISPATCH
#define PR_SET_SYSCALL_USER_DISPATCH	59
#endif

#ifndef SYS_lsm_set_self_attr
#define SYS_lsm_set_self_attr	460
#endif

enum apart {
	APART_NOT = 0,
	APART_TIED,
	APART_ROOTED,
};

static enum apart by_option(uint64_t option)
{
	switch (option) {
	case PR_SET_SECCOMP:
	case PR_SET_TSC:
	case PR_SET_SPECULATION_CTRL:
	case PR_SET_IO_FLUSHER:
	case PR_MCE_KILL:
		return APART_ROOTED;
	case PR_SET_SYSCALL_USER_DISPATCH:
		return APART_TIED;
	default:
		return APART_NOT;
	}
}

static enum apart by_key_operation(const uint64_t a[6])
{
	switch (a[0]) {
	case KEYCTL_JOIN_SESSION_KEYRING:
	case KEYCTL_SET_REQKEY_KEYRING:
		return APART_ROOTED;
	case KEYCTL_GET_KEYRING_ID:
		/* The call may make the keyring. */
		return (int32_t)a[1] == KEY_SPEC_THREAD_KEYRING ? APART_TIED :
								  APART_NOT;
	default:
		return APART_NOT;
	}
}

/* Is the id 0, or that of the calling thread? */
static bool names_itself(const struct uthread *u, uint64_t tid)
{
	return !(int32_t)tid || (int32_t)tid == u->home.k.tid;
}

/* A counter of the thread's events; with "inherit", also of threads that it makes. */
static enum apart by_counter(const struct uthread *u, const uint64_t a[6])
{
	const struct perf_event_attr *attr = flexsc__arg_pointer(a[0]);

	if (!names_itself(u, a[1]))
		return APART_NOT;
	return peek_can_read(a[0], PERF_ATTR_SIZE_VER0) && attr->inherit ?
		       APART_ROOTED : APART_TIED;
}

/*
 * What the call does to the calling thread. setuid(2) and its kin, if they come from a
 * patched place, are libc's, which changes all threads.
 */
static enum apart sets_apart(const struct uthread *u, long nr,
			     const uint64_t a[6])
{
	switch (nr) {
	case SYS_setuid:
	case SYS_setgid:
	case SYS_setreuid:
	case SYS_setregid:
	case SYS_setresuid:
	case SYS_setresgid:
	case SYS_setgroups:
		return u->site ? APART_NOT : APART_ROOTED;
	case SYS_setfsuid:
	case SYS_setfsgid:
	case SYS_capset:
	case SYS_unshare:
	case SYS_setns:
	case SYS_landlock_restrict_self:
	case SYS_lsm_set_self_attr:
	case SYS_iopl:
	case SYS_ioperm:
		return APART_ROOTED;
	case SYS_close_range:
		return a[2] & CLOSE_RANGE_UNSHARE ? APART_ROOTED : APART_NOT;
	case SYS_seccomp:
		/* Others only ask. */
		return a[0] == SECCOMP_SET_MODE_STRICT ||
				       a[0] == SECCOMP_SET_MODE_FILTER ?
			       APART_ROOTED : APART_NOT;
	case SYS_set_mempolicy:
		return a[0] == MPOL_DEFAULT ? APART_NOT : APART_ROOTED;
	case SYS_ioprio_set:
		return a[0] == IOPRIO_WHO_PROCESS && names_itself(u, a[1]) ?
			       APART_ROOTED : APART_NOT;
	case SYS_personality:
		/* personality(0xffffffff) only asks. */
		return (uint32_t)a[0] != ~0U ? APART_ROOTED : APART_NOT;
	case SYS_prctl:
		return by_option(a[0]);
	case SYS_arch_prctl:
		return a[0] == ARCH_SET_CPUID ? APART_ROOTED : APART_NOT;
	case SYS_keyctl:
		return by_key_operation(a);
	case SYS_add_key:
		return (int32_t)a[4] == KEY_SPEC_THREAD_KEYRING ? APART_TIED :
								  APART_NOT;
	case SYS_request_key:
		return (int32_t)a[3] == KEY_SPEC_THREAD_KEYRING ? APART_TIED :
								  APART_NOT;
	case SYS_perf_event_open:
		return by_counter(u, a);
	case SYS_io_uring_setup:
	case SYS_io_uring_register:
	case SYS_io_uring_enter:
		return flexsc__ring_call_is_owned(nr, a) ? APART_TIED : APART_NOT;
	default:
		return APART_NOT;
	}
}

/* The id of another thread whose state the call sets, or 0. */
static int32_t names_other(long nr, const uint64_t a[6])
{
	switch (nr) {
	case SYS_perf_event_open:
		return (int32_t)a[1] > 0 ? (int32_t)a[1] : 0;
	case SYS_ioprio_set:
		return a[0] == IOPRIO_WHO_PROCESS ? (int32_t)a[1] : 0;
	default:
		return 0;
	}
}

static void tie_other(struct uthread *self, int32_t tid)
{
	struct uthread *u;

	flexsc__uthreads_lock();
	u = flexsc__uthread_with(tid);
	if (u)
		flexsc__tie(u, TIED_STATE, true);
	flexsc__uthreads_unlock();
	if (u)
		flexsc__tied_settle(self, tid);
}

static long make_rooted(struct uthread *u, long nr, const uint64_t a[6])
{
	flexsc__come_home(u);
	/* At rest there are no carriers, and later ones get the state. */
	if (flexsc__rest(u) || flexsc__filter_is_tried(nr, a))
		return flexsc__filter_make(u, nr, a);
	u->rooted = true;
	return flexsc__call_at_home(u, nr, a);
}

long flexsc__apart_make(struct uthread *u, long nr, const uint64_t a[6])
{
	enum apart apart = sets_apart(u, nr, a);
	int32_t other = apart ? 0 : names_other(nr, a);
	long ret;

	u->cause = counters_cause(nr);
	if (apart == APART_ROOTED)
		return make_rooted(u, nr, a);
	if (apart == APART_TIED)
		flexsc__tie_for_good(u);
	ret = flexsc__call_go_home(u, nr, a);
	if (other && ret >= 0)
		tie_other(u, other);
	return ret;
}
