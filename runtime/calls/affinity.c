/* SPDX-License-Identifier: MIT */
#include "affinity.h"

#include <sched.h>
#include <string.h>

#include "runtime/sched/anchored.h"
#include "runtime/sched/carrier.h"
#include "runtime/sched/state.h"
#include "runtime/sched/uthreads.h"

/* Get a thread's affinity. False if cpu_set_t is too small for the kernel's set. */
static bool affinity_of(int32_t tid, cpu_set_t *set)
{
	CPU_ZERO(set);
	return raw_syscall(SYS_sched_getaffinity, (uint64_t)tid, sizeof(*set),
			   PTR(set), 0, 0, 0) > 0;
}

/* All carriers have the same affinity, which changes for the whole process at once. */
static cpu_set_t of_carriers(void)
{
	cpu_set_t set;

	affinity_of(flexsc__runtime.carriers[0].k.tid, &set);
	return set;
}

static bool is_bound(const struct uthread *u, const cpu_set_t *carriers)
{
	cpu_set_t own, both;

	if (!affinity_of(u->host.k.tid, &own))
		return false;
	CPU_AND(&both, &own, carriers);
	return !CPU_EQUAL(&both, carriers);
}

/*
 * Anchor u if it is bound, otherwise release it. Called with the list of user threads
 * locked: if several threads call this function for u at the same time, the last one
 * sees the latest affinity.
 */
static void look_at(struct uthread *u, const cpu_set_t *carriers)
{
	flexsc__anchor(u, ANCHORED_AFFINITY, is_bound(u, carriers));
}

void flexsc__affinity_begin(struct uthread *u)
{
	cpu_set_t carriers;

	if (!flexsc__runtime.count || filter_is_near(u))
		return;
	carriers = of_carriers();
	/* A thread that bound u before u was in the list didn't find u: check here. */
	if (!is_bound(u, &carriers))
		return;
	flexsc__uthreads_lock();
	look_at(u, &carriers);
	flexsc__uthreads_unlock();
}

static bool is_carrier(int32_t tid)
{
	for (unsigned int i = 0; i < flexsc__runtime.count; i++)
		if (flexsc__runtime.carriers[i].k.tid == tid)
			return true;
	return false;
}

static void affinity_look_again(int32_t tid)
{
	const cpu_set_t carriers = of_carriers();
	struct uthread *u;

	flexsc__uthreads_lock();
	if (is_carrier(tid)) {
		for (u = flexsc__uthreads_first(); u; u = u->all_next)
			look_at(u, &carriers);
	} else {
		u = flexsc__uthread_with(tid);
		if (u)
			look_at(u, &carriers);
	}
	flexsc__uthreads_unlock();
}

void flexsc__affinity_changed(struct uthread *self, int32_t tid)
{
	if (!flexsc__runtime.count)
		return;
	affinity_look_again(tid);
	flexsc__anchored_settle(self, tid);
}

long flexsc__affinity_set(struct uthread *u, const uint64_t args[6])
{
	int32_t tid = (int32_t)args[0] ? (int32_t)args[0] : u->host.k.tid;
	long ret = raw_syscall(SYS_sched_setaffinity, (uint64_t)tid, args[1],
			       args[2], 0, 0, 0);

	if (ret)
		return ret;
	atomic_store(&flexsc__runtime.inherited, true);
	flexsc__affinity_changed(u, tid);
	return 0;
}
