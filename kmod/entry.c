// SPDX-License-Identifier: GPL-2.0-only
/*
 * Entries: taking, executing and finishing them. Run by syscall threads and by
 * the owner, in process context unless a comment says otherwise. The arrows E1
 * to E4 are those of <linux/flexsc.h>. User mode may change the shared area at
 * any time, so every word of it is loaded once.
 */
#include <linux/file.h>
#include <linux/poll.h>
#include <linux/sched/signal.h>

#include "cancel.h"
#include "compat.h"
#include "dispatch.h"
#include "entry.h"
#include "owner.h"
#include "registration.h"
#include "slot.h"
#include "thread.h"
#include "trace.h"

/*
 * Completions that a syscall thread collects before it publishes them. With
 * more, another core that polls for a completion waits longer; with fewer, the
 * queue's cache line moves between the two cores more often.
 */
#define COMPLETED_MOST	16

/*
 * Entries that a syscall thread takes before it wakes a sleeping owner for the
 * completed ones, although there are more to execute.
 */
#define UNTOLD_MOST	64

/*
 * Attempts to publish, and rounds of them. Completions of other threads make
 * only a few attempts fail; that many fail only if a thread of the process
 * keeps writing to the queue. thread_sched_out() makes one round with interrupts
 * off, so a round is short. After the last round the thread's completions are
 * lost.
 */
#define PUBLISH_TRIES	1000
#define PUBLISH_ROUNDS	1000

/* The ring. */

static __always_inline bool ring_take(struct registration *reg, u32 *index)
{
	u32 head = (u32)atomic_read(&reg->head);
	u32 word;

	do {
		/* E4: acquires the ring's words that U4 published. */
		if (head == smp_load_acquire(&reg->shared->tail))
			return false;
		/* Stale if user mode lied about its tail, but masked below. */
		word = READ_ONCE(reg->ring[head & reg->mask]);
	} while (!atomic_try_cmpxchg(&reg->head, (int *)&head, (int)(head + 1)));
	/*
	 * Behind the compare-and-swap, because the owner may overwrite the word
	 * from now on. If threads take words at the same time this may go back
	 * for a while, and the owner sees less room than there is.
	 */
	WRITE_ONCE(reg->shared->head, head + 1);
	/* Masked, so not even speculation reaches beyond the entries. */
	*index = word & reg->mask;
	return true;
}

/* The aside list: entries that the owner leaves to syscall threads. */

static void aside_put(struct registration *reg, u32 index, bool front)
{
	struct companion *companion = &reg->companions[index];
	unsigned long flags;

	raw_spin_lock_irqsave(&reg->lock, flags);
	/* User mode posted the entry twice: once on the list is enough. */
	if (companion->aside)
		goto unlock;
	companion->aside = true;
	companion->next = front ? reg->aside_head : FLEXSC_NO_ENTRY;
	if (reg->aside_count && !front)
		reg->companions[reg->aside_tail].next = index;
	if (!reg->aside_count || front)
		reg->aside_head = index;
	if (!reg->aside_count || !front)
		reg->aside_tail = index;
	WRITE_ONCE(reg->aside_count, reg->aside_count + 1);
unlock:
	raw_spin_unlock_irqrestore(&reg->lock, flags);
}

static bool aside_take(struct registration *reg, u32 *index)
{
	unsigned long flags;
	bool any;

	if (!READ_ONCE(reg->aside_count))
		return false;
	raw_spin_lock_irqsave(&reg->lock, flags);
	any = reg->aside_count;
	if (any) {
		*index = reg->aside_head;
		reg->aside_head = reg->companions[*index].next;
		reg->companions[*index].aside = false;
		WRITE_ONCE(reg->aside_count, reg->aside_count - 1);
	}
	raw_spin_unlock_irqrestore(&reg->lock, flags);
	return any;
}

