/* SPDX-License-Identifier: MIT */
/* rt_sigaction(2) without libc's wrapper. Any thread. */
#ifndef FLEXSC_SIGACTION_H
#define FLEXSC_SIGACTION_H

#include <signal.h>
#include <stdint.h>

#include "syscall.h"

/* Flag: the field "restorer" is set. libc's headers lack this flag. */
#ifndef SA_RESTORER
#define SA_RESTORER	0x04000000
#endif

struct kernel_sigaction {
	uint64_t handler;	/* a function, SIG_DFL or SIG_IGN */
	uint64_t flags;
	uint64_t restorer;	/* the code to which handlers return */
	uint64_t mask;
};

/* Returns 0 or -errno. "new" and "old" may be NULL. */
static inline long kernel_sigaction(int signo,
				    const struct kernel_sigaction *new,
				    struct kernel_sigaction *old)
{
	return raw_syscall(SYS_rt_sigaction, (uint64_t)signo, PTR(new),
			   PTR(old), sizeof(uint64_t), 0, 0);
}

#endif /* FLEXSC_SIGACTION_H */
