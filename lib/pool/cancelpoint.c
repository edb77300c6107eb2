/* SPDX-License-Identifier: MIT */
/*
 * The cancel signal. Its handler is installed by a raw system call. A sanitizer's
 * wrapper of sigaction() would run the handler later than the kernel does, so that a
 * cancellation could be lost.
 */
#include "cancelpoint.h"

#include <errno.h>
#include <linux/flexsc.h>
#include <pthread.h>
#include <signal.h>
#include <ucontext.h>

#include "lib/base/ask.h"
#include "lib/base/sigaction.h"

_Static_assert(FLEXSC_CANCEL == 4 && ECANCELED == 125,
	       "cancelpoint.S uses these values");

extern const char flexsc__cancelpoint_begin[], flexsc__cancelpoint_end[],
	flexsc__cancelpoint_cancelled[];

static pthread_once_t once = PTHREAD_ONCE_INIT;
static int cancel_signal;

__attribute__((no_sanitize("thread", "address", "undefined")))
static void on_cancel(int signo, siginfo_t *info, void *context)
{
	ucontext_t *uc = context;
#if defined(__x86_64__)
	greg_t *pc = &uc->uc_mcontext.gregs[REG_RIP];
#else
	unsigned long long *pc = &uc->uc_mcontext.pc;
#endif

	(void)signo;
	(void)info;
	if ((uintptr_t)*pc >= (uintptr_t)flexsc__cancelpoint_begin &&
	    (uintptr_t)*pc < (uintptr_t)flexsc__cancelpoint_end)
		*pc = (uintptr_t)flexsc__cancelpoint_cancelled;
}

static void choose_signal(void)
{
	extern void flexsc__cancel_restorer(void);
	const struct kernel_sigaction mine = {
		.handler = (uintptr_t)on_cancel,
		.flags = SA_SIGINFO | SA_RESTORER,	/* without SA_RESTART, calls
							 * return -EINTR */
		.restorer = (uintptr_t)flexsc__cancel_restorer,
		.mask = ~0ULL,
	};
	struct kernel_sigaction before;

	for (int signo = SIGRTMAX; signo >= SIGRTMIN; signo--) {
		if (kernel_sigaction(signo, NULL, &before) || before.handler)
			continue;
		if (!kernel_sigaction(signo, &mine, NULL))
			cancel_signal = signo;
		return;
	}
}

int flexsc__cancel_signal(void)
{
	pthread_once(&once, choose_signal);
	return cancel_signal;
}

void flexsc__cancel_unblock(int signo)
{
	uint64_t mask = signo ? 1ULL << (signo - 1) : 0;

	raw_syscall(SYS_rt_sigprocmask, SIG_UNBLOCK, PTR(&mask), 0,
		    sizeof(mask), 0, 0);
}

void flexsc__cancel_send(pid_t tid, int signo)
{
	ask(SYS_tgkill, (uint64_t)ask(SYS_getpid, 0, 0, 0, 0, 0, 0),
	    (uint64_t)tid, (uint64_t)signo, 0, 0, 0);
}