/* Is the descriptor in the entry's first argument ready? May sleep. */
static bool entry_poll(struct thread *thread, const struct flexsc_entry *entry,
		       u8 flags)
{
	struct file *file = fget((unsigned int)READ_ONCE(entry->args[0]));
	__poll_t mask;

	if (!file)
		return true;	/* the call fails at once */
	/* A driver may sleep here: with "asks" thread_sched_out() frees the slot. */
	WRITE_ONCE(thread->asks, true);
	mask = vfs_poll(file, NULL);
	WRITE_ONCE(thread->asks, false);
	fput(file);
	/*
	 * If the owner slept in vfs_poll(), there was no call to interrupt, and
	 * owner_recall() had no effect. So it must not sleep in the entry as
	 * well: without a slot thread_sched_out() wouldn't repeat the recall.
	 */
	if (thread->is_owner && !thread->slot)
		return false;
	if (mask & (EPOLLERR | EPOLLHUP))
		return true;
	return mask & (flags & FLEXSC_IF_READABLE ? EPOLLIN : EPOLLOUT);
}

/* May the owner execute an entry with these flags itself? */
static bool entry_let_owner(struct thread *thread, struct flexsc_entry *entry,
			    u8 flags)
{
	struct registration *reg = thread->reg;

	if (flags & FLEXSC_MAY_SLEEP &&
	    (thread->wants_more || thread_ask(reg))) {
		/* No thread is idle, but user mode can make one. */
		thread->wants_more = true;
		return false;
	}
	if (READ_ONCE(reg->handover))
		return true;
	if (flags & FLEXSC_ASIDE)
		return false;
	if (flags & (FLEXSC_IF_READABLE | FLEXSC_IF_WRITABLE))
		return entry_poll(thread, entry, flags);
	return true;
}

/* Execution. */

/*
 * Push the thread's completions on the queue. They are linked to each other
 * first and pushed together: when the thread has no more to do, blocks, or is
 * about to execute a call that may take long. False: the head changed too
 * often, and they are still to be pushed.
 */
static __always_inline bool publish(struct registration *reg,
				    struct thread *thread)
{
	u32 *queue = &reg->shared->completions.head;
	u32 head = READ_ONCE(*queue);
	u32 tries = PUBLISH_TRIES;

	if (thread->newest == FLEXSC_NO_ENTRY)
		return true;
	do {
		WRITE_ONCE(reg->entries[thread->oldest].link, head);
		/* E3: publishes the links; pairs with U3. */
		if (likely(try_cmpxchg(queue, &head, thread->newest)))
			goto published;
	} while (--tries);
	return false;
published:
	/*
	 * Relaxed: a syscall thread calls owner_recall() some time after this,
	 * and that has the full barrier which pairs with owner_wait_longer().
	 */
	atomic64_add(thread->completed, &reg->completed);
	thread->newest = FLEXSC_NO_ENTRY;
	thread->completed = 0;
	return true;
}

/* Any context, also with a run queue's lock held. False: try again later. */
bool entries_publish_now(struct thread *thread)
{
	return publish(thread->reg, thread);
}

/*
 * Some thread of the process keeps changing the queue's head. Try for a while,
 * then drop the completions: only that process's calls suffer.
 */
static noinline void publish_on(struct thread *thread)
{
	u32 rounds = PUBLISH_ROUNDS;

	do {
		cond_resched();
		if (entries_publish_now(thread))
			return;
	} while (--rounds && !fatal_signal_pending(current));
	thread->newest = FLEXSC_NO_ENTRY;
	thread->completed = 0;
}

/* Only by the thread itself, and not while it executes an entry. May sleep. */
static void entries_publish(struct thread *thread)
{
	if (unlikely(!entries_publish_now(thread)))
		publish_on(thread);
}

/* The entry is DONE now, and one of those that publish() will push. */
static __always_inline void publish_entry(struct registration *reg,
					  struct thread *thread,
					   struct flexsc_entry *entry,
					   u32 index, long ret)
{
	u32 newest = thread->newest;

	trace_flexsc_complete(reg, index, ret);
	WRITE_ONCE(entry->ret, ret);
	WRITE_ONCE(entry->link, newest);
	/* E2: publishes ret and what the call wrote; pairs with U2. */
	smp_store_release(&entry->status, FLEXSC_DONE);
	if (newest == FLEXSC_NO_ENTRY)
		thread->oldest = index;
	thread->newest = index;
	thread->completed++;
}

static void publish_finish(struct thread *thread, u32 index, long ret)
{
	struct registration *reg = thread->reg;

	publish_entry(reg, thread, &reg->entries[index], index, ret);
	entries_publish(thread);
}

