/* SPDX-License-Identifier: GPL-2.0-only */
/* The deferred list: entries of the ring that are left to syscall threads. */
#ifndef FLEXSC_KMOD_DEFERRED_H
#define FLEXSC_KMOD_DEFERRED_H

#include <linux/compiler.h>
#include <linux/types.h>

#include "base/registration.h"

void deferred_put(struct registration *reg, u32 index, bool front);
bool deferred_take_first(struct registration *reg, u32 *index);

/* Take the first entry off the deferred list. False: the list is empty. */
static __always_inline bool deferred_take(struct registration *reg, u32 *index)
{
	return READ_ONCE(reg->deferred_count) && deferred_take_first(reg, index);
}

#endif /* FLEXSC_KMOD_DEFERRED_H */
