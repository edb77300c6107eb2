// SPDX-License-Identifier: GPL-2.0-only
/*
 * Taking and executing entries. Run by syscall threads and by the waiter, in
 * process context unless a comment says otherwise. E1 and E4 are those of
 * <linux/flexsc.h>. User mode may change the shared area at any time, so every
 * word of it is loaded once.
 */
#include <linux/file.h>
#include <linux/jiffies.h>
#include <linux/poll.h>
#include <linux/sched/signal.h>

#include "base/checks.h"
#include "base/compat.h"
#include "base/dispatch.h"
#include "base/entry.h"
#include "base/registration.h"
#include "base/trace.h"
#include "exec/carry.h"
#include "exec/deferred.h"
#include "exec/execute.h"
#include "exec/publish.h"
#include "sched/cancel.h"
#include "sched/idle.h"
#include "sched/permit.h"
#include "sched/recall.h"
#include "sched/record.h"

/*
 * The number of completions that a syscall thread collects before it publishes
 * them. With a larger number, another core that polls for a completion waits
 * longer. With a smaller one, the queue's cache line moves between the two
 * cores more often.
 */
#define COMPLETED_MOST	16

/*
 * The number of entries that a syscall thread takes before it wakes a sleeping
 * waiter for the completed ones, although more entries are pending.
 */
#define NOTIFY_AFTER	64

/*
 * The number of entries after which a syscall thread frees its core for other
 * registrations of the process. It also does so when a jiffy has passed.
 */
#define TURN_MOST	64

/* The ring. */

static __always_inline bool ring_take(struct registration *reg, u32 *index)
{
	u32 head = (u32)atomic_read(&reg->head);
	u32 word;

	do {
		/* E4: acquires the ring's words that U4 published. */
		if (head == smp_load_acquire(&reg->shared->tail))
			return false;
		/*
		 * If user mode has stored a wrong tail, this word is stale; the
		 * mask below keeps the index in bounds.
		 */
		word = READ_ONCE(reg->ring[head & reg->mask]);
	} while (!atomic_try_cmpxchg(&reg->head, (int *)&head,
				     (int)(head + 1)));
	/*
	 * Store the shared head after the compare-and-swap, because this store
	 * allows the owner to overwrite the word. If several threads take words
	 * at the same time, the shared head may go backwards for a moment; the
	 * owner then sees less room than there is.
	 */
	WRITE_ONCE(reg->shared->head, head + 1);
	/* The mask also keeps speculation within the entries. */
	*index = word & reg->mask;
	return true;
}

/*
 * Is the descriptor in the entry's first argument ready? May sleep, in the
 * driver's poll function.
 */
static bool entry_poll(struct thread *thread, const struct flexsc_entry *entry,
		       u32 index, u8 flags)
{
	struct file *file = fget((unsigned int)READ_ONCE(entry->args[0]));
	__poll_t mask;

	if (!file)
		return true;	/* no such descriptor: the call fails at once */
	/*
	 * From here on, if a driver sleeps, block_sched_out() releases the
	 * permit.
	 */
	WRITE_ONCE(thread->polls, index);
	mask = vfs_poll(file, NULL);
	WRITE_ONCE(thread->polls, FLEXSC_NO_ENTRY);
	fput(file);
	/*
	 * If the waiter has slept in vfs_poll(), it may have missed a recall:
	 * waiter_recall() had no call to interrupt, and block_sched_out()
	 * repeats a recall only for a thread with a permit. So the waiter must
	 * not sleep in the entry's call as well.
	 */
	if (thread->is_waiter && !thread->permit)
		return false;
	if (mask & (EPOLLERR | EPOLLHUP))
		return true;
	return mask & (flags & FLEXSC_IF_READABLE ? EPOLLIN : EPOLLOUT);
}

/* May the waiter execute an entry with these flags itself? */
static bool entry_suits_waiter(struct thread *thread,
			       struct flexsc_entry *entry, u32 index, u8 flags)
{
	struct registration *reg = thread->reg;

	if (flags & FLEXSC_MAY_SLEEP &&
	    (thread->needs_thread || idle_request_thread(reg))) {
		/* No syscall thread is idle: have user mode create one. */
		thread->needs_thread = true;
		return false;
	}
	if (READ_ONCE(reg->handover))
		return true;
	if (flags & FLEXSC_DEFER)
		return false;
	if (flags & (FLEXSC_IF_READABLE | FLEXSC_IF_WRITABLE))
		return entry_poll(thread, entry, index, flags);
	return true;
}