/*
 * Make a submitted entry BUSY. Before that the thread says what it executes: an
 * owner that finds the entry BUSY can then have it interrupted (see cancel.c).
 */
static __always_inline bool entry_begin(struct thread *thread,
					struct flexsc_entry *entry, u32 index)
{
	u8 submitted = FLEXSC_SUBMITTED;

	atomic64_set(&thread->now, NOW_EXECUTES | index);
	/*
	 * E1: acquires the arguments that U1 published. If it succeeds it is a
	 * full barrier as well, behind "now": pairs with cancel_entry().
	 */
	return try_cmpxchg(&entry->status, &submitted, FLEXSC_BUSY);
}

/* The entry wasn't SUBMITTED. If it is CANCEL it ends here. */
static noinline void entry_settle_unbegun(struct thread *thread, u32 index)
{
	cancel_settle(thread, index);
	if (READ_ONCE(thread->reg->entries[index].status) == FLEXSC_CANCEL)
		publish_finish(thread, index, -ECANCELED);
}

static void publish_interrupted(struct thread *thread, u32 index, long ret)
{
	struct registration *reg = thread->reg;
	struct flexsc_entry *entry = &reg->entries[index];

	count(reg, COUNT_INTERRUPTED, 1);
	WRITE_ONCE(entry->nargs, READ_ONCE(entry->nargs) | FLEXSC_INTERRUPTED);
	publish_finish(thread, index, ret);
}

/*
 * Have the current task take the entry to user mode. Until it is back with the
 * entry it executes no other.
 */
static void carry(struct thread *thread, u32 index, enum taken taken)
{
	struct companion *companion = &thread->reg->companions[index];

	WRITE_ONCE(companion->task, current);
	/* Pairs with entry_carry_on(), which looks at "task" after this. */
	smp_store_release(&companion->taken, taken);
	thread->carries = index;
	slot_give(thread);
}

/*
 * Submit a BUSY entry again, at the front or at the back of the aside list: its
 * call will be made from the beginning. If the entry was cancelled meanwhile it
 * ends here, with ret.
 */
static void entry_submit_again(struct thread *thread, u32 index, bool front, long ret)
{
	struct registration *reg = thread->reg;
	struct flexsc_entry *entry = &reg->entries[index];

	if (cmpxchg(&entry->status, FLEXSC_BUSY, FLEXSC_SUBMITTED) ==
	    FLEXSC_BUSY)
		aside_put(reg, index, front);
	else
		publish_finish(thread, index, ret);
}

/*
 * The call returned one of the kernel's restart codes. A call with a restart
 * block can only go on in this task, so a syscall thread carries its entry
 * through user mode. Any thread may make other calls from the beginning. The
 * owner may be due in user mode, so its entry ends as INTERRUPTED.
 */
static void carry_restart(struct thread *thread, u32 index, long ret)
{
	struct registration *reg = thread->reg;

	if (thread->is_owner) {
		publish_interrupted(thread, index, -EINTR);
		return;
	}
	count(reg, COUNT_RESTARTED, 1);
	if (ret == -ERESTART_RESTARTBLOCK) {
		/* The result if the task never comes back. */
		WRITE_ONCE(reg->entries[index].ret, -EINTR);
		carry(thread, index, TAKEN_RESTARTS);
	} else {
		entry_submit_again(thread, index, true, -EINTR);
	}
}

/*
 * A signal ended the call of a syscall thread. If a handler runs, the entry's
 * result is -EINTR, or the call is made again, as SA_RESTART says. If none runs
 * (the signal stopped the task, or another thread took it) the call goes on.
 *
 * The kernel decides between the two on the way to user mode, by the result of
 * the system call that returns. So the ioctl returns the result of the entry's
 * call. The thread then calls the ioctl again with the entry: restarted by the
 * kernel if no handler ran, or with FLEXSC_SERVE_HANDLED.
 */
static void carry_signalled(struct thread *thread, u32 index, long ret)
{
	enum taken taken = TAKEN_AGAIN;

	thread->signalled = (int)ret;
	if (ret == -EINTR || ret == -ERESTART_RESTARTBLOCK) {
		taken = ret == -EINTR ? TAKEN_ENDED : TAKEN_RESTARTS;
		thread->signalled = -ERESTARTNOHAND;
	}
	if (taken != TAKEN_ENDED)
		count(thread->reg, COUNT_RESTARTED, 1);
	WRITE_ONCE(thread->reg->entries[index].ret, -EINTR);
	carry(thread, index, taken);
}

