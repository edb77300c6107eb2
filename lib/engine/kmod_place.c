/* SPDX-License-Identifier: MIT */
/*
 * Placing entries: where the kmod engine has each submitted entry executed. An entry
 * goes to the module through the submission ring, to the pool, or to a plain system
 * call of the owner.
 *
 * The ring's producer and the lists of entries have one user at a time: the owner, or
 * the heir of a stuck owner (run/handover.h), which calls flexsc__kmod_place_again().
 */
#include <errno.h>
#include <poll.h>

#include "lib/base/compiler.h"
#include "lib/calls/call_info.h"
#include "lib/calls/partial.h"
#include "lib/files/closing.h"
#include "lib/files/fds.h"
#include "lib/files/plan.h"
#include "lib/loop/stats.h"
#include "kmod.h"

/*
 * Returns where the kernel may execute a call that may wait. The module may use the
 * owner's thread only if poll(2) reports the event that the call waits for, and if the
 * call can be continued after a partial transfer. The reason: when the owner is needed
 * in user mode, the module ends a call on the owner's thread, and returns what was
 * transferred so far.
 */
static unsigned int place_of_wait(struct flexsc_loop *loop, uint32_t index,
				  const struct call_info *row)
{
	const struct flexsc_entry *entry = entry_of(loop, index);
	const enum waits waits = flexsc__plan_waits(row, entry);

	if (waits != WAITS_POLLED && waits != WAITS_DEVICE)
		return FLEXSC_DEFER;
	if (row->dir == POLL_READ)
		return entry->args[row->flags_arg] & row->all ||
				       flexsc__fds_find_lowat((uint32_t)entry->args[0]) ?
			       FLEXSC_DEFER : FLEXSC_IF_READABLE;
	if (!flexsc__partial(entry) || row->length == LENGTH_MESSAGE)
		return FLEXSC_DEFER;
	if (!write_is_short(entry))
		flexsc__kmod_in_parts(loop, index);
	return FLEXSC_IF_WRITABLE;
}

/*
 * Returns where the kernel may execute a call: the FLEXSC_* bits of flexsc_entry.nargs.
 */
static unsigned int place_of(struct flexsc_loop *loop, uint32_t index,
			     const struct call_info *row, enum call_class class)
{
	if (class == CLASS_FAST)
		return 0;
	return FLEXSC_MAY_SLEEP |
	       (class == CLASS_DISK ? 0 : place_of_wait(loop, index, row));
}

int flexsc__kmod_kick(struct kmod *kmod)
{
	long result = command(kmod, FLEXSC_IOC_KICK, 0);

	if (result == FLEXSC_WAIT_MORE && !flexsc__kmod_thread_create(kmod))
		__atomic_store_n(&kmod->no_more, true, __ATOMIC_RELAXED);
	return result < 0 ? (int)result : 0;
}

/*
 * Called when the submission ring is full. The ring has room for each entry once, but
 * an entry that was cancelled and posted again is in it twice. Kick the module until
 * there is room. Fails if the program has installed a filter that forbids the kick.
 */
static COLD int kmod_make_room(struct kmod *kmod)
{
	int err = 0;

	while (!err &&
	       kmod->shared->tail -
			       __atomic_load_n(&kmod->shared->head,
					       __ATOMIC_ACQUIRE) >
		       kmod->mask)
		err = flexsc__kmod_kick(kmod);
	return err;
}

/* End an entry that the module doesn't execute, or doesn't continue. */
static COLD void kmod_refuse(struct flexsc_loop *loop, uint32_t index, int ret)
{
	call_of(loop, index)->where = POOL_NOT;
	call_refuse(loop, index, flexsc__kmod_finish(loop, index, ret));
}

/* Submit an entry. If the submission ring stays full, end the call with an error. */
static inline void kmod_push(struct flexsc_loop *loop, uint32_t index)
{
	struct kmod *kmod = kmod_of(loop);
	uint32_t tail = kmod->shared->tail;
	int err;

	if (tail - __atomic_load_n(&kmod->shared->head, __ATOMIC_RELAXED) >
	    kmod->mask) {
		err = kmod_make_room(kmod);
		if (err) {
			kmod_refuse(loop, index, err);
			return;
		}
	}
	call_of(loop, index)->where = POOL_FOREIGN;
	kmod->ring[tail & kmod->mask] = index;
	/* U4: publishes the index; pairs with the kernel's E4. */
	__atomic_store_n(&kmod->shared->tail, tail + 1, __ATOMIC_RELEASE);
}

