/* SPDX-License-Identifier: MIT */
/*
 * Posting calls and consuming their results. Owner only.
 */
#include "call.h"

#include <errno.h>
#include <string.h>

#include "lib/base/compiler.h"
#include "lib/base/poll.h"
#include "lib/base/syscall.h"
#include "lib/calls/call_info.h"
#include "direct.h"
#include "staged.h"
#include "submit.h"
#include "stats.h"

/* Posting. */

/* Returns the error for a call whose number can't be posted. */
static COLD int call_refuse_number(struct flexsc_loop *loop, unsigned int nr)
{
	loop_assert_owner(loop);
	return flexsc__call_info(nr)->class == CLASS_NEVER ? -EOPNOTSUPP :
							     -ENOSYS;
}

static COLD int call_post_otherwise(struct flexsc_loop *loop,
				    struct flexsc_cb *cb, unsigned int nr,
				    uint64_t a0, uint64_t a1, uint64_t a2,
				    uint64_t a3, uint64_t a4, uint64_t a5)
{
	struct staged call = {
		.nr = (uint16_t)nr,
		.args = { a0, a1, a2, a3, a4, a5 },
	};
	int err = loop ? flexsc__post_check(loop, cb) : -ENXIO;

	if (err)
		return err;
	if (!call_can_be_posted(flexsc__call_info(nr)))
		return call_refuse_number(loop, nr);
	if (!flexsc__loop_has_entry(loop))
		return flexsc__staged_post(loop, cb, &call, 0);
	return loop->posts[nr](loop, cb, nr, a0, a1, a2, a3, a4, a5);
}

/*
 * Fill a free entry; if none is free, stage the call. This function and
 * flexsc__call_retire() are a call's cost in user mode, apart from the engine. So both
 * have as few instructions as possible: for example, this one stores the arguments
 * first, which frees their registers.
 */
static inline __attribute__((always_inline)) int
call_post(struct flexsc_loop *loop, struct flexsc_cb *cb, unsigned int nr,
	  uint64_t a0, uint64_t a1, uint64_t a2, uint64_t a3, uint64_t a4,
	  uint64_t a5)
{
	uint32_t index = loop->free;
	struct flexsc_entry *entry = entry_of(loop, index);

	loop_assert_owner(loop);
	if (index == NONE)
		return call_post_otherwise(loop, cb, nr, a0, a1, a2, a3, a4, a5);
	entry->args[0] = a0;
	entry->args[1] = a1;
	entry->args[2] = a2;
	entry->args[3] = a3;
	entry->args[4] = a4;
	entry->args[5] = a5;
	loop->free = call_of(loop, index)->next;
	entry->nr = (uint16_t)nr;
	entry->nargs = flexsc__calls[nr].nargs;
	submit(loop, index, &flexsc__calls[nr], cb);
	loop->posted++;
	return 0;
}

int flexsc__post_entry(struct flexsc_loop *loop, struct flexsc_cb *cb,
		       unsigned int nr, uint64_t a0, uint64_t a1, uint64_t a2,
		       uint64_t a3, uint64_t a4, uint64_t a5)
{
	return call_post(loop, cb, nr, a0, a1, a2, a3, a4, a5);
}

int flexsc__post_entry3(struct flexsc_loop *loop, struct flexsc_cb *cb,
			unsigned int nr, uint64_t a0, uint64_t a1, uint64_t a2)
{
	return call_post(loop, cb, nr, a0, a1, a2, 0, 0, 0);
}

static int call_post_refused(struct flexsc_loop *loop, struct flexsc_cb *cb,
			     unsigned int nr, uint64_t a0, uint64_t a1,
			     uint64_t a2, uint64_t a3, uint64_t a4, uint64_t a5)
{
	return call_refuse_number(loop, nr);
}

static int call_post3_refused(struct flexsc_loop *loop, struct flexsc_cb *cb,
			      unsigned int nr, uint64_t a0, uint64_t a1,
			      uint64_t a2)
{
	return call_refuse_number(loop, nr);
}

