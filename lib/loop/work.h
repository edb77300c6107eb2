/* SPDX-License-Identifier: MIT */
/*
 * Work: a function of the program, in an entry whose number isn't that of a system
 * call. flexsc_loop_call() refuses that number. So a program that takes the call number
 * and the arguments from untrusted data can't be made to jump to an address in the
 * data. The owner posts work. A syscall thread runs it, or the owner if the engine has
 * no syscall thread.
 */
#ifndef FLEXSC_LOOP_WORK_H
#define FLEXSC_LOOP_WORK_H

#include <linux/flexsc.h>
#include <stdbool.h>
#include <stdint.h>

#include "lib/calls/call_info.h"

/* Arguments of the entry. */
enum { WORK_ARG, WORK_RUN };

static inline bool work_is(const struct flexsc_entry *entry)
{
	return entry->nr == NR_WORK;
}

static inline int64_t work_run(const struct flexsc_entry *entry)
{
	int64_t (*run)(void *) =
		(int64_t (*)(void *))(uintptr_t)entry->args[WORK_RUN];

	return run((void *)(uintptr_t)entry->args[WORK_ARG]);
}

#endif /* FLEXSC_LOOP_WORK_H */