/*
 * Make a submitted entry BUSY. The thread stores first what it executes, so an
 * owner that finds the entry BUSY can interrupt the call (see sched/cancel.c).
 */
static __always_inline bool entry_start(struct thread *thread,
					struct flexsc_entry *entry, u32 index)
{
	RULE(thread->task == current && !atomic64_read(&thread->executes));
	atomic64_set(&thread->executes, EXECUTES_ENTRY | index);
	return entry_begin(entry);
}

/* Handle an entry that wasn't SUBMITTED: if it is CANCEL, end it here. */
static noinline void entry_settle_unbegun(struct thread *thread, u32 index)
{
	cancel_settle(thread, index);
	if (entry_is_cancelled(&thread->reg->entries[index]))
		publish_finish(thread, index, -ECANCELED);
}

/*
 * Make the call of a BUSY entry. The number and arguments are copied before the
 * task is checked for filters and tracers, so no thread can change the call
 * after the check. A filter that is installed after the check doesn't see this
 * call, as it wouldn't see a plain call that has begun.
 */
static __always_inline void entry_make(struct registration *reg,
				       struct thread *thread,
				       struct flexsc_entry *entry, u32 index,
				       bool is_waiter)
{
	unsigned int nr = READ_ONCE(entry->nr);
	bool kicked;
	long ret;

	trace_flexsc_submit(reg, index, nr);
	regs_load(&thread->regs, entry, nr);
	if (unlikely(syscall_traced())) {
		carry_traced(thread, index, nr);
		return;
	}
	history_clear();
	ret = dispatch_of(nr)(&thread->regs);
	kicked = cancel_settle(thread, index);
	if (unlikely(kicked) || carry_is_interruption(ret))
		carry_end_early(thread, index, ret, kicked);
	else if (!is_waiter && unlikely(task_work_pending(current)))
		carry_leave_first(thread, index, ret);
	else
		publish_entry(reg, thread, entry, index, ret);
}

/*
 * If the waiter must leave the entry to a syscall thread, put it on the
 * deferred list.
 */
static bool entry_defer(struct thread *thread, struct flexsc_entry *entry,
			u32 index, u8 flags)
{
	struct registration *reg = thread->reg;

	if (entry_suits_waiter(thread, entry, index, flags))
		return false;
	count(reg, COUNT_DEFERRED, 1);
	deferred_put(reg, index, false);
	return true;
}

/*
 * Return the entry to user mode, which has other ways to make its call, instead
 * of blocking this thread? Called when no thread is left to take over from this
 * one. A socket that is ready for writing isn't reason enough to keep the
 * entry, because a long write may block halfway.
 */
static bool entry_give_back(struct thread *thread, struct flexsc_entry *entry,
			    u32 index, u8 flags)
{
	if (!(flags & (FLEXSC_DEFER | FLEXSC_IF_WRITABLE)) &&
	    (!(flags & FLEXSC_IF_READABLE) ||
	     entry_poll(thread, entry, index, flags)))
		return false;
	if (entry_start(thread, entry, index)) {
		cancel_settle(thread, index);
		publish_interrupted(thread, index, -EAGAIN);
	} else {
		entry_settle_unbegun(thread, index);
	}
	return true;
}

/*
 * If this thread must not execute the entry now, defer it for syscall threads;
 * if no syscall thread is left, return it to user mode. False: this thread may
 * execute it.
 */
static bool entry_decline(struct thread *thread, struct flexsc_entry *entry,
			  u32 index, u8 flags)
{
	if ((thread->is_waiter || flags & FLEXSC_MAY_SLEEP) &&
	    entries_without_threads(thread->reg))
		return entry_give_back(thread, entry, index, flags);
	return thread->is_waiter &&
	       entry_defer(thread, entry, index, flags);
}

/* Continue entry_execute(), for entries whose flags need a decision. */
static noinline void entry_consider(struct thread *thread,
				    struct flexsc_entry *entry, u32 index,
				    u8 flags)
{
	publish_all(thread);
	if (entry_decline(thread, entry, index, flags))
		return;
	/*
	 * The owner's credentials may have changed while vfs_poll() slept:
	 * check again.
	 */
	if (!thread->is_waiter && current_is_unfit(thread->reg)) {
		deferred_put(thread->reg, index, true);
		return;
	}
	/*
	 * If the thread lost its permit in vfs_poll(), cancel_entry() can't
	 * find the thread by a permit. So store the thread where cancel_entry()
	 * looks next.
	 */
	if (!thread->permit)
		WRITE_ONCE(thread->reg->companions[index].thread, thread);
	if (entry_start(thread, entry, index))
		entry_make(thread->reg, thread, entry, index, thread->is_waiter);
	else
		entry_settle_unbegun(thread, index);
}