void flexsc__posts_init(struct flexsc_loop *loop)
{
	for (unsigned int nr = 0; nr < CALLS_ROOM; nr++) {
		bool accepts = call_can_be_posted(flexsc__call_info(nr));

		loop->posts[nr] = accepts ? flexsc__post_entry :
					    call_post_refused;
		loop->posts3[nr] = accepts ? flexsc__post_entry3 :
					     call_post3_refused;
	}
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
	if (CHECKS || !loop || loop->unusual || nr >= CALLS_ROOM)
		return call_post_otherwise(loop, cb, nr, a0, a1, a2, a3, a4, a5);
	return loop->posts[nr](loop, cb, nr, a0, a1, a2, a3, a4, a5);
}

int flexsc__call3(struct flexsc_loop *loop, struct flexsc_cb *cb,
		      unsigned int nr, uint64_t a0, uint64_t a1, uint64_t a2)
{
	if (CHECKS || !loop || loop->unusual || nr >= CALLS_ROOM)
		return call_post_otherwise(loop, cb, nr, a0, a1, a2, 0, 0, 0);
	return loop->posts3[nr](loop, cb, nr, a0, a1, a2);
}

int flexsc__call_poll(struct flexsc_loop *loop, struct flexsc_cb *cb,
		      struct pollfd *one)
{
	int err = flexsc_loop_call(loop, cb, POLL_NR, PTR(one), 1, POLL_FOREVER, 0,
				   0, 0);

	/*
	 * A staged call has no struct call yet, so "poll_waits" can't be set. The
	 * engine will therefore query the kernel before it lets the call wait.
	 */
	if (!err && handle_kind(cb->handle) == HANDLE_CALL)
		call_of(loop, (uint32_t)handle_index(cb->handle))->poll_waits =
			true;
	return err;
}

static bool chain_flags_known(unsigned int flags)
{
	const unsigned int how = FLEXSC_CHAIN_ALWAYS | FLEXSC_CHAIN_FULL;
	const unsigned int arg = flags & ~(how | FLEXSC_CHAIN_SAME);

	return arg <= FLEXSC_ARGS_MAX && (flags & how) != how &&
	       (arg || !(flags & FLEXSC_CHAIN_SAME));
}

/* Is a value to replace an argument of the cb's call, and hasn't replaced it yet? */
static bool call_awaits_argument(struct flexsc_loop *loop,
				 const struct flexsc_cb *cb)
{
	return handle_kind(cb->handle) == HANDLE_STAGED &&
	       staged_of(loop, (uint32_t)handle_index(cb->handle))->chain &
		       CHAIN_ARGS;
}

/* Is the cb pending as a call, with or without an entry? */
static bool call_pending(struct flexsc_loop *loop, const struct flexsc_cb *cb)
{
	enum handle_kind kind = handle_kind(cb->handle);

	return (kind == HANDLE_CALL || kind == HANDLE_STAGED) &&
	       flexsc__cb_pending(loop, cb);
}

int flexsc__post_after(struct flexsc_loop *loop, struct flexsc_cb *cb,
		       const struct flexsc_cb *before, struct staged *call,
		       unsigned int chain)
{
	if (!before || before == cb || !chain_flags_known(chain))
		return -EINVAL;
	if (!call_pending(loop, before))
		return -ENOENT;
	if (chain & FLEXSC_CHAIN_SAME && !call_awaits_argument(loop, before))
		return -EINVAL;
	call->chain = (uint8_t)chain;
	return flexsc__staged_post(loop, cb, call, before->handle);
}

int flexsc_loop_call_after(struct flexsc_loop *loop, struct flexsc_cb *cb,
			   struct flexsc_cb *before, unsigned int chain,
			   unsigned int nr, const uint64_t args[6])
{
	struct staged call = { .nr = (uint16_t)nr };
	int err = flexsc__post_check(loop, cb);

	if (err)
		return err;
	if (!args)
		return -EINVAL;
	if (flexsc__call_info(nr)->class == CLASS_NEVER)
		return -EOPNOTSUPP;
	if (!call_can_be_posted(flexsc__call_info(nr)))
		return -ENOSYS;
	memcpy(call.args, args, sizeof(call.args));
	return flexsc__post_after(loop, cb, before, &call, chain);
}

/* Consuming. */

/* Returns the result of a cancelled call, as the program sees it. */
static int64_t call_cancel_result(struct flexsc_loop *loop, struct call *call,
				  int64_t ret)
{
	enum cancel_cause cause = call->cancel;

	call->cancel = CANCEL_NOT;
	if ((ret != -EINTR && ret != -ECANCELED) || cause == CANCEL_REPORTED)
		return ret;
	count_shared(&loop->stats->cancelled, 1);
	return cause == CANCEL_DEADLINE ? -ETIME : ret;
}

