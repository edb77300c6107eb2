// SPDX-License-Identifier: GPL-2.0-only
/*
 * Entries: taking, executing and finishing them. Run by syscall threads and by
 * the caller, in their own context. The arrows E1 to E4 are those of
 * <linux/flexsc.h>. What is read from the shared area may change at any time:
 * every word is loaded once.
 */
#include <linux/file.h>
#include <linux/poll.h>
#include <linux/sched/signal.h>

#include "compat.h"
#include "registration.h"
#include "trace.h"

/*
 * Another core that waits for a completion waits for so many others at most,
 * and shares the line of the queue's head with this one as much less often.
 */
#define COMPLETED_MOST	16

/* After so many a caller that sleeps is told, though there are more to execute. */
#define UNTOLD_MOST	64

/*
 * Nobody fails so often against other threads that complete entries, but
 * against one that scribbles on the queue. For this may run with interrupts
 * off: see sched_out().
 */
#define PUBLISH_TRIES	1000

/* The ring. */

static __always_inline bool ring_take(struct registration *reg, u32 *index)
{
	u32 head = (u32)atomic_read(&reg->head);
	u32 word;

	do {
		/* E4: acquires the ring's words that U4 published. */
		if (head == smp_load_acquire(&reg->shared->tail))
			return false;
		/* One that lies about its tail gets what is in the ring. */
		word = READ_ONCE(reg->ring[head & reg->mask]);
	} while (!atomic_try_cmpxchg(&reg->head, (int *)&head, (int)(head + 1)));
	WRITE_ONCE(reg->shared->head, head + 1);
	/* Masked: not even speculation goes beyond the entries. */
	*index = word & reg->mask;
	return true;
}

/* The aside list: entries that the caller leaves to syscall threads. */

static void put_aside(struct registration *reg, u32 index, bool front)
{
	struct companion *companion = &reg->companions[index];
	struct entry_list *list = &reg->aside;
	unsigned long flags;

	raw_spin_lock_irqsave(&reg->lock, flags);
	/* Posted twice? Then once is enough. */
	if (companion->aside)
		goto unlock;
	companion->aside = true;
	companion->next = front ? list->head : FLEXSC_NO_ENTRY;
	if (reg->aside_count && !front)
		reg->companions[list->tail].next = index;
	if (!reg->aside_count || front)
		list->head = index;
	if (!reg->aside_count || !front)
		list->tail = index;
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
		*index = reg->aside.head;
		reg->aside.head = reg->companions[*index].next;
		reg->companions[*index].aside = false;
		WRITE_ONCE(reg->aside_count, reg->aside_count - 1);
	}
	raw_spin_unlock_irqrestore(&reg->lock, flags);
	return any;
}

/* Is the descriptor in the first argument ready? */
static bool ready(struct thread *thread, const struct flexsc_entry *entry,
		  u8 flags)
{
	struct file *file = fget((unsigned int)READ_ONCE(entry->args[0]));
	__poll_t mask;

	if (!file)
		return true;	/* the call fails at once */
	/* A driver may sleep in it, and then others take over. */
	WRITE_ONCE(thread->asks, true);
	mask = vfs_poll(file, NULL);
	WRITE_ONCE(thread->asks, false);
	fput(file);
	/*
	 * A caller that slept meanwhile couldn't be called back. It isn't going
	 * to sleep in the entry as well: without a slot nobody would notice.
	 */
	if (thread->is_caller && !thread->slot)
		return false;
	if (mask & (EPOLLERR | EPOLLHUP))
		return true;
	return mask & (flags & FLEXSC_IF_READABLE ? EPOLLIN : EPOLLOUT);
}

/* May the caller execute an entry with these flags on its own thread? */
static bool caller_may(struct thread *thread, struct flexsc_entry *entry,
		       u8 flags)
{
	struct registration *reg = thread->reg;

	if (syscall_watched())
		return false;
	if (flags & FLEXSC_MAY_SLEEP &&
	    (thread->wants_more || thread_ask(reg))) {
		/* Nobody would take over. */
		thread->wants_more = true;
		return false;
	}
	if (READ_ONCE(reg->handover))
		return true;
	if (flags & FLEXSC_ASIDE)
		return false;
	if (flags & (FLEXSC_IF_READABLE | FLEXSC_IF_WRITABLE))
		return ready(thread, entry, flags);
	return true;
}