/*
 * A call may leave work for the way to user mode, as close() does. Until that
 * is done the entry must not be seen as complete, so a syscall thread takes it
 * along. The owner needs no such detour: it passes through user mode before it
 * looks at completions.
 */
static noinline void carry_leave_first(struct thread *thread, u32 index, long ret)
{
	WRITE_ONCE(thread->reg->entries[index].ret, ret);
	carry(thread, index, TAKEN_LEAVES);
}

static bool carry_is_restart(long ret)
{
	return ret == -ERESTARTSYS || ret == -ERESTARTNOINTR ||
	       ret == -ERESTARTNOHAND || ret == -ERESTART_RESTARTBLOCK;
}

/* May "ret" mean that the call was interrupted? */
static __always_inline bool carry_is_interruption(long ret)
{
	return unlikely((unsigned long)ret >= (unsigned long)-MAX_ERRNO) &&
	       (ret == -EINTR || ret <= -ERESTARTSYS);
}

/*
 * The call was interrupted. Depending on the reason and on "ret" its entry is
 * complete, is INTERRUPTED, or is to be made again.
 */
static noinline void carry_end_early(struct thread *thread, u32 index, long ret,
				     bool kicked)
{
	bool cancelled = READ_ONCE(thread->reg->entries[index].status) ==
			 FLEXSC_CANCEL;

	if (!cancelled && !thread->is_owner && task_sigpending(current) &&
	    (carry_is_restart(ret) || ret == -EINTR)) {
		carry_signalled(thread, index, ret);
		return;
	}
	if (carry_is_restart(ret) && !cancelled) {
		carry_restart(thread, index, ret);
		return;
	}
	if (carry_is_restart(ret))
		ret = -EINTR;
	if (!cancelled && (kicked || (ret == -EINTR && signal_pending(current))))
		publish_interrupted(thread, index, ret);
	else if (!thread->is_owner && task_work_pending(current))
		carry_leave_first(thread, index, ret);
	else
		publish_finish(thread, index, ret);
}

/*
 * Something watches this task's system calls, so user mode has to make the
 * call. From here on user mode has to cancel it, too.
 */
static void carry_bounce(struct thread *thread, u32 index, unsigned int nr)
{
	long refusal = dispatch_refusal(nr);

	if (refusal) {
		publish_finish(thread, index, refusal);
		return;
	}
	thread->bounces = true;
	WRITE_ONCE(thread->reg->shared->bounced,
		   atomic64_inc_return(&thread->reg->counts[COUNT_BOUNCED]));
	if (thread->slot)
		atomic64_inc(&thread->slot->counts[SLOT_BOUNCED]);
	carry(thread, index, TAKEN_BOUNCED);
}

/*
 * The owner is watched, and FLEXSC_IOC_WAIT can't bounce an entry. A syscall
 * thread gets the entry, or user mode if there is no syscall thread.
 */
static void carry_leave_watched(struct thread *thread, u32 index)
{
	struct registration *reg = thread->reg;

	if (entries_alone(reg)) {
		publish_interrupted(thread, index, -EAGAIN);
		return;
	}
	count(reg, COUNT_ASIDE, 1);
	entry_submit_again(thread, index, false, -ECANCELED);
}

static noinline void carry_make_watched(struct thread *thread, u32 index,
					unsigned int nr)
{
	cancel_settle(thread, index);
	if (thread->is_owner)
		carry_leave_watched(thread, index);
	else
		carry_bounce(thread, index, nr);
}

/*
 * Make the call of an entry that was begun. Its number and arguments are copied
 * before the task is checked for filters and tracers. So no thread can change
 * the call after the check, and a filter that comes after the check is only as
 * late as it would be for a plain call.
 */