/*
 * Is the submission ring empty, and no thread polling it? In that case, if a single
 * call was posted and can't block, the owner makes it as a plain system call: entering
 * the module would cost more than the call.
 */
static bool is_lone(const struct kmod *kmod)
{
	return !is_submitted(kmod) &&
	       __atomic_load_n(&kmod->shared->needs_kick, __ATOMIC_RELAXED);
}

/*
 * Called before a call that closes a descriptor is submitted: calls that wait for the
 * descriptor switch to a duplicate.
 */
static COLD void begin_closing(struct flexsc_loop *loop, uint32_t index)
{
	flexsc__closing_begin(entry_of(loop, index));
	call_of(loop, index)->route = BY_KERNEL_CLOSING;
}

static void kmod_place(struct flexsc_loop *loop, uint32_t index, bool lone)
{
	struct flexsc_entry *entry = entry_of(loop, index);
	const struct call_info *row = flexsc__call_info(entry->nr);
	enum call_class class = flexsc__call_class(row, entry);

	if (lone && class == CLASS_FAST)
		class = CLASS_SELF;
	switch (class) {
	case CLASS_SELF:
		plan_follow(entry);
		flexsc__engine_inline(loop, index);
		break;
	case CLASS_NEVER:
	case CLASS_NONE:
	case CLASS_RING:
		call_refuse(loop, index, -EOPNOTSUPP);
		break;
	case CLASS_ADMIN:
	case CLASS_WORK:
		call_of(loop, index)->route = BY_KERNEL;
		/*
		 * A pool makes CLASS_ADMIN calls and runs work, because the module does
		 * neither. If no syscall thread of a pool can be created, the call
		 * fails.
		 */
		if (!flexsc__kmod_to_pool(loop, index))
			call_refuse(loop, index, loop->no_thread);
		break;
	default:
		call_of(loop, index)->route = BY_KERNEL;
		if (row->fds && !plan_follow(entry))
			begin_closing(loop, index);
		if (unlikely(kmod_of(loop)->bouncing.spares) &&
		    flexsc__kmod_spare(loop, index, class))
			break;
		if (unlikely(atomic_load_explicit(&kmod_of(loop)->quit,
						  memory_order_relaxed))) {
			kmod_refuse(loop, index, loop->no_thread);
			break;
		}
		count(&loop->stats->by_kmod, 1);
		entry->nargs =
			(__u8)(row->nargs | place_of(loop, index, row, class));
		kmod_push(loop, index);
	}
}

COLD void flexsc__kmod_place_again(struct flexsc_loop *loop)
{
	struct kmod *kmod = kmod_of(loop);
	uint32_t index;

	while ((index = calls_take(loop, &kmod->again)) != NONE) {
		struct flexsc_entry *entry = entry_of(loop, index);

		if (entry_status(entry) != FLEXSC_SUBMITTED) {
			/*
			 * The call was cancelled. If it had transferred a part before,
			 * its result is that part's length.
			 */
			kmod_refuse(loop, index, -ECANCELED);
			continue;
		}
		if (atomic_load_explicit(&kmod->quit, memory_order_relaxed)) {
			count(&loop->stats->by_kmod, -1ULL);
			if (!flexsc__kmod_to_pool(loop, index))
				kmod_refuse(loop, index, loop->no_thread);
			continue;
		}
		entry->nargs = (entry->nargs & FLEXSC_NARGS_MASK) |
			       FLEXSC_MAY_SLEEP | FLEXSC_DEFER;
		kmod_push(loop, index);
	}
	kmod_submit_to_pool(kmod);
}

void flexsc__kmod_place_all(struct flexsc_loop *loop, bool waits)
{
	uint32_t n = 0, index, next;
	bool lone;

	if (kmod_of(loop)->again.count)
		flexsc__kmod_place_again(loop);
	if (!loop->groups)
		return;
	loop->groups = 0;
	if (unlikely(kmod_of(loop)->bouncing.spares))
		flexsc__kmod_try_again(loop);
	for (index = queue_take(&loop->submitted[0]); index != NONE;
	     index = next) {
		next = call_of(loop, index)->next;
		lone = waits && !n && next == NONE && is_lone(kmod_of(loop));
		n++;
		if (call_admit(loop, index))
			kmod_place(loop, index, lone);
	}
	kmod_submit_to_pool(kmod_of(loop));
	flexsc__stats_batch(loop, n);
}