/* Execute an entry taken from the ring or the deferred list. */
static __always_inline void entry_execute(struct registration *reg,
					  struct thread *thread, u32 index,
					  bool is_waiter)
{
	struct flexsc_entry *entry = &reg->entries[index];
	u8 flags = READ_ONCE(entry->nargs) & ~FLEXSC_NARGS_MASK;

	if (flags)
		entry_consider(thread, entry, index, flags);
	else if (likely(entry_start(thread, entry, index)))
		entry_make(reg, thread, entry, index, is_waiter);
	else
		entry_settle_unbegun(thread, index);
}

/*
 * Must the thread go to user mode before it takes another entry?
 *
 * Yes if signals are pending. Yes, too, if a call has left work for the way to
 * user mode (before 6.6 every close() does): the next call may block, and would
 * delay that work. But a waiter without FLEXSC_WAIT_HANDOVER needn't leave for
 * such work: its batch ends soon, and if it blocks it is interrupted, because
 * the close() is complete.
 */
static bool entries_must_leave(struct thread *thread)
{
	if (thread->is_waiter && !READ_ONCE(thread->reg->handover))
		return signal_pending(current);
	return thread_must_leave();
}

/*
 * Publish the completions now, although the thread has more entries to execute,
 * and wake the waiter if it sleeps.
 */
static noinline void entries_notify(struct thread *thread)
{
	publish_all(thread);
	waiter_recall(thread->reg);
}

/*
 * Reschedule if necessary, and take a permit again. Called between entries if
 * thread_has_work() or the permit is lost. True: the thread can't take another
 * entry.
 */
static noinline bool entries_give_way(struct thread *thread)
{
	WRITE_ONCE(thread->blocked, false);
	if (entries_must_leave(thread) || thread->carries != FLEXSC_NO_ENTRY)
		return true;
	if (thread->is_waiter && READ_ONCE(thread->reg->waiter) != thread)
		return true;
	/*
	 * A grace period of RCU tasks waits until each task has slept. This
	 * task may never sleep, so report a quiescent state here.
	 */
	if (need_resched())
		entries_notify(thread);
	cond_resched_tasks_rcu_qs();
	if (!thread->permit && !permit_take_any(thread))
		return true;
	return permit_is_elsewhere(thread);
}

/*
 * Take the next entry for a syscall thread that has taken n since "begin", in
 * jiffies. The deferred list comes first, because its entries are older than those in the
 * ring.
 */
static __always_inline bool entries_take(struct registration *reg,
					 struct thread *thread, u64 n,
					 unsigned long begin, u32 *index)
{
	bool any;

	if (unlikely(thread->completed >= COMPLETED_MOST))
		publish_all(thread);
	if (unlikely(n % NOTIFY_AFTER == NOTIFY_AFTER - 1))
		entries_notify(thread);
	if (unlikely(READ_ONCE(thread->permit->core) != thread->core) &&
	    permit_is_elsewhere(thread))
		return false;
	if (unlikely(slot_is_wanted(thread)) &&
	    (n >= TURN_MOST || time_after(jiffies, begin)))
		return false;
	any = deferred_take(reg, index);
	if (unlikely(READ_ONCE(reg->permit_count) > 1))
		idle_wake_for_backlog(reg);
	return any || ring_take(reg, index);
}

/* Called between entries: must the thread stop? */
static __always_inline bool entries_must_stop(struct thread *thread)
{
	return unlikely(thread_has_work() || !thread->permit) &&
	       entries_give_way(thread);
}

/*
 * Count the entries of a batch in the shared area, before the last of them are
 * published. If the thread has lost the permit, another one may store its own,
 * newer count first: then the count is late until the next batch.
 */
static void entries_count_taken(struct registration *reg, struct permit *permit,
				u64 n)
{
	WRITE_ONCE(reg->shared->taken[permit - reg->permits],
		   (u64)atomic64_add_return((s64)n, &permit->served));
}