static __always_inline void entry_make(struct registration *reg,
				       struct thread *thread,
				       struct flexsc_entry *entry, u32 index,
				       bool is_owner)
{
	unsigned int nr = READ_ONCE(entry->nr);
	bool kicked;
	long ret;

	trace_flexsc_submit(reg, index, nr);
	regs_load(&thread->regs, entry, nr);
	if (unlikely(syscall_watched())) {
		carry_make_watched(thread, index, nr);
		return;
	}
	history_clear();
	ret = dispatch_of(nr)(&thread->regs);
	kicked = cancel_settle(thread, index);
	if (unlikely(kicked) || carry_is_interruption(ret))
		carry_end_early(thread, index, ret, kicked);
	else if (!is_owner && unlikely(task_work_pending(current)))
		carry_leave_first(thread, index, ret);
	else
		publish_entry(reg, thread, entry, index, ret);
}

/*
 * Go on with a call that was interrupted in this task. The entry is BUSY
 * already, so it may have been cancelled before the thread says what it
 * executes: hence the look at its status behind a full barrier, which pairs
 * with cancel_entry().
 *
 * If the thread is watched by now, or unfit, the entry ends as INTERRUPTED: the
 * library has its call made elsewhere, from the beginning.
 */
static void carry_make_again(struct thread *thread, u32 index)
{
	struct registration *reg = thread->reg;
	long ret = -ECANCELED;
	bool kicked;

	if (syscall_watched() || owner_bars(reg)) {
		publish_interrupted(thread, index, -EINTR);
		return;
	}
	WRITE_ONCE(reg->companions[index].thread, thread);
	atomic64_xchg(&thread->now, NOW_EXECUTES | index);
	if (READ_ONCE(reg->entries[index].status) != FLEXSC_CANCEL)
		ret = dispatch_restart(&thread->regs);
	kicked = cancel_settle(thread, index);
	/* A signal handler ran meanwhile, which voids a restart block. */
	if (ret == -EINTR)
		kicked = true;
	if (kicked || carry_is_interruption(ret))
		carry_end_early(thread, index, ret, kicked);
	else
		publish_finish(thread, index, ret);
}

/* Does the owner leave the entry to a syscall thread? If so, put it aside. */
static bool entry_leave_aside(struct thread *thread, struct flexsc_entry *entry,
			      u32 index, u8 flags)
{
	struct registration *reg = thread->reg;

	if (entry_let_owner(thread, entry, flags))
		return false;
	count(reg, COUNT_ASIDE, 1);
	aside_put(reg, index, false);
	return true;
}

/*
 * No thread is left to take over from this one. Should it give the entry back
 * to user mode, which has other ways, rather than block in it? Readiness to be
 * written to isn't enough to keep the entry: a long write may block halfway.
 */
static bool entry_give_back(struct thread *thread, struct flexsc_entry *entry,
			    u32 index, u8 flags)
{
	if (!(flags & (FLEXSC_ASIDE | FLEXSC_IF_WRITABLE)) &&
	    (!(flags & FLEXSC_IF_READABLE) ||
	     entry_poll(thread, entry, flags)))
		return false;
	if (entry_begin(thread, entry, index)) {
		cancel_settle(thread, index);
		publish_interrupted(thread, index, -EAGAIN);
	} else {
		entry_settle_unbegun(thread, index);
	}
	return true;
}

/*
 * Keep the entry from being executed by this thread now, if it must not be: an
 * entry that the owner may not execute is put aside for syscall threads, or
 * given back to user mode if there are none. True: it was.
 */
static bool entry_decline(struct thread *thread, struct flexsc_entry *entry,
			  u32 index, u8 flags)
{
	if ((thread->is_owner || flags & FLEXSC_MAY_SLEEP) &&
	    entries_alone(thread->reg))
		return entry_give_back(thread, entry, index, flags);
	return thread->is_owner && entry_leave_aside(thread, entry, index, flags);
}

/* The rest of entry_execute(), for an entry with flags. */
static noinline void entry_consider(struct thread *thread,
				    struct flexsc_entry *entry, u32 index, u8 flags)
{
	entries_publish(thread);
	if (entry_decline(thread, entry, index, flags))
		return;
	/* The owner's credentials may have changed while vfs_poll() slept. */
	if (!thread->is_owner && owner_bars(thread->reg)) {
		aside_put(thread->reg, index, true);
		return;
	}
	/* The slot was lost in vfs_poll(): cancel_entry() looks here. */
	if (!thread->slot)
		WRITE_ONCE(thread->reg->companions[index].thread, thread);
	if (entry_begin(thread, entry, index))
		entry_make(thread->reg, thread, entry, index, thread->is_owner);
	else
		entry_settle_unbegun(thread, index);
}

