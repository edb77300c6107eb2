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
#include "strict.h"

void flexsc__life_begin(struct uthread *u, void *stack, sigmask_t mask,
			uint8_t anchored, uint32_t filter)
{
	memset(u, 0, sizeof(*u));
	flexsc__host_init(u, stack, mask);
	/*
	 * Inside the runtime, no signal handler runs. If one ran while this thread
	 * holds the lock of the list of user threads, the handler could wait for that
	 * lock forever.
	 */
	flexsc__enter(u);
	atomic_store(&u->anchored, anchored);
	u->filter = filter;
	flexsc__uthreads_add(u);
	/*
	 * Test "filtered" only after u is in the list. If another thread sets the flag
	 * after this test, flexsc__anchor_others() finds u in the list.
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
	/* In a child process that the thread forked, u isn't a user thread. */
	if (!u->alive || !u->listed)
		return;
	flexsc__enter(u);
	u->cause = CAUSE_ENDS;
	flexsc__return_to_host(u);
	u->host_only = true;
	/* Threads that have ended in strict mode are counted before this one. */
	flexsc__strict_count_ended();
	flexsc__count_program_ends();
	flexsc__cpuclock_end(u);
	flexsc__uthreads_remove(u);
	flexsc__polling_end(u);
	/*
	 * Wait for carriers that are still about to check u's wait, because they access
	 * u's memory.
	 */
	while (atomic_load(&u->recheck.requests))
		raw_syscall(SYS_sched_yield, 0, 0, 0, 0, 0, 0);
	flexsc__host_fini(u);
	/* flexsc__exit() handles signals that came meanwhile, for the process or u. */
	flexsc__exit(u);
}
