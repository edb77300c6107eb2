/* SPDX-License-Identifier: MIT */
/*
 * The threads engine: a pool of syscall threads executes all calls except those that
 * act on the calling thread, which the owner makes itself. Needs no privileges and
 * works on any kernel.
 */
#include <errno.h>
#include <stdio.h>

#include "engine.h"
#include "lib/files/fds.h"
#include "lib/files/plan.h"
#include "lib/loop/loop.h"
#include "lib/pool/pool.h"
#include "lib/calls/call_info.h"
#include "lib/loop/stats.h"
#include "sleep.h"

/* call->route: does another entry lead to this one (loop/staged.h)? */
enum route {
	ROUTE_ALONE = 0,
	ROUTE_LINKED,
};

static int threads_open(struct flexsc_loop *loop)
{
	int err = flexsc__pool_create(loop, loop->options.max_threads);

	if (err == -EAGAIN) {
		snprintf(loop->why, sizeof(loop->why),
			 "no thread can be created: RLIMIT_NPROC or the "
			 "cgroup's pids.max is reached");
		return -EOPNOTSUPP;
	}
	return err;
}

static void threads_submit(struct flexsc_loop *loop)
{
	struct call_list pooled = { 0 };
	uint32_t n = 0, index, next;

	if (!loop->groups)
		return;
	loop->groups = 0;
	for (index = queue_take(&loop->submitted[0]); index != NONE; index = next) {
		unsigned int nr = entry_of(loop, index)->nr;

		next = call_of(loop, index)->next;
		n++;
		if (!call_admit(loop, index))
			continue;
		plan_follow(entry_of(loop, index));
		if (flexsc__call_info(nr)->class == CLASS_SELF)
			flexsc__engine_inline(loop, index);
		else if (!flexsc__engine_look(loop, index)) {
			call_of(loop, index)->route = ROUTE_ALONE;
			n += flexsc__staged_link(loop, index, ROUTE_LINKED);
			calls_append(loop, &pooled, index);
		}
	}
	flexsc__pool_submit(loop_pool(loop), &pooled);
	flexsc__stats_batch(loop, n);
}

static int threads_wait(struct flexsc_loop *loop, uint64_t ns)
{
	threads_submit(loop);
	flexsc__engine_sleep(loop, ns);
	return 0;
}

/* A lock guards the pool's lists, and any thread may interrupt syscall threads. */
static bool threads_cancels_anywhere(const struct flexsc_loop *loop)
{
	(void)loop;
	return true;
}

static void threads_cancel(struct flexsc_loop *loop, uint32_t index)
{
	flexsc__pool_cancel(loop_pool(loop), index);
}

static bool threads_unchain(struct flexsc_loop *loop, uint32_t index)
{
	return call_of(loop, index)->route == ROUTE_LINKED &&
	       flexsc__pool_unchain(loop_pool(loop), index);
}

/* A syscall thread may be executing any entry that has begun: report REACH_EXECUTED. */
static enum reach threads_reach(struct flexsc_loop *loop, uint32_t index)
{
	(void)loop;
	(void)index;
	return REACH_EXECUTED;
}

/* The loop ends the pool, and this engine has nothing else to close. */
static void threads_close(struct flexsc_loop *loop)
{
	(void)loop;
}

const struct engine flexsc__engine_threads = {
	.name = "threads",
	.open = threads_open,
	.submit = threads_submit,
	.wait = threads_wait,
	.wake = flexsc__engine_ring,
	.cancel = threads_cancel,
	.unchain = threads_unchain,
	.reach = threads_reach,
	.cancels_anywhere = threads_cancels_anywhere,
	.close = threads_close,
	.forked = threads_close,
};
