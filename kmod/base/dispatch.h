/* SPDX-License-Identifier: GPL-2.0-only */
/* The functions that execute entries' calls, by the calls' numbers. */
#ifndef FLEXSC_KMOD_DISPATCH_H
#define FLEXSC_KMOD_DISPATCH_H

#include <linux/compiler.h>
#include <linux/linkage.h>
#include <linux/types.h>

struct pt_regs;

typedef asmlinkage long (*call_fn)(const struct pt_regs *regs);
#define DISPATCH_SIZE	512	/* a power of two, so that a number can be masked */
extern call_fn dispatch_table[DISPATCH_SIZE];
extern call_fn dispatch_restart;	/* restart_syscall() */
int dispatch_init(void);
void *dispatch_address(const char *symbol);
long dispatch_refusal(unsigned int nr);

asmlinkage long dispatch_unknown(const struct pt_regs *regs);

static __always_inline call_fn dispatch_of(unsigned int nr)
{
	if (unlikely(nr >= DISPATCH_SIZE))
		return dispatch_unknown;
	/*
	 * OPTIMIZER_HIDE_VAR() keeps the compiler from dropping the mask, which
	 * seems redundant after the check. The mask also bounds the index under
	 * speculation, which the check doesn't.
	 */
	OPTIMIZER_HIDE_VAR(nr);
	return dispatch_table[nr & (DISPATCH_SIZE - 1)];
}

#endif /* FLEXSC_KMOD_DISPATCH_H */
