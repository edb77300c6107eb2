/* SPDX-License-Identifier: MIT */
/*
 * Calls that change state of the calling kernel thread alone, not of its process. That
 * state determines what the kernel permits or shows to the thread, counts for it, or
 * does on its behalf. Carriers don't get that state, so the user thread is anchored
 * after such a call (sched/anchored.h). If threads that it creates inherit the state,
 * the user thread never leaves its host again (host_only). Runs on the calling user
 * thread.
 */
#include "calls.h"

#include <linux/ioprio.h>
#include <linux/keyctl.h>
#include <linux/perf_event.h>

#include "lib/calls/call_info.h"
#include "runtime/base/peek.h"
#include "runtime/counters/counters.h"
#include "runtime/sched/anchored.h"
#include "runtime/sched/dormant.h"
#include "runtime/sched/host.h"
#include "runtime/sched/uthreads.h"
#include "filter.h"
#include "perform.h"
#include "rings.h"

static enum call_apart apart_of(long nr, const uint64_t a[6])
{
	return (enum call_apart)
		call_info_of((unsigned int)nr, (const __u64 *)a)->apart;
}

/* Is the id 0, or that of the calling thread? */
static bool names_itself(const struct uthread *u, uint64_t tid)
{
	return !(int32_t)tid || (int32_t)tid == u->host.k.tid;
}

/*
 * Classify perf_event_open(). With "inherit", the counter also counts events of threads
 * that the calling thread creates.
 */
static enum call_apart by_counter(const struct uthread *u, const uint64_t a[6])
{
	const struct perf_event_attr *attr = flexsc__arg_pointer(a[0]);

	if (!names_itself(u, a[1]))
		return APART_NOT;
	return peek_can_read(a[0], PERF_ATTR_SIZE_VER0) && attr->inherit ?
		       APART_HOST_ONLY : APART_ANCHORED;
}

/*
 * Classify a call by the state that it would change in the calling kernel thread alone.
 * A setuid(2) or related call from a patched place is part of libc's function, which
 * changes all threads, so the calling thread doesn't differ from them.
 */
static enum call_apart sets_apart(const struct uthread *u, long nr,
				  const uint64_t a[6])
{
	const enum call_apart apart = apart_of(nr, a);

	switch (apart) {
	case APART_NOT:
	case APART_ANCHORED:
	case APART_HOST_ONLY:
		break;
	case APART_RAW:
		return u->site ? APART_NOT : APART_HOST_ONLY;
	case APART_KEYRING:
		/* The call may create a keyring that belongs to the calling thread. */
		return (int32_t)a[1] == KEY_SPEC_THREAD_KEYRING ? APART_ANCHORED :
								  APART_NOT;
	case APART_COUNTER:
		return by_counter(u, a);
	case APART_PRIORITY:
		return a[0] == IOPRIO_WHO_PROCESS && names_itself(u, a[1]) ?
			       APART_HOST_ONLY : APART_NOT;
	case APART_RING:
		return flexsc__ring_call_is_owned(nr, a) ? APART_ANCHORED : APART_NOT;
	}
	return apart;
}

/* The id of another thread whose state the call changes, or 0. */
static int32_t names_other(long nr, const uint64_t a[6])
{
	const enum call_apart apart = apart_of(nr, a);

	if (apart == APART_COUNTER)
		return (int32_t)a[1] > 0 ? (int32_t)a[1] : 0;
	return apart == APART_PRIORITY && a[0] == IOPRIO_WHO_PROCESS ?
		       (int32_t)a[1] : 0;
}

static void anchor_other(struct uthread *self, int32_t tid)
{
	struct uthread *u;

	flexsc__uthreads_lock();
	u = flexsc__uthread_with(tid);
	if (u)
		flexsc__anchor(u, ANCHORED_STATE, true);
	flexsc__uthreads_unlock();
	if (u)
		flexsc__anchored_settle(self, tid);
}

static long make_host_only(struct uthread *u, long nr, const uint64_t a[6])
{
	flexsc__return_to_host(u);
	/* A dormant runtime has no carriers, and later carriers inherit the state. */
	if (flexsc__dormant_begin(u) || flexsc__filter_is_tried(nr, a))
		return flexsc__filter_make(u, nr, a);
	u->host_only = true;
	return flexsc__perform_on_host(u, nr, a);
}

long flexsc__apart_make(struct uthread *u, long nr, const uint64_t a[6])
{
	enum call_apart apart = sets_apart(u, nr, a);
	int32_t other = apart ? 0 : names_other(nr, a);
	long ret;

	u->cause = counters_cause(nr);
	if (apart == APART_HOST_ONLY)
		return make_host_only(u, nr, a);
	if (apart == APART_ANCHORED)
		flexsc__anchor_for_good(u);
	ret = flexsc__perform_go_to_host(u, nr, a);
	if (other && ret >= 0)
		anchor_other(u, other);
	return ret;
}
