/* SPDX-License-Identifier: MIT */
#include "actions.h"

#include <errno.h>
#include <string.h>

#include "lib/base/futex.h"
#include "runtime/arch/frame.h"
#include "runtime/base/peek.h"
#include "runtime/sched/state.h"
#include "runtime/sched/uthread.h"

#define SIGNALS	64

/*
 * actions: what the program has set. ours: the kernel has the runtime's action for the
 * signal instead.
 */
static struct kernel_sigaction actions[SIGNALS + 1];
static bool ours[SIGNALS + 1];
static struct lock actions_lock;
/*
 * Address that handlers return to: libc's function, which libc passes to the kernel
 * with every action. 0 on aarch64, where the kernel has such a function.
 */
static uint64_t restorer;
/*
 * The process whose actions these are. A vfork() child uses this memory, too, but has
 * actions of its own.
 */
static long owner;

/* The runtime's handler. */
static void (*handler)(int, siginfo_t *, void *);

static long replace(int signo, const struct kernel_sigaction *new);

static bool is_function(uint64_t handler)
{
	return handler != (uintptr_t)SIG_DFL && handler != (uintptr_t)SIG_IGN;
}

static bool is_owner(void)
{
	return signal_process() == owner;
}

bool flexsc__action_is_default(int signo)
{
	return actions[signo].handler == (uintptr_t)SIG_DFL;
}

uint64_t flexsc__action_flags(int signo)
{
	return actions[signo].flags;
}

bool flexsc__action_ignores(int signo)
{
	struct kernel_sigaction action;

	return kernel_sigaction(signo, NULL, &action) ||
	       action.handler == (uintptr_t)SIG_IGN;
}

static const struct kernel_sigaction normal = { .handler = (uintptr_t)SIG_DFL };

/*
 * A fault happens again when the runtime's handler returns, now with the default
 * action. Other signals don't happen again, because they were sent, or came after the
 * instruction that raised them. So they are sent again.
 */
void flexsc__action_end(int signo, siginfo_t *info, ucontext_t *context)
{
	sigmask_t mask;

	kernel_sigaction(signo, &normal, NULL);
	memcpy(&mask, &context->uc_sigmask, sizeof(mask));
	mask &= ~SIGNAL_BIT(signo);
	memcpy(&context->uc_sigmask, &mask, sizeof(mask));
	if (!signal_is_fault(signo, info) || frame_is_past(signo))
		signal_queue((int32_t)raw_syscall(SYS_gettid, 0, 0, 0, 0, 0, 0),
			     signo, info);
}

static void reset(int signo)
{
	lock(&actions_lock);
	if (is_owner())
		replace(signo, &normal);
	else
		kernel_sigaction(signo, &normal, NULL);
	unlock(&actions_lock);
}

void flexsc__action_run(int signo, siginfo_t *info, ucontext_t *context)
{
	struct kernel_sigaction action = actions[signo];
	sigmask_t mask;

	/* Another thread may have removed the handler since the signal arrived. */
	if (!is_function(action.handler)) {
		flexsc__action_end(signo, info, context);
		return;
	}
	memcpy(&mask, &context->uc_sigmask, sizeof(mask));
	mask |= action.mask;
	if (!(action.flags & SA_NODEFER))
		mask |= 1ULL << (signo - 1);
	/* Strict mode forbids these calls: all signals stay blocked in the handler. */
	if (!flexsc__self.strict) {
		if (action.flags & SA_RESETHAND)
			reset(signo);
		signal_mask(SIG_SETMASK, &mask, NULL);
	}
	if (action.flags & SA_SIGINFO)
		((void (*)(int, siginfo_t *, void *))action.handler)(
			signo, info, context);
	else
		((void (*)(int))action.handler)(signo);
}

/*
 * Does the kernel need the runtime's handler for this action? True for a handler of the
 * program, and for the default action of a signal in runtime_raised(). Carriers don't
 * block the signals in runtime_raised(). So before the kernel acts on such a signal,
 * the runtime must find the user thread that the signal is for, and whether that user
 * thread blocks the signal.
 */
static bool is_replaced(int signo, const struct kernel_sigaction *action)
{
	return is_function(action->handler) ||
	       (action->handler == (uintptr_t)SIG_DFL &&
		runtime_raised() & SIGNAL_BIT(signo));
}

