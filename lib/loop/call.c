/* SPDX-License-Identifier: MIT */
/*
 * Posting calls and consuming their results. Owner only.
 */
#include "loop.h"

#include <errno.h>
#include <string.h>

#include "../base/compiler.h"
#include "../calls/table.h"

#define CHAINED		0x80U	/* in loop->chain: there is one */
#define WAITING		0U	/* the element that heads the waiting list */
#define HELD_MAX	(1U << 24)

/* Take a free entry; NONE if there is none and can't be. */
static uint32_t take_free(struct flexsc_loop *loop)
{
	uint32_t index = loop->free;

	if (index == NONE) {
		if (!flexsc__pages_grow(loop))
			return NONE;
		index = loop->free;
	}
	loop->free = call_of(loop, index)->next;
	return index;
}

/* The entry is filled: it goes with the next batch. */
static inline void submit(struct flexsc_loop *loop, uint32_t index,
			  const struct table_row *row, struct flexsc_cb *cb)
{
	unsigned int group = row->op & loop->group_mask;
	struct call *call = call_of(loop, index);

	call->cb = cb;
	if (cb)
		cb->handle = handle_make(HANDLE_CALL, index);
	entry_submit(entry_of(loop, index));
	queue_append(&loop->submitted[group], call, index);
	loop->groups |= 1ULL << group;
}

/* Held calls. */

static void held_unlink(struct flexsc_loop *loop, struct held *held)
{
	held_of(loop, held->prev)->next = held->next;
	held_of(loop, held->next)->prev = held->prev;
	loop->waiting--;
}

static void held_wait(struct flexsc_loop *loop, uint32_t index)
{
	struct held *held = held_of(loop, index);
	struct held *head = held_of(loop, WAITING);

	held->state = HELD_WAITING;
	held->next = WAITING;
	held->prev = head->prev;
	held_of(loop, head->prev)->next = index;
	head->prev = index;
	count(&loop->stats->waited, 1);
	loop->waiting++;
}

static bool held_grow(struct flexsc_loop *loop)
{
	uint32_t first = loop->held.count;

	if (flexsc__arena_grow(&loop->held))
		return false;
	for (uint32_t i = loop->held.count; i-- > first;) {
		held_of(loop, i)->next = loop->held_free;
		loop->held_free = i;
	}
	return true;
}

static void held_free(struct flexsc_loop *loop, uint32_t index)
{
	struct held *held = held_of(loop, index);

	flexsc__deadline_clear(loop, &held->deadline);
	held->state = HELD_FREE;
	held->cb = NULL;
	held->next = loop->held_free;
	loop->held_free = index;
}

int flexsc__held_init(struct flexsc_loop *loop)
{
	int err = flexsc__arena_init(&loop->held, sizeof(struct held), HELD_MAX);

	loop->held_free = NONE;
	if (err)
		return err;
	if (!held_grow(loop))
		return -ENOMEM;
	/* Element 0 came first off the free list: it heads the waiting. */
	loop->held_free = held_of(loop, WAITING)->next;
	held_of(loop, WAITING)->next = WAITING;
	held_of(loop, WAITING)->prev = WAITING;
	return 0;
}

/* What a predecessor, an entry or a held call, says is chained to it. */
static uint32_t *chained_to(struct flexsc_loop *loop, enum handle_kind kind,
			    uint32_t index)
{
	return kind == HANDLE_CALL ? &call_of(loop, index)->chained :
				     &held_of(loop, index)->chained;
}

static void held_attach(struct flexsc_loop *loop, uint32_t index,
			enum handle_kind kind, uint32_t before)
{
	struct held *held = held_of(loop, index);

	held->state = HELD_CHAINED;
	held->before = before;
	held->before_kind = kind;
	*chained_to(loop, kind, before) = index;
}

