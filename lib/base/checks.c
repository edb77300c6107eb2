/* SPDX-License-Identifier: MIT */
#include "checks.h"

#ifdef FLEXSC_CHECKS

#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "syscall.h"

void flexsc__rule_broken(const char *rule, const char *file, int line)
{
	char said[256];

	snprintf(said, sizeof(said), "flexsc: %s:%d: broken rule: %s\n", file,
		 line, rule);
	raw_syscall(SYS_write, 2, PTR(said), strlen(said), 0, 0, 0);
	raw_syscall(SYS_kill,
		    (uint64_t)raw_syscall(SYS_getpid, 0, 0, 0, 0, 0, 0),
		    SIGABRT, 0, 0, 0, 0);
	/* A trap instead of abort(): the program may block or handle SIGABRT. */
	__builtin_trap();
}

#endif