/* Execution. */

/*
 * A thread's completions are linked to each other first, and get into the
 * queue together: when it has no more to do, blocks, or is about to execute
 * what may take long. False: somebody scribbles on the queue.
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
		/* E3; pairs with U3 */
		if (likely(try_cmpxchg(queue, &head, thread->newest)))
			goto published;
	} while (--tries);
	return false;
published:
	/* Pairs with wait_longer() and caller_recall(). */
	atomic64_add(thread->completed, &reg->completed);
	thread->newest = FLEXSC_NO_ENTRY;
	thread->completed = 0;
	return true;
}

/* Any context. False: it has to be tried again. */
bool entries_publish_now(struct thread *thread)
{
	return publish(thread->reg, thread);
}

/*
 * Somebody changes the queue's head all the time. That keeps nobody here but
 * its own threads, and those can be killed.
 */
static noinline void publish_on(struct thread *thread)
{
	do {
		cond_resched();
		if (entries_publish_now(thread))
			return;
	} while (!fatal_signal_pending(current));
	thread->newest = FLEXSC_NO_ENTRY;
	thread->completed = 0;
}

/* Only in a thread's own context, and not while it executes. */
static void entries_publish(struct thread *thread)
{
	if (unlikely(!entries_publish_now(thread)))
		publish_on(thread);
}