/* A held call's turn has come: it moves into a free entry. */
static void held_start(struct flexsc_loop *loop, uint32_t index,
		       uint32_t entry_index)
{
	struct held *held = held_of(loop, index);
	const struct table_row *row = flexsc__table_row(held->nr);
	struct flexsc_entry *entry = entry_of(loop, entry_index);
	struct call *call = call_of(loop, entry_index);

	entry->nr = held->nr;
	entry->nargs = row->nargs;
	memcpy(entry->args, held->args, sizeof(entry->args));
	call->chained = held->chained;
	if (held->chained != NO_HELD)
		held_attach(loop, held->chained, HANDLE_CALL, entry_index);
	call->deadline = held->deadline;
	if (held->deadline) {
		struct timer *timer = wheel_timer(&loop->wheel, held->deadline);

		timer->kind = TIMER_CALL;
		timer->owner = entry_index;
		held->deadline = TIMER_NONE;
	}
	if (loop->last == handle_make(HANDLE_HELD, index))
		loop->last = handle_make(HANDLE_CALL, entry_index);
	submit(loop, entry_index, row, held->cb);
	held_free(loop, index);
}

/* What was posted last has completed. */
static void forget_last(struct flexsc_loop *loop, uint64_t handle, int64_t ret)
{
	if (loop->last != handle)
		return;
	loop->last = 0;
	loop->last_ret = ret;
}

/* Complete a held call that has not run, without its successors. */
static void held_complete(struct flexsc_loop *loop, uint32_t index,
			  int64_t ret)
{
	struct flexsc_cb *cb = held_of(loop, index)->cb;

	forget_last(loop, handle_make(HANDLE_HELD, index), ret);
	held_free(loop, index);
	loop->completed++;
	count(&loop->stats->cancelled, 1);
	if (cb) {
		loop->events++;
		flexsc__ready(loop, cb, ret);
	}
}

/* A call's predecessor has completed with ret: hand it over if asked to. */
static void chain_result(struct held *held, int64_t ret)
{
	unsigned int arg = held->chain & ~FLEXSC_CHAIN_ALWAYS;

	if (arg)
		held->args[arg - 1] = (uint64_t)ret;
	held->chain &= FLEXSC_CHAIN_ALWAYS;
}

/*
 * Complete a held call with ret, and those chained to it with -ECANCELED, up
 * to one that runs always: that one is returned, or NO_HELD.
 */
static uint32_t held_drop(struct flexsc_loop *loop, uint32_t index,
			  int64_t ret)
{
	do {
		uint32_t next = held_of(loop, index)->chained;

		held_complete(loop, index, ret);
		index = next;
		ret = -ECANCELED;
	} while (index != NO_HELD &&
		 !(held_of(loop, index)->chain & FLEXSC_CHAIN_ALWAYS));
	if (index != NO_HELD)
		chain_result(held_of(loop, index), ret);
	return index;
}

/*
 * End a held call before its turn. One chained to it that runs always follows
 * whatever the ended one was waiting for.
 */
void flexsc__held_end(struct flexsc_loop *loop, uint32_t index, int64_t ret)
{
	struct held *held = held_of(loop, index);
	bool chained = held->state == HELD_CHAINED;
	enum handle_kind kind = held->before_kind;
	uint32_t before = held->before;

	if (chained)
		*chained_to(loop, kind, before) = NO_HELD;
	else
		held_unlink(loop, held);
	index = held_drop(loop, index, ret);
	if (index == NO_HELD)
		return;
	if (chained)
		held_attach(loop, index, kind, before);
	else
		held_wait(loop, index);
}

/* A predecessor has completed: start what is chained to it, or end it. */
static void chain_go(struct flexsc_loop *loop, uint32_t index, int64_t ret)
{
	uint32_t entry;

	if (ret < 0 && !(held_of(loop, index)->chain & FLEXSC_CHAIN_ALWAYS))
		index = held_drop(loop, index, -ECANCELED);
	else
		chain_result(held_of(loop, index), ret);
	if (index == NO_HELD)
		return;
	entry = take_free(loop);
	if (entry != NONE)
		held_start(loop, index, entry);
	else
		held_wait(loop, index);
}

/* Posting. */

bool flexsc__cb_pending(struct flexsc_loop *loop, const struct flexsc_cb *cb)
{
	uint64_t index = handle_index(cb->handle);

	switch (handle_kind(cb->handle)) {
	case HANDLE_CALL:
		return index < loop->calls.count &&
		       call_of(loop, (uint32_t)index)->cb == cb;
	case HANDLE_HELD:
		return index < loop->held.count &&
		       held_of(loop, (uint32_t)index)->cb == cb;
	case HANDLE_TIMER:
		return index < loop->wheel.timers.count &&
		       wheel_timer(&loop->wheel, (uint32_t)index)->owner ==
			       (uintptr_t)cb;
	case HANDLE_SIGNAL:
		return flexsc__signal_find(loop, cb) != NULL;
	case HANDLE_NONE:
		break;
	}
	return false;
}