/* Execute an entry that was taken off the ring or the aside list. */
static __always_inline void entry_execute(struct registration *reg,
					  struct thread *thread, u32 index,
					  bool is_owner)
{
	struct flexsc_entry *entry = &reg->entries[index];
	u8 flags = READ_ONCE(entry->nargs) & ~FLEXSC_NARGS_MASK;

	if (flags)
		entry_consider(thread, entry, index, flags);
	else if (likely(entry_begin(thread, entry, index)))
		entry_make(reg, thread, entry, index, is_owner);
	else
		entry_settle_unbegun(thread, index);
}

/*
 * Has the thread to go to user mode before it takes another entry?
 *
 * With signals pending it has. Delayed work (before 6.6 every close() leaves
 * some) mustn't wait for as long as a thread blocks in its next entry, either.
 * But an owner without FLEXSC_WAIT_HANDOVER needn't leave for it: its batch
 * ends soon, and if it blocks it is interrupted, because the close() is
 * complete.
 */
static bool entries_must_leave(struct thread *thread)
{
	if (thread->is_owner && !READ_ONCE(thread->reg->handover))
		return signal_pending(current);
	return thread_must_leave();
}

/* The thread goes on executing: publish, and wake the owner if it sleeps. */
static noinline void entries_tell(struct thread *thread)
{
	entries_publish(thread);
	owner_recall(thread->reg);
}

/*
 * Between entries, when thread_stirs() or the slot is lost. Give way to other
 * tasks, and get a slot again. True: the thread can't take another entry.
 */
static noinline bool entries_give_way(struct thread *thread)
{
	WRITE_ONCE(thread->blocked, false);
	if (entries_must_leave(thread) || thread->carries != FLEXSC_NO_ENTRY)
		return true;
	if (thread->is_owner &&
	    READ_ONCE(thread->reg->owner) != thread)
		return true;
	/* RCU-tasks waits for each task to sleep, which this one may not do. */
	if (need_resched())
		entries_tell(thread);
	cond_resched_tasks_rcu_qs();
	if (!thread->slot && !slot_take_any(thread))
		return true;
	return slot_is_elsewhere(thread);
}

/*
 * Take the next entry of a syscall thread that has taken n so far. The aside
 * list is first, because its entries are older than those in the ring.
 */
static __always_inline bool entries_take(struct registration *reg,
					 struct thread *thread, u64 n, u32 *index)
{
	bool any;

	if (unlikely(thread->completed >= COMPLETED_MOST))
		entries_publish(thread);
	if (unlikely(n % UNTOLD_MOST == UNTOLD_MOST - 1))
		entries_tell(thread);
	if (unlikely(READ_ONCE(thread->slot->core) != thread->core) &&
	    slot_is_elsewhere(thread))
		return false;
	any = aside_take(reg, index);
	if (unlikely(READ_ONCE(reg->slot_count) > 1))
		slot_spill(reg);
	return any || ring_take(reg, index);
}

/* Between entries: has the thread to stop? */
static __always_inline bool entries_look_up(struct thread *thread)
{
	return unlikely(thread_stirs() || !thread->slot) && entries_give_way(thread);
}

static __always_inline u64 entries_execute_all(struct registration *reg,
					       struct thread *thread, bool is_owner)
{
	/* Not for the owner: user mode or owner_wait_longer() looked just now. */
	bool stop = !is_owner && entries_look_up(thread);
	const struct cred *cred = current_cred();
	u64 n = 0;
	u32 index;

	while (!stop && (is_owner ? ring_take(reg, &index) :
				     entries_take(reg, thread, n, &index))) {
		/*
		 * After the entry is taken, not before: an owner sets its
		 * credentials when it waits or kicks, then posts (U4), so a
		 * thread that has taken the entry (E4) sees the new ones.
		 */
		if (unlikely(READ_ONCE(reg->cred) != cred) ||
		    (!is_owner && owner_bars(reg))) {
			aside_put(reg, index, true);
			break;
		}
		entry_execute(reg, thread, index, is_owner);
		stop = entries_look_up(thread);
		n++;
	}
	if (unlikely(!publish(reg, thread)))
		publish_on(thread);
	WRITE_ONCE(thread->blocked, false);
	return n;
}

