// SPDX-License-Identifier: GPL-2.0-only
/*
 * Entries whose call was interrupted, left work for the way to user mode, or
 * must not be made in the kernel. Some of them are submitted again, some end.
 * For the others, a syscall thread keeps its claim while it passes through user
 * mode ("carries the entry"), and continues the entry when it comes back. Run
 * by the thread that executes the entry, in process context.
 */
#include <linux/nospec.h>
#include <linux/sched/signal.h>

#include "base/compat.h"
#include "base/dispatch.h"
#include "base/entry.h"
#include "base/registration.h"
#include "exec/carry.h"
#include "exec/deferred.h"
#include "exec/publish.h"
#include "sched/cancel.h"
#include "sched/permit.h"
#include "sched/recall.h"
#include "sched/record.h"

/*
 * Let the current task carry the entry through user mode. The task executes no
 * other entry before it has come back with this one.
 */
static void carry(struct thread *thread, u32 index, enum taken taken)
{
	struct companion *companion = &thread->reg->companions[index];

	WARN_ON_ONCE(thread->is_waiter || thread->carries != FLEXSC_NO_ENTRY);
	WRITE_ONCE(companion->task, current);
	/* Pairs with carry_on(), which reads "task" after "taken". */
	smp_store_release(&companion->taken, taken);
	thread->carries = index;
	permit_release(thread);
}

/*
 * Submit a BUSY entry again, at the front or at the back of the deferred list.
 * Its call will be made from the beginning. If the entry was cancelled
 * meanwhile, end it here with ret.
 */
static void carry_resubmit(struct thread *thread, u32 index, bool front,
			   long ret)
{
	struct registration *reg = thread->reg;

	/* Its next call hasn't blocked yet. */
	WRITE_ONCE(reg->entries[index].ret, 0);
	if (entry_leave(&reg->entries[index]))
		deferred_put(reg, index, front);
	else
		publish_finish(thread, index, ret);
}

/*
 * Handle a restart code of the kernel. A call with a restart block can continue
 * only in this task, so a syscall thread carries its entry through user mode.
 * Other calls may be made from the beginning by any thread. The waiter may be
 * needed in user mode, so its entry ends as INTERRUPTED.
 */
static void carry_restart(struct thread *thread, u32 index, long ret)
{
	struct registration *reg = thread->reg;

	if (thread->is_waiter) {
		publish_interrupted(thread, index, -EINTR);
		return;
	}
	count(reg, COUNT_RESTARTED, 1);
	if (ret == -ERESTART_RESTARTBLOCK) {
		/* This is the entry's result if the task never comes back. */
		WRITE_ONCE(reg->entries[index].ret, -EINTR);
		carry(thread, index, TAKEN_RESTARTS);
	} else {
		carry_resubmit(thread, index, true, -EINTR);
	}
}

/*
 * Handle a call of a syscall thread that a signal has ended. If a handler runs,
 * the entry's result is -EINTR, or, with SA_RESTART, the call is made again. If
 * no handler runs, because the signal only stopped the task or another thread
 * took the signal, the call continues.
 *
 * On the way to user mode, the kernel decides which of these happens, by the
 * result of the system call that returns. So the ioctl returns the result of
 * the entry's call. Then the thread calls the ioctl again with the entry: the
 * kernel restarts it if no handler ran; otherwise the thread passes
 * FLEXSC_SERVE_HANDLED.
 */
