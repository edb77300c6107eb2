/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Entries that a thread carries through user mode, and entries whose call was
 * interrupted.
 */
#ifndef FLEXSC_KMOD_CARRY_H
#define FLEXSC_KMOD_CARRY_H

#include <linux/err.h>
#include <linux/errno.h>
#include <linux/flexsc.h>
#include <linux/types.h>

struct registration;
struct thread;

void carry_end_early(struct thread *thread, u32 index, long ret, bool kicked);
void carry_leave_first(struct thread *thread, u32 index, long ret);
void carry_traced(struct thread *thread, u32 index, unsigned int nr);
void carry_on(struct registration *reg, struct thread *thread,
	      const struct flexsc_serve *args);

/* May "ret" mean that the call was interrupted? */
static __always_inline bool carry_is_interruption(long ret)
{
	return unlikely((unsigned long)ret >= (unsigned long)-MAX_ERRNO) &&
	       (ret == -EINTR || ret <= -ERESTARTSYS);
}

#endif /* FLEXSC_KMOD_CARRY_H */