static __always_inline void entries_count_batch(struct slot *slot, u64 n)
{
	atomic64_inc(&slot->counts[SLOT_BATCHES]);
	atomic64_add(n, &slot->counts[SLOT_TAKEN]);
}

/* Execute submitted entries until there are none or the slot is lost. */
void entries_execute(struct registration *reg, struct thread *thread)
{
	struct slot *slot = thread->slot;
	u64 n = entries_execute_all(reg, thread, false);

	count(reg, COUNT_EXECUTED, n);
	entries_count_batch(slot, n);
}

/*
 * The same loop for the owner. It is compiled separately, because the owner's
 * way is the shortest: it doesn't look at the aside list or the backlog.
 */
void entries_execute_inline(struct registration *reg, struct thread *thread)
{
	struct slot *slot = thread->slot;
	u64 n = entries_execute_all(reg, thread, true);

	count(reg, COUNT_INLINE, n);
	entries_count_batch(slot, n);
}

/*
 * Execute or give back the entries that the owner put aside, and for which no
 * syscall thread is left. Each is taken once: an entry that is put aside again
 * must not keep the owner here forever.
 */
void entries_retrieve(struct registration *reg, struct thread *thread)
{
	u32 n = READ_ONCE(reg->aside_count);
	u32 index;

	/* An interrupted thread must pass through user mode first. */
	while (n-- && thread->slot && !thread_must_leave() &&
	       entries_stranded(reg) && aside_take(reg, &index)) {
		if (unlikely(READ_ONCE(reg->cred) != current_cred())) {
			aside_put(reg, index, true);
			break;
		}
		entry_execute(reg, thread, index, true);
		cond_resched();
	}
	entries_publish(thread);
	WRITE_ONCE(thread->blocked, false);
}

/*
 * Go on with a call that a signal ended. If a handler ran
 * (FLEXSC_SERVE_HANDLED) the entry ends with -EINTR.
 */
static void carry_on_signalled(struct thread *thread, u32 index, u8 taken,
			       bool handled)
{
	if (handled)
		publish_finish(thread, index, -EINTR);
	else if (taken == TAKEN_RESTARTS)
		carry_make_again(thread, index);
	else if (taken == TAKEN_AGAIN)
		entry_submit_again(thread, index, true, -EINTR);
	else
		publish_interrupted(thread, index, -EINTR);
}

/* Go on with an entry that this task took along to user mode. */
void entry_carry_on(struct registration *reg, struct thread *thread,
		    const struct flexsc_serve *args)
{
	u32 index = args->index;
	struct companion *companion;
	u8 taken;

	if (index >= reg->entry_count)
		return;
	index = array_index_nospec(index, reg->entry_count);
	companion = &reg->companions[index];
	/* Pairs with carry(): "task" belongs to this "taken". */
	taken = smp_load_acquire(&companion->taken);
	if (taken == TAKEN_NOT || READ_ONCE(companion->task) != current)
		return;
	WRITE_ONCE(companion->task, NULL);
	/* Before publish_finish() or entry_submit_again() ends this life of the entry. */
	smp_store_release(&companion->taken, TAKEN_NOT);
	if (taken == TAKEN_BOUNCED)
		publish_finish(thread, index, args->ret);
	else if (taken == TAKEN_LEAVES)
		publish_finish(thread, index, READ_ONCE(reg->entries[index].ret));
	else
		carry_on_signalled(thread, index, taken,
				   args->flags & FLEXSC_SERVE_HANDLED);
	WRITE_ONCE(thread->blocked, false);
}

/* End the entry in whose call the thread's task died. Run by a worker. */
void entry_bury(struct thread *thread, u32 index)
{
	struct registration *reg = thread->reg;

	cancel_settle(thread, index);
	publish_entry(reg, thread, &reg->entries[index], index, -EINTR);
	/*
	 * The worker doesn't try again. Publishing fails only if a thread of
	 * the process keeps writing to the queue, and then the result is lost.
	 */
	if (!entries_publish_now(thread)) {
		thread->newest = FLEXSC_NO_ENTRY;
		thread->completed = 0;
	}
}