static __always_inline u64 entries_execute_all(struct registration *reg,
					       struct thread *thread,
					       bool is_waiter)
{
	/*
	 * For the waiter, user mode or wait_longer() has checked already
	 * whether it must stop.
	 */
	struct permit *permit = thread->permit;
	bool stop = !is_waiter && entries_must_stop(thread);
	const struct cred *cred = current_cred();
	unsigned long begin = is_waiter ? 0 : jiffies;
	u64 n = 0;
	u32 index;

	while (!stop && (is_waiter ? ring_take(reg, &index) :
				    entries_take(reg, thread, n, begin, &index))) {
		/*
		 * Check the credentials after the entry is taken, not before.
		 * An owner sets its credentials when it waits or kicks, and
		 * posts after that (U4). So a thread that has taken the entry
		 * (E4) sees the new credentials.
		 */
		if (unlikely(READ_ONCE(reg->cred) != cred) ||
		    (!is_waiter && current_is_unfit(reg))) {
			deferred_put(reg, index, true);
			break;
		}
		entry_execute(reg, thread, index, is_waiter);
		stop = entries_must_stop(thread);
		n++;
	}
	if (!is_waiter)
		entries_count_taken(reg, permit, n);
	if (unlikely(!publish_try(reg, thread)))
		publish_hard(thread);
	WRITE_ONCE(thread->blocked, false);
	return n;
}

static __always_inline void entries_count_batch(struct permit *permit, u64 n)
{
	atomic64_inc(&permit->counts[PERMIT_BATCHES]);
	atomic64_add(n, &permit->counts[PERMIT_TAKEN]);
}

/* Execute submitted entries until no entry is pending or the permit is lost. */
void entries_execute(struct registration *reg, struct thread *thread)
{
	struct permit *permit = thread->permit;
	u64 n;

	RULE(permit && !thread->is_waiter);
	n = entries_execute_all(reg, thread, false);
	count(reg, COUNT_EXECUTED, n);
	entries_count_batch(permit, n);
}

/*
 * Execute submitted entries on the waiter. Compiled separately from
 * entries_execute() to keep the waiter's path short: it neither looks at the
 * deferred list nor wakes threads for other cores.
 */
void entries_execute_inline(struct registration *reg, struct thread *thread)
{
	struct permit *permit = thread->permit;
	u64 n;

	RULE(permit && thread->is_waiter);
	n = entries_execute_all(reg, thread, true);
	count(reg, COUNT_INLINE, n);
	entries_count_batch(permit, n);
}

/*
 * Execute or return the entries that the waiter has deferred, if no syscall
 * thread is left for them. Each entry is taken once, because an entry that is
 * deferred again must not keep the waiter here forever.
 */
void entries_retrieve(struct registration *reg, struct thread *thread)
{
	u32 n = READ_ONCE(reg->deferred_count);
	u32 index;

	/* Stop if interrupted: the thread must pass through user mode first. */
	while (n-- && thread->permit && !thread_must_leave() &&
	       entries_stranded(reg) && deferred_take(reg, &index)) {
		if (unlikely(READ_ONCE(reg->cred) != current_cred())) {
			deferred_put(reg, index, true);
			break;
		}
		entry_execute(reg, thread, index, true);
		cond_resched();
	}
	publish_all(thread);
	WRITE_ONCE(thread->blocked, false);
}

/*
 * End the entry of a task that died in the entry's call, or while it polled the
 * entry's file. Run by a worker, on behalf of the task.
 */
void execute_finish_dead(struct thread *thread)
{
	struct registration *reg = thread->reg;
	u64 executes = atomic64_read(&thread->executes);
	u32 index = executes ? (u32)executes : thread->polls;
	struct flexsc_entry *entry;
	long ret = -EINTR;

	WARN_ON_ONCE(thread->task == current || thread->permit);
	WRITE_ONCE(thread->polls, FLEXSC_NO_ENTRY);
	if (index == FLEXSC_NO_ENTRY)
		return;
	entry = &reg->entries[index];
	if (executes) {
		cancel_settle(thread, index);
	} else if (!entry_begin(entry)) {
		if (!entry_is_cancelled(entry))
			return;
		ret = -ECANCELED;
	}
	publish_entry(reg, thread, entry, index, ret);
	/*
	 * One attempt suffices: it fails only if a thread of the process keeps
	 * writing to the queue. Then the result is lost.
	 */
	if (!publish_now(thread))
		publish_drop(thread);
}