/* The entry has its result; entries_publish() tells. */
static __always_inline void complete_entry(struct registration *reg,
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

static void finish(struct thread *thread, u32 index, long ret)
{
	struct registration *reg = thread->reg;

	complete_entry(reg, thread, &reg->entries[index], index, ret);
	entries_publish(thread);
}

/*
 * Take what is submitted. The thread says first what it executes, from then on
 * it can be interrupted: see cancel.c.
 */
static __always_inline bool begin(struct thread *thread,
				  struct flexsc_entry *entry, u32 index)
{
	u8 submitted = FLEXSC_SUBMITTED;

	atomic64_set(&thread->now, NOW_EXECUTES | index);
	/* E1: acquires the arguments that U1 published. A full barrier. */
	return try_cmpxchg(&entry->status, &submitted, FLEXSC_BUSY);
}

/* There was nothing to execute. What was cancelled ends here. */
static noinline void not_begun(struct thread *thread, u32 index)
{
	cancel_settle(thread, index);
	if (READ_ONCE(thread->reg->entries[index].status) == FLEXSC_CANCEL)
		finish(thread, index, -ECANCELED);
}

static void interrupted(struct thread *thread, u32 index, long ret)
{
	struct registration *reg = thread->reg;
	struct flexsc_entry *entry = &reg->entries[index];

	count(reg, COUNT_INTERRUPTED, 1);
	WRITE_ONCE(entry->nargs, READ_ONCE(entry->nargs) | FLEXSC_INTERRUPTED);
	finish(thread, index, ret);
}

/* The task takes it along to user mode, and executes no other before. */
static void carry(struct thread *thread, u32 index, enum taken taken)
{
	struct companion *companion = &thread->reg->companions[index];

	WRITE_ONCE(companion->task, current);
	/* Pairs with entry_carry_on(): "task" is set. */
	smp_store_release(&companion->taken, taken);
	thread->carries = index;
	thread_give_slot(thread);
}

/*
 * The kernel wants to make the call again, behind its caller's back. One with
 * a restart block is tied to this task; others are anybody's.
 */
static void restart(struct thread *thread, u32 index, long ret)
{
	struct registration *reg = thread->reg;
	struct flexsc_entry *entry = &reg->entries[index];

	if (thread->is_caller) {
		interrupted(thread, index, -EINTR);
		return;
	}
	count(reg, COUNT_RESTARTED, 1);
	if (ret == -ERESTART_RESTARTBLOCK) {
		/* Unless the task comes back. */
		WRITE_ONCE(entry->ret, -EINTR);
		carry(thread, index, TAKEN_RESTARTS);
	} else if (cmpxchg(&entry->status, FLEXSC_BUSY, FLEXSC_SUBMITTED) ==
		   FLEXSC_BUSY) {
		put_aside(reg, index, true);
	} else {
		finish(thread, index, -EINTR);
	}
}

static bool is_restart(long ret)
{
	return ret == -ERESTARTSYS || ret == -ERESTARTNOINTR ||
	       ret == -ERESTARTNOHAND || ret == -ERESTART_RESTARTBLOCK;
}

/* Was the call interrupted, or says so? */
static __always_inline bool is_interruption(long ret)
{
	return unlikely((unsigned long)ret >= (unsigned long)-MAX_ERRNO) &&
	       (ret == -EINTR || ret <= -ERESTARTSYS);
}

/* A call that was interrupted. */
static noinline void ended_early(struct thread *thread, u32 index, long ret,
				 bool kicked)
{
	bool cancelled = READ_ONCE(thread->reg->entries[index].status) ==
			 FLEXSC_CANCEL;

	if (is_restart(ret) && !cancelled) {
		restart(thread, index, ret);
		return;
	}
	if (is_restart(ret))
		ret = -EINTR;
	if (!cancelled && (kicked || (ret == -EINTR && signal_pending(current))))
		interrupted(thread, index, ret);
	else
		finish(thread, index, ret);
}

/*
 * A call may leave something for the way to user mode, as close() does: before
 * that is done nobody may take it for complete. A caller has been there when it
 * looks.
 */
static noinline void leave_first(struct thread *thread,
				 struct flexsc_entry *entry, u32 index,
				 long ret)
{
	WRITE_ONCE(entry->ret, ret);
	carry(thread, index, TAKEN_LEAVES);
}

/* Make the call of an entry that was begun. */
static __always_inline void make(struct registration *reg,
				 struct thread *thread,
				 struct flexsc_entry *entry, u32 index,
				 bool is_caller)
{
	unsigned int nr = READ_ONCE(entry->nr);
	bool kicked;
	long ret;

	trace_flexsc_submit(reg, index, nr);
	regs_load(&thread->regs, entry, nr);
	ret = dispatch_of(nr)(&thread->regs);
	kicked = cancel_settle(thread, index);
	if (unlikely(kicked) || is_interruption(ret))
		ended_early(thread, index, ret, kicked);
	else if (!is_caller && unlikely(task_work_pending(current)))
		leave_first(thread, entry, index, ret);
	else
		complete_entry(reg, thread, entry, index, ret);
}

/*
 * Go on with a call that was interrupted in this task. It is BUSY already, so
 * a cancellation may have come before the thread says what it executes.
 */
static void make_again(struct thread *thread, u32 index)
{
	struct registration *reg = thread->reg;
	long ret = -ECANCELED;
	bool kicked;

	WRITE_ONCE(reg->companions[index].thread, thread);
	atomic64_xchg(&thread->now, NOW_EXECUTES | index);
	if (READ_ONCE(reg->entries[index].status) != FLEXSC_CANCEL)
		ret = dispatch_restart(&thread->regs);
	kicked = cancel_settle(thread, index);
	/* A signal was handled meanwhile: then a restart block is void. */
	if (ret == -EINTR)
		kicked = true;
	if (kicked || is_interruption(ret))
		ended_early(thread, index, ret, kicked);
	else
		finish(thread, index, ret);
}

/* Something watches this task's system calls: user mode makes the call. */
static void bounce(struct thread *thread, u32 index)
{
	unsigned int nr = READ_ONCE(thread->reg->entries[index].nr);

	/* From here on a cancellation is user mode's business. */
	cancel_settle(thread, index);
	trace_flexsc_submit(thread->reg, index, nr);
	if (!dispatch_accepts(nr)) {
		finish(thread, index, -EOPNOTSUPP);
		return;
	}
	thread->bounces = true;
	count(thread->reg, COUNT_BOUNCED, 1);
	if (thread->slot)
		atomic64_inc(&thread->slot->counts[SLOT_BOUNCED]);
	carry(thread, index, TAKEN_BOUNCED);
}

/* Does the caller leave the entry to a syscall thread? */
static bool leave_aside(struct thread *thread, struct flexsc_entry *entry,
			u32 index, u8 flags)
{
	struct registration *reg = thread->reg;

	if (caller_may(thread, entry, flags))
		return false;
	count(reg, COUNT_ASIDE, 1);
	put_aside(reg, index, false);
	return true;
}

/*
 * Nobody is left to take over. Does this one leave the entry to user mode,
 * which has other ways, rather than to block as well? What is ready to be
 * written to may block later on.
 */
static bool give_back(struct thread *thread, struct flexsc_entry *entry,
		      u32 index, u8 flags)
{
	if (!(flags & (FLEXSC_ASIDE | FLEXSC_IF_WRITABLE)) &&
	    !syscall_watched() &&
	    (!(flags & FLEXSC_IF_READABLE) ||
	     ready(thread, entry, flags)))
		return false;
	if (begin(thread, entry, index)) {
		cancel_settle(thread, index);
		interrupted(thread, index, -EAGAIN);
	} else {
		not_begun(thread, index);
	}
	return true;
}

/* Must the entry not be executed here and now? */
static bool declined(struct thread *thread, struct flexsc_entry *entry,
		     u32 index, u8 flags)
{
	bool leaves = flags & FLEXSC_MAY_SLEEP ||
		      (thread->is_caller && syscall_watched());

	if (leaves && entries_alone(thread->reg))
		return give_back(thread, entry, index, flags);
	return thread->is_caller && leave_aside(thread, entry, index, flags);
}

/* The same as execute(), where there is something to think about. */
static noinline void consider(struct thread *thread,
			      struct flexsc_entry *entry, u32 index, u8 flags)
{
	entries_publish(thread);
	if (declined(thread, entry, index, flags))
		return;
	/* It lost its slot while it asked: cancel_entry() finds it here. */
	if (!thread->slot)
		WRITE_ONCE(thread->reg->companions[index].thread, thread);
	/* A caller that isn't watched, or wasn't a moment ago, goes on. */
	if (!begin(thread, entry, index))
		not_begun(thread, index);
	else if (!thread->is_caller && syscall_watched())
		bounce(thread, index);
	else
		make(thread->reg, thread, entry, index, thread->is_caller);
}

/* Execute an entry that was taken. */
static __always_inline void execute(struct registration *reg,
				    struct thread *thread, u32 index,
				    bool is_caller)
{
	struct flexsc_entry *entry = &reg->entries[index];
	u8 flags = READ_ONCE(entry->nargs) & ~FLEXSC_NARGS_MASK;

	if (flags || unlikely(syscall_watched()))
		consider(thread, entry, index, flags);
	else if (likely(begin(thread, entry, index)))
		make(reg, thread, entry, index, is_caller);
	else
		not_begun(thread, index);
}

/*
 * Has the thread to go to user mode before it goes on? Not the caller for what
 * is only delayed, as every close() is before 6.6: its batch ends soon, and if
 * it blocks it is interrupted, for that close has completed. A thread that
 * nobody interrupts would keep what is delayed for as long as it blocks.
 */
static bool must_leave(struct thread *thread)
{
	if (thread->is_caller && !READ_ONCE(thread->reg->handover))
		return signal_pending(current);
	return thread_must_leave();
}

/* There is more to do: tell a caller that sleeps of what is done. */
static noinline void tell(struct thread *thread)
{
	entries_publish(thread);
	caller_recall(thread->reg);
}

/*
 * Something needs a look: the thread has to go to user mode, to let others
 * run, or has no slot any more. True: it can't go on.
 */
static noinline bool stops(struct thread *thread)
{
	WRITE_ONCE(thread->blocked, false);
	if (must_leave(thread) || thread->carries != FLEXSC_NO_ENTRY)
		return true;
	if (thread->is_caller &&
	    READ_ONCE(thread->reg->caller) != thread)
		return true;
	/* One that never sleeps holds up who waits for all tasks to do so. */
	if (need_resched())
		tell(thread);
	cond_resched_tasks_rcu_qs();
	if (!thread->slot && !thread_take_slot(thread))
		return true;
	return thread_misplaced(thread);
}

/* What a syscall thread takes next; n: how many it has taken. */
static __always_inline bool take(struct registration *reg,
				 struct thread *thread, u64 n, u32 *index)
{
	bool any;

	if (unlikely(thread->completed >= COMPLETED_MOST))
		entries_publish(thread);
	if (unlikely(n % UNTOLD_MOST == UNTOLD_MOST - 1))
		tell(thread);
	if (thread_unfit(reg))
		return false;
	if (unlikely(READ_ONCE(thread->slot->core) != thread->core) &&
	    thread_misplaced(thread))
		return false;
	any = aside_take(reg, index);
	thread_spill(reg);
	return any || ring_take(reg, index);
}

/* Between entries: does it have to stop? */
static __always_inline bool looks_up(struct thread *thread)
{
	return unlikely(thread_stirs() || !thread->slot) && stops(thread);
}

static __always_inline u64 execute_all(struct registration *reg,
				       struct thread *thread, bool is_caller)
{
	/* A caller comes from user mode, where all of that is seen to. */
	bool stop = !is_caller && looks_up(thread);
	u64 n = 0;
	u32 index;

	while (!stop && (is_caller ? ring_take(reg, &index) :
				     take(reg, thread, n, &index))) {
		execute(reg, thread, index, is_caller);
		stop = looks_up(thread);
		n++;
	}
	if (unlikely(!publish(reg, thread)))
		publish_on(thread);
	WRITE_ONCE(thread->blocked, false);
	return n;
}

static __always_inline void count_batch(struct slot *slot, u64 n)
{
	atomic64_inc(&slot->counts[SLOT_BATCHES]);
	atomic64_add(n, &slot->counts[SLOT_TAKEN]);
}

/* Execute what is submitted, as long as the thread has a slot. */
void entries_execute(struct registration *reg, struct thread *thread)
{
	struct slot *slot = thread->slot;
	u64 n = execute_all(reg, thread, false);

	count(reg, COUNT_EXECUTED, n);
	count_batch(slot, n);
}

/* The same for the caller, who looks at completions when it is back. */
void entries_execute_inline(struct registration *reg, struct thread *thread)
{
	struct slot *slot = thread->slot;
	u64 n = execute_all(reg, thread, true);

	count(reg, COUNT_INLINE, n);
	count_batch(slot, n);
}

/* What was put aside and stranded it executes after all, or gives it back. */
void entries_retrieve(struct registration *reg, struct thread *thread)
{
	u32 index;

	/* One that is interrupted begins no other before it was in user mode. */
	while (thread->slot && !thread_must_leave() && entries_stranded(reg)) {
		if (!aside_take(reg, &index))
			break;
		execute(reg, thread, index, true);
	}
	entries_publish(thread);
	WRITE_ONCE(thread->blocked, false);
}

/* Go on with what this task took along to user mode. */
void entry_carry_on(struct registration *reg, struct thread *thread, u32 index,
		    long ret)
{
	struct companion *companion;
	u8 taken;

	if (index >= reg->entry_count)
		return;
	index = array_index_nospec(index, reg->entry_count);
	companion = &reg->companions[index];
	/* Pairs with carry(). */
	taken = smp_load_acquire(&companion->taken);
	if (taken == TAKEN_NOT || READ_ONCE(companion->task) != current)
		return;
	WRITE_ONCE(companion->task, NULL);
	/* Its next life begins with nothing. */
	smp_store_release(&companion->taken, TAKEN_NOT);
	if (taken == TAKEN_BOUNCED)
		finish(thread, index, ret);
	else if (taken == TAKEN_LEAVES)
		finish(thread, index, READ_ONCE(reg->entries[index].ret));
	else
		make_again(thread, index);
	WRITE_ONCE(thread->blocked, false);
}