/*
 * Called when a call was cancelled before any part of it started: put its cb into the
 * ready list now, instead of when an engine skips the entry. If another call is chained
 * to this one, leave the cb to the entry, whose completion also continues the chain.
 */
void flexsc__call_unstarted(struct flexsc_loop *loop, uint32_t index)
{
	struct call *call = call_of(loop, index);
	struct flexsc_cb *cb = call->cb;

	loop_assert_owner(loop);
	if (!cb || call->chained != NO_STAGED)
		return;
	wheel_clear(&loop->wheel, &call->deadline);
	call->cb = NULL;
	loop->events++;
	flexsc__ready(loop, cb, call_cancel_result(loop, call, -ECANCELED));
	call->cancel = CANCEL_REPORTED;
}

static inline void call_free_entry(struct flexsc_loop *loop, uint32_t index)
{
	struct call *call = call_of(loop, index);

	call->cb = NULL;
	call->gen++;
	call->next = loop->free;
	loop->free = index;
	entry_free(entry_of(loop, index));
	loop->completed++;
}

/*
 * Retire a call that needs other steps before its callback runs, such as starting a
 * chained call. Returns its cb, or NULL.
 */
static COLD struct flexsc_cb *call_retire_rest(struct flexsc_loop *loop,
					       uint32_t index, int64_t ret)
{
	struct call *call = call_of(loop, index);
	bool direct = call_is_direct(call);
	struct flexsc_cb *cb = call->cb;
	/* The engine has started the successor, if that one has an entry. */
	uint32_t chained = call->chained == CHAINED_ENTRY ? NO_STAGED :
							    call->chained;
	unsigned int chain = chained != NO_STAGED ?
				     staged_of(loop, chained)->chain :
				     0;
	bool reported = call->cancel == CANCEL_REPORTED;
	int64_t outcome;

	wheel_clear(&loop->wheel, &call->deadline);
	if (call->cancel != CANCEL_NOT)
		ret = call_cancel_result(loop, call, ret);
	call->chained = NO_STAGED;
	if (direct && chain & FLEXSC_CHAIN_FULL)
		flexsc__direct_describe(loop, index);
	outcome = flexsc__chain_outcome(chain, entry_of(loop, index), ret);
	if (direct) {
		direct_free(loop, call);
	} else {
		/*
		 * A call that was cancelled before the uring engine routed it still has
		 * "poll_waits" set. The next call at this index must not inherit the
		 * flag.
		 */
		call->poll_waits = false;
		call_free_entry(loop, index);
	}
	if (chained != NO_STAGED)
		flexsc__staged_go(loop, chained, outcome);
	if (loop->waiting && loop->free != NONE)
		flexsc__staged_next(loop);
	if (cb)
		return cb_complete(cb, ret);
	if (!reported)
		flexsc__stats_unreported(loop, ret);
	return NULL;
}

COLD void flexsc__call_retire_otherwise(struct flexsc_loop *loop,
					uint32_t index, int64_t ret)
{
	struct flexsc_cb *cb = call_retire_rest(loop, index, ret);

	if (cb && cb->callback)
		cb->callback(cb);
}

/*
 * Frees a done entry, starts the calls that waited for it, and then runs the callback
 * of the done call. The callback comes last, because it may post, cancel, or free the
 * memory of the cb.
 */
void flexsc__call_retire(struct flexsc_loop *loop, uint32_t index)
{
	const struct call *call = call_of(loop, index);
	struct flexsc_cb *cb = call->cb;
	int64_t ret = entry_of(loop, index)->ret;

	if (call->links | call->cancel | loop->unusual) {
		flexsc__call_retire_otherwise(loop, index, ret);
		return;
	}
	call_free_entry(loop, index);
	if (cb)
		callback(cb, ret);
	else
		flexsc__stats_unreported(loop, ret);
}

struct flexsc_cb *flexsc__call_harvest(struct flexsc_loop *loop,
				       uint32_t index)
{
	return call_retire_rest(loop, index, entry_of(loop, index)->ret);
}