static void carry_signalled(struct thread *thread, u32 index, long ret)
{
	enum taken taken = TAKEN_RETRY;

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
 * Handle a completed call that has left work for the way to user mode, as
 * close() does. The entry must not be seen as complete before that work is
 * done, so a syscall thread carries it through user mode. The waiter needn't
 * carry it, because the waiter passes through user mode before it checks for
 * completions.
 */
noinline void carry_leave_first(struct thread *thread, u32 index, long ret)
{
	WRITE_ONCE(thread->reg->entries[index].ret, ret);
	carry(thread, index, TAKEN_LEAVES);
}

static bool carry_is_restart(long ret)
{
	return ret == -ERESTARTSYS || ret == -ERESTARTNOINTR ||
	       ret == -ERESTARTNOHAND || ret == -ERESTART_RESTARTBLOCK;
}

/*
 * Handle an interrupted call. The reason and "ret" decide whether its entry is
 * complete, ends as INTERRUPTED, or its call is made again.
 */
noinline void carry_end_early(struct thread *thread, u32 index, long ret,
			      bool kicked)
{
	bool cancelled = entry_is_cancelled(&thread->reg->entries[index]);

	if (!cancelled && !thread->is_waiter && task_sigpending(current) &&
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
	if (!cancelled &&
	    (kicked || (ret == -EINTR && signal_pending(current))))
		publish_interrupted(thread, index, ret);
	else if (!thread->is_waiter && task_work_pending(current))
		carry_leave_first(thread, index, ret);
	else
		publish_finish(thread, index, ret);
}

/*
 * Let user mode make the call, because a tracer or filter must see this task's
 * system calls. From here on, only user mode can interrupt the call if the
 * owner cancels the entry.
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
	if (thread->permit)
		atomic64_inc(&thread->permit->counts[PERMIT_BOUNCED]);
	carry(thread, index, TAKEN_BOUNCED);
}

/*
 * Handle an entry that the waiter must not execute, because the waiter is
 * traced. FLEXSC_IOC_WAIT can't bounce an entry, so the entry goes to a syscall
 * thread, or back to user mode if there is no syscall thread.
 */
static void carry_defer_traced(struct thread *thread, u32 index)
{
	struct registration *reg = thread->reg;

	if (entries_without_threads(reg)) {
		publish_interrupted(thread, index, -EAGAIN);
		return;
	}
	count(reg, COUNT_DEFERRED, 1);
	carry_resubmit(thread, index, false, -ECANCELED);
}

/*
 * Don't make the entry's call here: a tracer or filter must see the current
 * task's calls.
 */
noinline void carry_traced(struct thread *thread, u32 index,
				 unsigned int nr)
{
	cancel_settle(thread, index);
	if (thread->is_waiter)
		carry_defer_traced(thread, index);
	else
		carry_bounce(thread, index, nr);
}

/*
 * Continue a call that was interrupted in this task. The entry has been BUSY
 * all the time, so it may have been cancelled before the thread stored what it
 * executes. Therefore the status is checked after a full barrier, which pairs
 * with cancel_entry().
 *
 * If the thread has become traced or unfit, the entry ends as INTERRUPTED, and
 * the library lets another thread make its call from the beginning.
 */
static void carry_resume(struct thread *thread, u32 index)
{
	struct registration *reg = thread->reg;
	long ret = -ECANCELED;
	bool kicked;

	if (syscall_traced() || current_is_unfit(reg)) {
		publish_interrupted(thread, index, -EINTR);
		return;
	}
	WRITE_ONCE(reg->companions[index].thread, thread);
	atomic64_xchg(&thread->executes, EXECUTES_ENTRY | index);
	if (!entry_is_cancelled(&reg->entries[index]))
		ret = dispatch_restart(&thread->regs);
	kicked = cancel_settle(thread, index);
	/*
	 * A signal handler ran meanwhile, so the restart block isn't valid any
	 * more.
	 */
	if (ret == -EINTR)
		kicked = true;
	if (kicked || carry_is_interruption(ret))
		carry_end_early(thread, index, ret, kicked);
	else
		publish_finish(thread, index, ret);
}

/*
 * Continue a call that a signal has ended. If a handler ran
 * (FLEXSC_SERVE_HANDLED), end the entry with -EINTR.
 */
static void carry_on_signalled(struct thread *thread, u32 index, u8 taken,
			       bool handled)
{
	if (handled)
		publish_finish(thread, index, -EINTR);
	else if (taken == TAKEN_RESTARTS)
		carry_resume(thread, index);
	else if (taken == TAKEN_RETRY)
		carry_resubmit(thread, index, true, -EINTR);
	else
		publish_interrupted(thread, index, -EINTR);
}

/* Continue the entry that this task has carried through user mode. */
void carry_on(struct registration *reg, struct thread *thread,
	      const struct flexsc_serve *args)
{
	u32 index = args->index;
	struct companion *companion;
	u8 taken;

	if (index >= reg->entry_count)
		return;
	index = array_index_nospec(index, reg->entry_count);
	companion = &reg->companions[index];
	/* Pairs with carry(): "task" belongs to this value of "taken". */
	taken = smp_load_acquire(&companion->taken);
	if (taken == TAKEN_NOT || READ_ONCE(companion->task) != current)
		return;
	WRITE_ONCE(companion->task, NULL);
	/*
	 * Relaxed: a reader that finds TAKEN_NOT doesn't read "task". A later
	 * carrier's stores to the two fields come after these stores, because a
	 * release (entry_finish()) or a full barrier (entry_leave()) is in
	 * between.
	 */
	WRITE_ONCE(companion->taken, TAKEN_NOT);
	if (taken == TAKEN_BOUNCED)
		publish_finish(thread, index, args->ret);
	else if (taken == TAKEN_LEAVES)
		publish_finish(thread, index,
			       READ_ONCE(reg->entries[index].ret));
	else
		carry_on_signalled(thread, index, taken,
				   args->flags & FLEXSC_SERVE_HANDLED);
	WRITE_ONCE(thread->blocked, false);
}
