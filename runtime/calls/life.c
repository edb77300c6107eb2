/* SPDX-License-Identifier: MIT */
#include "life.h"

#include <string.h>

#include "runtime/counters/run_page.h"
#include "runtime/sched/anchored.h"
#include "runtime/sched/host.h"
#include "runtime/sched/thread_count.h"
#include "runtime/sched/state.h"
#include "runtime/sched/uthreads.h"
#include "affinity.h"
#include "cpuclock.h"
#include "polling.h"

void flexsc__life_begin(struct uthread *u, void *stack, sigmask_t mask,
			uint8_t anchored, uint32_t filter)
{
	memset(u, 0, sizeof(*u));
	flexsc__host_init(u, stack, mask);
	/*
	 * No signal handler runs inside the runtime. Otherwise a handler could wait
	 * forever for the list's lock, which this thread takes.
	 */
	flexsc__enter(u);
	atomic_store(&u->anchored, anchored);
	u->filter = filter;
	flexsc__uthreads_add(u);
	/*
	 * Test "filtered" only after u is listed. If it is set later,
	 * flexsc__anchor_others() finds u.
	 */
	if (atomic_load(&flexsc__runtime.filtered))
		atomic_fetch_or(&u->anchored, ANCHORED_FILTER);
	flexsc__affinity_begin(u);
	flexsc__cpuclock_begin(u);
	u->alive = true;
	flexsc__exit(u);
}

void flexsc__life_end(struct uthread *u)
{
	/* In a child that the thread's function forked, u isn't a user thread. */
	if (!u->alive)
		return;
	flexsc__enter(u);
	u->cause = CAUSE_ENDS;
	flexsc__return_to_host(u);
	u->host_only = true;
	flexsc__count_program_ends();
	flexsc__cpuclock_end(u);
	flexsc__uthreads_remove(u);
	flexsc__polling_end(u);
	/*
	 * A carrier may still be about to check u's wait, for which u's memory must
	 * exist.
	 */
	while (atomic_load(&u->recheck.requests))
		raw_syscall(SYS_sched_yield, 0, 0, 0, 0, 0, 0);
	flexsc__host_fini(u);
	/* The exit handles signals that came meanwhile, for the process or for u. */
	flexsc__exit(u);
}
