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

/* The ring. */

static __always_inline u32 ring_take(struct registration *reg)
{
	u32 head = (u32)atomic_read(&reg->head);
	u32 index;

	do {
		/* E4: acquires the ring's words that U4 published. */
		if (head == smp_load_acquire(&reg->shared->tail))
			return FLEXSC_NO_ENTRY;
		/* One that lies about its tail gets what is in the ring. */
		index = READ_ONCE(reg->ring[head & (reg->entry_count - 1)]);
	} while (!atomic_try_cmpxchg(&reg->head, (int *)&head, (int)(head + 1)));
	WRITE_ONCE(reg->shared->head, head + 1);
	return index;
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

static u32 aside_take(struct registration *reg)
{
	u32 index = FLEXSC_NO_ENTRY;
	unsigned long flags;

	if (!READ_ONCE(reg->aside_count))
		return index;
	raw_spin_lock_irqsave(&reg->lock, flags);
	if (reg->aside_count) {
		index = reg->aside.head;
		reg->aside.head = reg->companions[index].next;
		reg->companions[index].aside = false;
		WRITE_ONCE(reg->aside_count, reg->aside_count - 1);
	}
	raw_spin_unlock_irqrestore(&reg->lock, flags);
	return index;
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
	if (flags & FLEXSC_MAY_SLEEP && thread_ask(reg)) {
		/* Nobody would take over. */
		thread->wants_more = true;
		return false;
	}
	if (reg->handover)
		return true;
	if (flags & FLEXSC_ASIDE)
		return false;
	if (flags & (FLEXSC_IF_READABLE | FLEXSC_IF_WRITABLE))
		return ready(thread, entry, flags);
	return true;
}

/* Execution. */

/*
 * Somebody else has changed the completion queue's head. Who does that all the
 * time keeps nobody here but its own threads, and those can be killed.
 */
static noinline bool push_again(void)
{
	cond_resched();
	return !fatal_signal_pending(current);
}

/* The entry has its result. */
static __always_inline void finish(struct registration *reg, u32 index,
				   long ret)
{
	struct flexsc_entry *entry = &reg->entries[index];
	u32 *queue = &reg->shared->completions.head;
	u32 head = READ_ONCE(*queue);

	trace_flexsc_complete(reg->id, index, ret);
	WRITE_ONCE(entry->ret, ret);
	/* E2: publishes ret and what the call wrote; pairs with U2. */
	smp_store_release(&entry->status, FLEXSC_DONE);
	do {
		WRITE_ONCE(entry->link, head);
	} while (!try_cmpxchg(queue, &head, index) &&	/* E3; pairs with U3 */
		 push_again());
	/* Pairs with caller_sleep() and caller_recall(). */
	atomic64_inc(&reg->completed);
}

/* False: there is nothing to execute. One that was cancelled ends here. */
static __always_inline bool begin(struct registration *reg, u32 index)
{
	/* E1: acquires the arguments that U1 published. */
	u8 status = cmpxchg(&reg->entries[index].status, FLEXSC_SUBMITTED,
			    FLEXSC_BUSY);

	if (unlikely(status == FLEXSC_CANCEL))
		finish(reg, index, -ECANCELED);
	return status == FLEXSC_SUBMITTED;
}

static void interrupted(struct thread *thread, u32 index, long ret)
{
	struct registration *reg = thread->reg;
	struct flexsc_entry *entry = &reg->entries[index];

	count(reg, COUNT_INTERRUPTED, 1);
	WRITE_ONCE(entry->nargs, READ_ONCE(entry->nargs) | FLEXSC_INTERRUPTED);
	finish(reg, index, ret);
}

/*
 * The kernel wants to make the call again, behind its caller's back. One with
 * a restart block is tied to this task; others are anybody's.
 */
static void restart(struct thread *thread, u32 index, long ret)
{
	struct registration *reg = thread->reg;
	struct flexsc_entry *entry = &reg->entries[index];
	struct companion *companion = &reg->companions[index];

	if (thread->is_caller) {
		interrupted(thread, index, -EINTR);
		return;
	}
	count(reg, COUNT_RESTARTED, 1);
	if (ret == -ERESTART_RESTARTBLOCK) {
		companion->task = current;
		/* Pairs with entry_carry_on(): "task" is set. */
		smp_store_release(&companion->taken, TAKEN_RESTARTS);
		thread->carries = index;
	} else if (cmpxchg(&entry->status, FLEXSC_BUSY, FLEXSC_SUBMITTED) ==
		   FLEXSC_BUSY) {
		put_aside(reg, index, true);
	} else {
		finish(reg, index, -EINTR);
	}
}

static bool is_restart(long ret)
{
	return ret == -ERESTARTSYS || ret == -ERESTARTNOINTR ||
	       ret == -ERESTARTNOHAND || ret == -ERESTART_RESTARTBLOCK;
}

/* A call that was interrupted, or failed. */
static noinline void failed(struct thread *thread, u32 index, long ret,
			    bool kicked)
{
	struct registration *reg = thread->reg;
	bool cancelled =
		READ_ONCE(reg->entries[index].status) == FLEXSC_CANCEL;

	if (is_restart(ret) && !cancelled) {
		restart(thread, index, ret);
		return;
	}
	if (is_restart(ret))
		ret = -EINTR;
	if (!cancelled && (kicked || (ret == -EINTR && signal_pending(current))))
		interrupted(thread, index, ret);
	else
		finish(reg, index, ret);
}

/*
 * Make the call. From "now" on the entry can be interrupted; a cancellation
 * that came earlier is seen here: see cancel.c.
 */
static __always_inline void make(struct registration *reg,
				 struct thread *thread, u32 index,
				 call_fn call, bool again)
{
	long ret = -ECANCELED;
	bool kicked;

	WRITE_ONCE(reg->companions[index].thread, thread);
	atomic64_xchg(&thread->now, NOW_EXECUTES | index);
	if (likely(READ_ONCE(reg->entries[index].status) != FLEXSC_CANCEL))
		ret = call(&thread->regs);
	kicked = cancel_settle(thread, index);
	/* A signal was handled meanwhile: then a restart block is void. */
	if (again && ret == -EINTR)
		kicked = true;
	if (unlikely(kicked | ((unsigned long)ret >= (unsigned long)-MAX_ERRNO)))
		failed(thread, index, ret, kicked);
	else
		finish(reg, index, ret);
}

/* Something watches this task's system calls: user mode makes the call. */
static noinline void bounce(struct thread *thread, u32 index, unsigned int nr)
{
	struct registration *reg = thread->reg;
	struct companion *companion = &reg->companions[index];

	if (!dispatch_accepts(nr)) {
		finish(reg, index, -EOPNOTSUPP);
		return;
	}
	companion->task = current;
	/* Pairs with entry_carry_on(): "task" is set. */
	smp_store_release(&companion->taken, TAKEN_BOUNCED);
	thread->carries = index;
	thread->bounces = true;
	count(reg, COUNT_BOUNCED, 1);
	if (thread->slot)
		atomic64_inc(&thread->slot->counts[SLOT_BOUNCED]);
}

/* Does the caller leave the entry to a syscall thread? */
static bool leave_aside(struct thread *thread, u32 index, u8 flags)
{
	struct registration *reg = thread->reg;

	if (caller_may(thread, &reg->entries[index], flags))
		return false;
	count(reg, COUNT_ASIDE, 1);
	put_aside(reg, index, false);
	return true;
}

/* No more threads can be made, and none is left to take over. */
static bool alone(struct registration *reg)
{
	return READ_ONCE(reg->no_more) && !atomic_read(&reg->idle_count);
}

/*
 * Then does this one leave the entry to user mode, which has other ways, rather
 * than to block as well? What is ready to be written to may block later on.
 */
static bool give_back(struct thread *thread, u32 index, u8 flags)
{
	struct registration *reg = thread->reg;

	if (!(flags & (FLEXSC_ASIDE | FLEXSC_IF_WRITABLE)) &&
	    !syscall_watched() &&
	    (!(flags & FLEXSC_IF_READABLE) ||
	     ready(thread, &reg->entries[index], flags)))
		return false;
	if (begin(reg, index))
		interrupted(thread, index, -EAGAIN);
	return true;
}

/* Must the entry not be executed here and now? */
static noinline bool declined(struct thread *thread, u32 index, u8 flags)
{
	bool leaves = flags & FLEXSC_MAY_SLEEP ||
		      (thread->is_caller && syscall_watched());

	if (leaves && alone(thread->reg))
		return give_back(thread, index, flags);
	return thread->is_caller && leave_aside(thread, index, flags);
}

/* Execute an entry that was taken. */
static __always_inline void execute(struct registration *reg,
				    struct thread *thread, u32 index)
{
	struct flexsc_entry *entry = &reg->entries[index];
	u8 flags = READ_ONCE(entry->nargs) & ~FLEXSC_NARGS_MASK;
	bool watched = syscall_watched();
	unsigned int nr;

	if (unlikely(flags | watched) && declined(thread, index, flags))
		return;
	if (unlikely(!begin(reg, index)))
		return;
	nr = READ_ONCE(entry->nr);
	trace_flexsc_submit(reg->id, index, nr);
	if (unlikely(watched)) {
		bounce(thread, index, nr);
		return;
	}
	regs_load(&thread->regs, entry, nr);
	make(reg, thread, index, dispatch_of(nr), false);
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

/*
 * Something needs a look: the thread has to go to user mode, to let others
 * run, or has blocked and lost its slot. True: it can't go on.
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
	cond_resched_tasks_rcu_qs();
	if (!thread->slot && !thread_take_slot(thread))
		return true;
	return thread_misplaced(thread);
}

/* Execute what is submitted, as long as the thread has a slot. */
void entries_execute(struct registration *reg, struct thread *thread)
{
	const bool is_caller = thread->is_caller;
	struct slot *slot = thread->slot;
	u64 n = 0;
	u32 index;

	for (;; n++) {
		if (unlikely(thread_stirs() || !thread->slot ||
			     thread->carries != FLEXSC_NO_ENTRY) &&
		    stops(thread))
			break;
		index = FLEXSC_NO_ENTRY;
		if (!is_caller) {
			if (thread_unfit(reg))
				break;
			if (unlikely(READ_ONCE(thread->slot->core) !=
				     thread->core) && thread_misplaced(thread))
				break;
			index = aside_take(reg);
			thread_spill(reg);
		}
		if (index == FLEXSC_NO_ENTRY)
			index = ring_take(reg);
		if (index == FLEXSC_NO_ENTRY)
			break;
		if (likely(index < reg->entry_count))
			execute(reg, thread,
				array_index_nospec(index, reg->entry_count));
	}
	WRITE_ONCE(thread->blocked, false);
	count(reg, is_caller ? COUNT_INLINE : COUNT_EXECUTED, n);
	atomic64_inc(&slot->counts[SLOT_BATCHES]);
	atomic64_add(n, &slot->counts[SLOT_TAKEN]);
}

/* Did the caller put entries aside for others whom there are none of? */
bool entries_stranded(struct registration *reg)
{
	return READ_ONCE(reg->aside_count) && alone(reg);
}

/* Then it executes them after all, or gives them back. */
void entries_retrieve(struct registration *reg, struct thread *thread)
{
	u32 index;

	while (thread->slot && entries_stranded(reg)) {
		index = aside_take(reg);
		if (index == FLEXSC_NO_ENTRY)
			break;
		execute(reg, thread, index);
		if (thread_must_leave())
			break;
	}
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
	/* Pairs with bounce() and restart(). */
	taken = smp_load_acquire(&companion->taken);
	if (taken == TAKEN_NOT || companion->task != current)
		return;
	companion->task = NULL;
	/* Its next life begins with nothing. */
	smp_store_release(&companion->taken, TAKEN_NOT);
	if (taken == TAKEN_BOUNCED)
		finish(reg, index, ret);
	else
		make(reg, thread, index, dispatch_restart, true);
	WRITE_ONCE(thread->blocked, false);
}