/* May something be posted on this loop, with this cb? */
int flexsc__post_check(struct flexsc_loop *loop, struct flexsc_cb *cb)
{
	if (!loop)
		return -EINVAL;
	if (loop->stale)
		return -ESTALE;
	if (loop->closing)
		return -ESHUTDOWN;
#ifdef FLEXSC_CHECKS
	if (cb && flexsc__cb_pending(loop, cb))
		return -EBUSY;
#else
	(void)cb;
#endif
	return 0;
}

/* Post where no entry can be had now: behind another, or behind all. */
static int post_held(struct flexsc_loop *loop, struct flexsc_cb *cb,
		     const struct held *call)
{
	uint32_t index = loop->held_free;
	uint64_t last = loop->last;
	struct held *held;

	if (index == NONE) {
		if (!held_grow(loop))
			return -ENOMEM;
		index = loop->held_free;
	}
	held = held_of(loop, index);
	loop->held_free = held->next;
	*held = *call;
	held->cb = cb;
	held->chain &= (uint8_t)~CHAINED;
	held->chained = NO_HELD;
	held->deadline = TIMER_NONE;
	if (cb)
		cb->handle = handle_make(HANDLE_HELD, index);
	loop->posted++;
	loop->last = handle_make(HANDLE_HELD, index);
	if (!(call->chain & CHAINED))
		held_wait(loop, index);
	else if (last)
		held_attach(loop, index, handle_kind(last),
			    (uint32_t)handle_index(last));
	else	/* its predecessor has completed meanwhile */
		chain_go(loop, index, loop->last_ret);
	return 0;
}

/* The number of no call that can be posted. */
static COLD int refused(struct flexsc_loop *loop, unsigned int nr)
{
	loop->chain = 0;
	return flexsc__table_row(nr)->class == CLASS_NEVER ? -EOPNOTSUPP :
							     -ENOSYS;
}

/*
 * Fill a free entry: there is one, and nothing waits for it. As few
 * instructions as can be, for this and flexsc__call_retire() are what a call
 * costs in user mode besides the engine's part. So the arguments are stored
 * before anything is looked at, to have their registers free.
 */
static __attribute__((noinline)) int
post(struct flexsc_loop *loop, struct flexsc_cb *cb, unsigned int nr,
     uint64_t a0, uint64_t a1, uint64_t a2, uint64_t a3, uint64_t a4,
     uint64_t a5)
{
	uint32_t index = loop->free;
	struct flexsc_entry *entry = entry_of(loop, index);

	entry->args[0] = a0;
	entry->args[1] = a1;
	entry->args[2] = a2;
	entry->args[3] = a3;
	entry->args[4] = a4;
	entry->args[5] = a5;
	if (nr >= flexsc__table_size || !table_accepts(&flexsc__table[nr]))
		return refused(loop, nr);
	loop->free = call_of(loop, index)->next;
	entry->nr = (uint16_t)nr;
	entry->nargs = flexsc__table[nr].nargs;
	submit(loop, index, &flexsc__table[nr], cb);
	loop->last = handle_make(HANDLE_CALL, index);
	loop->posted++;
	return 0;
}

static COLD int post_otherwise(struct flexsc_loop *loop, struct flexsc_cb *cb,
			       unsigned int nr, uint64_t a0, uint64_t a1,
			       uint64_t a2, uint64_t a3, uint64_t a4,
			       uint64_t a5)
{
	struct held call = {
		.nr = (uint16_t)nr,
		.args = { a0, a1, a2, a3, a4, a5 },
	};
	int err = flexsc__post_check(loop, cb);

	if (err)
		return err;
	if (!table_accepts(flexsc__table_row(nr)))
		return refused(loop, nr);
	call.chain = loop->chain;
	loop->chain = 0;
	if (!call.chain && !loop->waiting &&
	    (loop->free != NONE || flexsc__pages_grow(loop)))
		return post(loop, cb, nr, a0, a1, a2, a3, a4, a5);
	return post_held(loop, cb, &call);
}

