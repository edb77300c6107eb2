/* SPDX-License-Identifier: MIT */
/*
 * The functions that set signal handlers, marked TRY in base/symbols.def. They are used
 * where libc isn't patched, and run on the program's threads.
 */
#include "libc.h"

#include <errno.h>
#include <string.h>

#include "runtime/base/interpose.h"
#include "runtime/sched/state.h"
#include "runtime/signals/actions.h"
#include "front.h"
#include "libc_call.h"

static struct kernel_sigaction to_kernel(const struct sigaction *from)
{
	struct kernel_sigaction action = {
		.handler = (uintptr_t)from->sa_handler,
		.flags = (uint32_t)from->sa_flags,
		.restorer = flexsc__signal_restorer(),
	};

	if (action.restorer)
		action.flags |= SA_RESTORER;

	memcpy(&action.mask, &from->sa_mask, sizeof(action.mask));
	return action;
}

static struct sigaction from_kernel(const struct kernel_sigaction *from)
{
	struct sigaction action = { .sa_flags = (int)from->flags };

	/* sa_handler and sa_sigaction share memory, so this sets either one. */
	action.sa_handler = (sighandler_t)from->handler;
	memcpy(&action.sa_mask, &from->mask, sizeof(from->mask));
	return action;
}

int try_sigaction(int signo, const struct sigaction *new,
		  struct sigaction *old)
{
	struct kernel_sigaction next, original;
	const uint64_t args[6] = { (uint64_t)signo, new ? PTR(&next) : 0,
				   PTR(&original), sizeof(sigmask_t) };

	if (signo == SIGNAL_CANCEL || signo == SIGNAL_SETXID) {
		errno = EINVAL;
		return -1;
	}
	if (new)
		next = to_kernel(new);
	if (flexsc__libc_call(false, SYS_rt_sigaction, args))
		return -1;
	if (old)
		*old = from_kernel(&original);
	return 0;
}

/*
 * The signals for which siginterrupt(signo, 1) was called: for these, signal() and its
 * aliases set handlers without SA_RESTART. Bit n is signal n + 1.
 */
static sigmask_t interrupting;

static sighandler_t set(int signo, sighandler_t handler, int flags)
{
	struct sigaction new = { .sa_flags = flags }, old;

	new.sa_handler = handler;
	if (handler == SIG_ERR || sigaddset(&new.sa_mask, signo)) {
		errno = EINVAL;
		return SIG_ERR;
	}
	if (flags & SA_NODEFER)
		sigemptyset(&new.sa_mask);
	return try_sigaction(signo, &new, &old) ? SIG_ERR : old.sa_handler;
}

sighandler_t try_signal(int signo, sighandler_t handler)
{
	bool interrupts = signo > 0 && interrupting >> ((signo - 1) & 63) & 1;

	return set(signo, handler, interrupts ? 0 : SA_RESTART);
}

sighandler_t try_bsd_signal(int signo, sighandler_t handler)
	__attribute__((alias("try_signal")));
sighandler_t try_ssignal(int signo, sighandler_t handler)
	__attribute__((alias("try_signal")));

sighandler_t try_sysv_signal(int signo, sighandler_t handler)
{
	return set(signo, handler, (int)SA_RESETHAND | SA_NODEFER);
}

sighandler_t try___sysv_signal(int signo, sighandler_t handler)
	__attribute__((alias("try_sysv_signal")));

/*
 * siginterrupt() affects later calls of signal(). So it is recorded from the start,
 * even before it is known whether libc can be patched.
 */
EXPORT int own_siginterrupt(int signo, int interrupts)
	__asm__("siginterrupt");
EXPORT int own_siginterrupt(int signo, int interrupts)
{
	struct sigaction action;

	if (signo > 0 && signo <= 64)
		interrupting = (interrupting & ~(1ULL << (signo - 1))) |
			       (sigmask_t)!!interrupts << (signo - 1);
	if (!flexsc__runtime.unpatched || flexsc__real_foreign(REAL_siginterrupt))
		return ((int (*)(int, int))flexsc__real(REAL_siginterrupt))(
			signo, interrupts);
	if (sigaction(signo, NULL, &action))
		return -1;
	action.sa_flags = interrupts ? action.sa_flags & ~SA_RESTART :
				       action.sa_flags | SA_RESTART;
	return sigaction(signo, &action, NULL);
}

/* Calls this library's sigaction() and sigprocmask(), because the hook sees these. */
static sighandler_t own_sigset(int signo, sighandler_t handler)
{
	struct sigaction new = { .sa_flags = 0 }, old;
	sigset_t set, original;
	bool blocks = handler == SIG_HOLD;

	new.sa_handler = handler;
	sigemptyset(&set);
	if (handler == SIG_ERR || sigaddset(&set, signo)) {
		errno = EINVAL;
		return SIG_ERR;
	}
	if (sigaction(signo, blocks ? NULL : &new, &old) ||
	    sigprocmask(blocks ? SIG_BLOCK : SIG_UNBLOCK, &set, &original))
		return SIG_ERR;
	return sigismember(&original, signo) ? SIG_HOLD : old.sa_handler;
}
FRONT(sigset, own_sigset)
