/* SPDX-License-Identifier: MIT */

#include <errno.h>
#include <netinet/in.h>

#include "lib/base/compiler.h"
#include "lib/calls/partial.h"
#include "lib/calls/call_info.h"
#include "lib/files/closing.h"
#include "lib/files/probe.h"
#include "kmod.h"

/* Has the entry sent a part on a TCP connection? */
static bool sent_by_tcp(struct flexsc_loop *loop, uint32_t index)
{
	if (!flexsc__partial_begun(&call_of(loop, index)->partial))
		return false;
	flexsc__call_renew(loop, index);
	return flexsc__probe_option((uint32_t)entry_of(loop, index)->args[0],
				    SO_PROTOCOL) == IPPROTO_TCP;
}

/*
 * Submit the entry once more, to a syscall thread. Until that thread takes the entry,
 * the kernel doesn't hold the call's files. The program may close the descriptors
 * meanwhile, so the arguments of a write name duplicates. The descriptor of a file on a
 * disk isn't duplicated (files/guard.h): a thread of the pool writes the remainder
 * instead, because such a thread uses the guard's current descriptor when it makes the
 * call. The pool also sends the remainder on a TCP connection, because it checks for a
 * reset first: flexsc__attempt_was_reset().
 */
static COLD void submit_again(struct flexsc_loop *loop, uint32_t index)
{
	struct kmod *kmod = kmod_of(loop);

	if (call_of(loop, index)->route == BY_KERNEL &&
	    !closes(entry_of(loop, index)))
		flexsc__kmod_in_parts(loop, index);
	if (call_of(loop, index)->route == BY_KERNEL_IN_PARTS &&
	    (sent_by_tcp(loop, index) || !flexsc__kmod_keep(loop, index)) &&
	    flexsc__kmod_to_pool(loop, index)) {
		count(&loop->stats->by_kmod, -1ULL);
		entry_submit_again(entry_of(loop, index));
		return;
	}
	entry_submit_again(entry_of(loop, index));
	calls_append(loop, &kmod->again, index);
}

/*
 * Handle an entry that came back INTERRUPTED, because the kernel needed the thread for
 * other work. True: the call continues, and the entry was submitted once more. False:
 * the entry has its result.
 */
static COLD bool resume(struct flexsc_loop *loop, uint32_t index)
{
	struct flexsc_entry *entry = entry_of(loop, index);
	struct call *call = call_of(loop, index);

	entry->nargs &= FLEXSC_NARGS_MASK;
	if (call->cancel != CANCEL_NOT) {
		if (entry->ret == -EAGAIN)
			entry->ret = -ECANCELED;
		return false;
	}
	if (entry->ret == -EAGAIN)
		return flexsc__kmod_give_to_pool(loop, index);
	if (entry->ret == -EINTR
		    ? (flexsc__call_info(entry->nr)->traits & CALL_ONCE) != 0
		    : !flexsc__partial(entry) ||
			      !flexsc__partial_rest(entry, &call->partial,
						    entry->ret))
		return false;
	submit_again(loop, index);
	return true;
}

static void collect_one(struct flexsc_loop *loop, uint32_t index)
{
	struct flexsc_entry *entry = entry_of(loop, index);
	struct call *call = call_of(loop, index);

	if (entry->nargs & FLEXSC_INTERRUPTED && resume(loop, index))
		return;
	call->where = POOL_NOT;
	if (call->route != BY_KERNEL)
		entry->ret = flexsc__kmod_finish(loop, index, entry->ret);
	__builtin_prefetch(call->cb, 1);
	queue_append(&loop->done, call, index);
}

void flexsc__kmod_collect_strays(struct flexsc_loop *loop)
{
	struct kmod *kmod = kmod_of(loop);
	uint32_t index;

	lock(&kmod->lock);
	while ((index = calls_take(loop, &kmod->strays)) != NONE) {
		struct flexsc_entry *entry = entry_of(loop, index);

		entry_finish(entry, entry->ret);
		collect_one(loop, index);
	}
	unlock(&kmod->lock);
}

/*
 * Publish how many entries the module's syscall threads have taken on each core. The
 * module counts a batch's entries before it completes the last of them.
 */
static COLD void count_by_core(struct kmod *kmod)
{
	for (uint32_t i = 0; i < kmod->listed_count; i++) {
		struct kmod_core *core = &kmod->listed[i];
		uint64_t taken = __atomic_load_n(&kmod->shared->taken[i],
						 __ATOMIC_RELAXED);

		if (core->core < FLEXSC_STATS_CORES_MAX)
			count_shared(&kmod->loop->stats_cores->by_thread[core->core],
				     taken - core->taken);
		core->taken = taken;
	}
}

/*
 * The completion queue has the newest entry first, but callbacks run from the oldest
 * on: reverse the order.
 */
bool flexsc__kmod_collect(struct flexsc_loop *loop)
{
	struct kmod *kmod = kmod_of(loop);
	uint32_t index = completions_take(&kmod->shared->completions);
	uint32_t oldest = NONE;
	uint64_t seen = kmod->seen;

	while (index != NONE) {
		uint32_t next = entry_of(loop, index)->link;

		call_of(loop, index)->next = oldest;
		oldest = index;
		index = next;
		kmod->seen++;
	}
	if (oldest == NONE)
		return false;
	if (unlikely(bounced_lately(kmod)))
		flexsc__kmod_note_bounces(loop, (uint32_t)(kmod->seen - seen));
	while (oldest != NONE) {
		uint32_t next = call_of(loop, oldest)->next;

		collect_one(loop, oldest);
		oldest = next;
	}
	kmod_submit_to_pool(kmod);
	if (unlikely(loop->stats_cores))
		count_by_core(kmod);
	return true;
}

void flexsc__kmod_abandon(struct flexsc_loop *loop)
{
	struct kmod *kmod = kmod_of(loop);

	flexsc__kmod_threads_end(kmod);
	flexsc__kmod_collect(loop);
	flexsc__kmod_collect_strays(loop);
	kmod->again.count = 0;
	/* Empty the submission ring: its entries are completed below. */
	__atomic_store_n(&kmod->shared->tail, kmod->shared->head,
			 __ATOMIC_RELEASE);
	for (uint32_t i = 0; i < loop->entries.count; i++) {
		__u8 status = entry_status(entry_of(loop, i));
		const struct call *call = call_of(loop, i);

		if (call->route == BY_POOL)
			continue;
		if (status == FLEXSC_SUBMITTED || status == FLEXSC_CANCEL)
			call_refuse(loop, i,
				    flexsc__kmod_finish(loop, i, -ECANCELED));
		else if (status == FLEXSC_BUSY)
			call_done(loop, i,
				  flexsc__kmod_finish(loop, i, -EINTR));
	}
}