/* The action that the kernel gets in place of the program's. */
static struct kernel_sigaction
instead_of(int signo, const struct kernel_sigaction *action)
{
	struct kernel_sigaction own = *action;

	own.handler = (uintptr_t)handler;
	if (restorer && !(own.flags & SA_RESTORER)) {
		own.flags |= SA_RESTORER;
		own.restorer = restorer;
	}
	/*
	 * SA_RESETHAND applies to the program's handler (flexsc__action_run()); the
	 * runtime's must stay.
	 */
	own.flags = (own.flags | SA_SIGINFO) & ~(uint64_t)SA_RESETHAND;
	/* Use the alternate stack, if any: the thread may have little stack left. */
	if (signo == SIGNAL_SETXID || !is_function(action->handler))
		own.flags |= SA_ONSTACK;
	/* If the program has no handler, its calls must not fail with EINTR. */
	if (!is_function(action->handler))
		own.flags |= SA_RESTART;
	/* Block all signals until the handler has found this signal's user thread. */
	own.mask = ~0ULL;
	return own;
}

/* With actions_lock held. */
static long replace(int signo, const struct kernel_sigaction *new)
{
	struct kernel_sigaction own;
	long err;

	/*
	 * Keep libc's restorer, because unwinders recognise no other one. A library's
	 * raw call may pass another one.
	 */
	if (new->flags & SA_RESTORER && (!restorer || signo == SIGNAL_SETXID))
		restorer = new->restorer;
	if (!is_replaced(signo, new)) {
		err = kernel_sigaction(signo, new, NULL);
		if (!err)
			ours[signo] = false;
		return err;
	}
	own = instead_of(signo, new);
	actions[signo] = *new;
	err = kernel_sigaction(signo, &own, NULL);
	if (!err)
		ours[signo] = true;
	return err;
}

long flexsc__signal_action(const uint64_t args[6])
{
	const struct kernel_sigaction *new = (void *)(uintptr_t)args[1];
	struct kernel_sigaction *old = (void *)(uintptr_t)args[2];
	int signo = (int)args[0];
	struct kernel_sigaction original, next;
	long err;

	if (signo < 1 || signo > SIGNALS || args[3] != sizeof(sigmask_t) ||
	    !peek_if_given(new, sizeof(*new)) || !is_owner())
		return raw_syscall(SYS_rt_sigaction, args[0], args[1], args[2],
				   args[3], 0, 0);
	if (new)
		next = *new;
	lock(&actions_lock);
	err = kernel_sigaction(signo, NULL, &original);
	/*
	 * libc may have changed the action without the runtime seeing it. So return the
	 * kernel's action, unless it is the runtime's handler.
	 */
	if (!err && original.handler == (uintptr_t)handler)
		original = actions[signo];
	if (!err && new)
		err = replace(signo, &next);
	unlock(&actions_lock);
	if (err || !old)
		return err;
	/* As in the kernel, the action is changed even if "old" is invalid. */
	if (!peek_if_given(old, sizeof(*old)))
		return -EFAULT;
	*old = original;
	return 0;
}

bool flexsc__signal_has_handler(int signo)
{
	return signo > 0 && signo <= SIGNALS && ours[signo] &&
	       is_function(actions[signo].handler);
}

void flexsc__signal_adopt(int signo)
{
	struct kernel_sigaction original;

	lock(&actions_lock);
	if (!kernel_sigaction(signo, NULL, &original) && is_replaced(signo, &original) &&
	    original.handler != (uintptr_t)handler)
		replace(signo, &original);
	unlock(&actions_lock);
}

uint64_t flexsc__signal_restorer(void)
{
	/*
	 * Known by now: libc set SIGNAL_SETXID's action, which contains the restorer,
	 * when it created the first thread.
	 */
	return restorer;
}

void flexsc__actions_forked(void)
{
	if (owner)
		owner = signal_process();
	actions_lock = (struct lock){ 0 };
}

void flexsc__actions_init(void (*arrive)(int, siginfo_t *, void *))
{
	handler = arrive;
	owner = signal_process();
	/* SIGNAL_SETXID first: the other actions use the restorer from its action. */
	flexsc__signal_adopt(SIGNAL_SETXID);
	for (int signo = 1; signo <= SIGNALS; signo++)
		flexsc__signal_adopt(signo);
}