#ifdef FLEXSC_CHECKS
#define CHECKS	true
#else
#define CHECKS	false
#endif

int flexsc_loop_call(struct flexsc_loop *loop, struct flexsc_cb *cb,
		     unsigned int nr, uint64_t a0, uint64_t a1, uint64_t a2,
		     uint64_t a3, uint64_t a4, uint64_t a5)
{
	if (CHECKS || !loop || loop->unusual || loop->free == NONE)
		return post_otherwise(loop, cb, nr, a0, a1, a2, a3, a4, a5);
	return post(loop, cb, nr, a0, a1, a2, a3, a4, a5);
}

int flexsc_loop_chain(struct flexsc_loop *loop, unsigned int flags)
{
	int err = flexsc__post_check(loop, NULL);

	if (err)
		return err;
	if ((flags & ~FLEXSC_CHAIN_ALWAYS) > FLEXSC_ARGS_MAX)
		return -EINVAL;
	if (!loop->last)
		return -ESRCH;
	loop->chain = (uint8_t)(flags | CHAINED);
	return 0;
}

/* Consuming. */

/* What the caller gets to see of the result of a call that was cancelled. */
static int64_t cancelled(struct flexsc_loop *loop, struct call *call,
			 int64_t ret)
{
	enum cancel_cause cause = call->cancel;

	call->cancel = CANCEL_NOT;
	if ((ret != -EINTR && ret != -ECANCELED) || cause == CANCEL_TOLD)
		return ret;
	count(&loop->stats->cancelled, 1);
	return cause == CANCEL_DEADLINE ? -ETIME : ret;
}

/*
 * It was cancelled before it started, with no part done. Its callback needn't
 * wait until an engine comes to see that, unless calls wait for it as well.
 */
void flexsc__call_unstarted(struct flexsc_loop *loop, uint32_t index)
{
	struct call *call = call_of(loop, index);
	struct flexsc_cb *cb = call->cb;

	if (!cb || call->chained != NO_HELD)
		return;
	flexsc__deadline_clear(loop, &call->deadline);
	call->cb = NULL;
	loop->events++;
	flexsc__ready(loop, cb, cancelled(loop, call, -ECANCELED));
	call->cancel = CANCEL_TOLD;
}

/* An entry is free: it is for the call that waits longest. */
static void start_waiting(struct flexsc_loop *loop)
{
	uint32_t first = held_of(loop, WAITING)->next;

	held_unlink(loop, held_of(loop, first));
	held_start(loop, first, take_free(loop));
}

static inline void retire(struct flexsc_loop *loop, uint32_t index,
			  int64_t ret)
{
	struct call *call = call_of(loop, index);

	forget_last(loop, handle_make(HANDLE_CALL, index), ret);
	call->cb = NULL;
	call->gen++;
	call->next = loop->free;
	loop->free = index;
	entry_free(entry_of(loop, index));
	loop->completed++;
}

/* The same where there is more to be done than running the callback. */
static COLD void retire_otherwise(struct flexsc_loop *loop, uint32_t index)
{
	struct call *call = call_of(loop, index);
	struct flexsc_cb *cb = call->cb;
	uint32_t chained = call->chained;
	int64_t ret = entry_of(loop, index)->ret;

	flexsc__deadline_clear(loop, &call->deadline);
	if (call->cancel != CANCEL_NOT)
		ret = cancelled(loop, call, ret);
	call->chained = NO_HELD;
	retire(loop, index, ret);
	if (chained != NO_HELD)
		chain_go(loop, chained, ret);
	if (loop->waiting && loop->free != NONE)
		start_waiting(loop);
	if (cb)
		callback(cb, ret);
}

/*
 * A done entry: free it, start what waited for it, run its callback. All of
 * the library's own work comes first, since the callback may post, cancel, or
 * free what the cb lives in.
 */
void flexsc__call_retire(struct flexsc_loop *loop, uint32_t index)
{
	const struct call *call = call_of(loop, index);
	struct flexsc_cb *cb = call->cb;
	int64_t ret = entry_of(loop, index)->ret;

	if (call->deadline | call->chained | call->cancel | loop->waiting) {
		retire_otherwise(loop, index);
		return;
	}
	retire(loop, index, ret);
	if (cb)
		callback(cb, ret);
}
