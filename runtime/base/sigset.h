/* SPDX-License-Identifier: MIT */
/* Sets of signals, as the kernel has them. */
#ifndef FLEXSC_RUNTIME_SIGSET_H
#define FLEXSC_RUNTIME_SIGSET_H

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>

#include "lib/base/syscall.h"

/* The kernel's signal set: bit n is signal n + 1. */
typedef uint64_t sigmask_t;

#define SIGNAL_BIT(signo)	(1ULL << ((signo) - 1))
/* The signals that instructions raise. */
#define SIGNAL_FAULTS	(SIGNAL_BIT(SIGSEGV) | SIGNAL_BIT(SIGBUS) | \
			 SIGNAL_BIT(SIGFPE) | SIGNAL_BIT(SIGILL) | \
			 SIGNAL_BIT(SIGTRAP) | SIGNAL_BIT(SIGSYS))
/*
 * The signals that a thread raises by what it does: they must reach that
 * thread.
 */
#define SIGNAL_RAISED	(SIGNAL_FAULTS | SIGNAL_BIT(SIGPIPE))

#define SIGNAL_CANCEL	32	/* glibc's SIGCANCEL */
#define SIGNAL_SETXID	33

/*
 * A raw call: libc's getpid() may lead into the runtime, which the signal that
 * is being handled may have interrupted.
 */
static inline long signal_process(void)
{
	return raw_syscall(SYS_getpid, 0, 0, 0, 0, 0, 0);
}

/* Did an instruction of the thread raise the signal? */
static inline bool signal_is_fault(int signo, const siginfo_t *info)
{
	return info->si_code > 0 && SIGNAL_FAULTS & SIGNAL_BIT(signo);
}

#endif /* FLEXSC_RUNTIME_SIGSET_H */
