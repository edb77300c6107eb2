/* SPDX-License-Identifier: MIT */
/* Signal sets in the kernel's format, and signals by raw system calls. Any thread. */
#ifndef FLEXSC_RUNTIME_SIGSET_H
#define FLEXSC_RUNTIME_SIGSET_H

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>

#include "lib/base/syscall.h"

/* The kernel's signal set: bit n is signal n + 1. */
typedef uint64_t sigmask_t;

#define SIGNAL_BIT(signo)	(1ULL << ((signo) - 1))
/* The signals that faulting instructions raise. */
#define SIGNAL_FAULTS	(SIGNAL_BIT(SIGSEGV) | SIGNAL_BIT(SIGBUS) | \
			 SIGNAL_BIT(SIGFPE) | SIGNAL_BIT(SIGILL) | \
			 SIGNAL_BIT(SIGTRAP) | SIGNAL_BIT(SIGSYS))
/* The signals that a thread raises by its own actions. They must reach that thread. */
#define SIGNAL_RAISED	(SIGNAL_FAULTS | SIGNAL_BIT(SIGPIPE))

#define SIGNAL_CANCEL	32	/* glibc's SIGCANCEL */
#define SIGNAL_SETXID	33

/*
 * The process id, by a raw call: libc's getpid() may enter the runtime, which the
 * signal may have interrupted.
 */
static inline long signal_process(void)
{
	return raw_syscall(SYS_getpid, 0, 0, 0, 0, 0, 0);
}

/* rt_sigprocmask(2); "set" and "old" may be NULL. */
static inline void signal_mask(int how, const sigmask_t *set, sigmask_t *old)
{
	raw_syscall(SYS_rt_sigprocmask, (uint64_t)how, PTR(set), PTR(old),
		    sizeof(*set), 0, 0);
}

/* Queue a signal for a thread of this process. False: failed. */
static inline bool signal_queue(int32_t tid, int signo, const siginfo_t *info)
{
	return !raw_syscall(SYS_rt_tgsigqueueinfo, (uint64_t)signal_process(),
			    (uint64_t)tid, (uint64_t)signo, PTR(info), 0, 0);
}

/* Queue a signal for the process. */
static inline void signal_queue_process(int signo, const siginfo_t *info)
{
	raw_syscall(SYS_rt_sigqueueinfo, (uint64_t)signal_process(),
		    (uint64_t)signo, PTR(info), 0, 0, 0);
}

/* Did an instruction of the thread raise the signal? */
static inline bool signal_is_fault(int signo, const siginfo_t *info)
{
	return info->si_code > 0 && SIGNAL_FAULTS & SIGNAL_BIT(signo);
}

#endif /* FLEXSC_RUNTIME_SIGSET_H */
