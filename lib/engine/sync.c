/* SPDX-License-Identifier: MIT */
/*
 * The sync engine: the owner makes plain system calls at submission. The other engines
 * are measured and tested against it. A call that blocks stops the loop.
 */
#include "engine.h"
#include "lib/base/ask.h"
#include "lib/loop/await.h"
#include "lib/loop/loop.h"
#include "lib/loop/stats.h"
#include "lib/loop/work.h"
#include "sleep.h"

static int sync_open(struct flexsc_loop *loop)
{
	(void)loop;
	return 0;
}

/* Handle an entry whose number isn't that of a system call. */
static void sync_other(struct flexsc_loop *loop, uint32_t index)
{
	const struct flexsc_entry *entry = entry_of(loop, index);
	int64_t ret;

	entry_begin_alone(entry_of(loop, index));
	count(&loop->stats->by_inline, 1);
	if (work_is(entry))
		ret = work_run(entry);
	else
		ret = ask(SYS_ppoll, entry->args[AWAIT_RECORD], 1, 0, 0, 0, 0);
	call_done(loop, index, ret);
}

static void sync_submit(struct flexsc_loop *loop)
{
	uint32_t n = 0, index, next;

	if (!loop->groups)
		return;
	loop->groups = 0;
	for (index = queue_take(&loop->submitted[0]); index != NONE; index = next) {
		next = call_of(loop, index)->next;
		n++;
		if (!call_admit(loop, index))
			continue;
		if (work_is(entry_of(loop, index)) ||
		    await_is(entry_of(loop, index)))
			sync_other(loop, index);
		else
			flexsc__engine_inline(loop, index);
	}
	flexsc__stats_batch(loop, n);
}

static int sync_wait(struct flexsc_loop *loop, uint64_t ns)
{
	sync_submit(loop);
	flexsc__engine_sleep(loop, ns);
	return 0;
}

static void sync_cancel(struct flexsc_loop *loop, uint32_t index)
{
	/* Nothing to cancel: an entry is BUSY only while the owner executes it. */
	(void)loop;
	(void)index;
}

static void sync_close(struct flexsc_loop *loop)
{
	(void)loop;
}

const struct engine flexsc__engine_sync = {
	.name = "sync",
	.open = sync_open,
	.submit = sync_submit,
	.wait = sync_wait,
	.wake = flexsc__engine_ring,
	.cancel = sync_cancel,
	.close = sync_close,
	.forked = sync_close,
};
