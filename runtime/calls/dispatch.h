/* SPDX-License-Identifier: MIT */
/*
 * The way of a user thread's call: plainly, posted, or on its host. It follows
 * from the call's class (lib/calls/syscalls.tbl), from the file that the call
 * is about, and from what the call would do to the kernel thread that makes it.
 */
#ifndef FLEXSC_RUNTIME_DISPATCH_H
#define FLEXSC_RUNTIME_DISPATCH_H

#include <linux/flexsc.h>

#include "runtime/sched/uthread.h"

/*
 * Make call nr, which the entry has too as far as it has room. User threads
 * only, inside the runtime. Returns the kernel's result.
 */
long flexsc__dispatch(struct uthread *u, long nr,
		   const struct flexsc_entry *entry);

#endif /* FLEXSC_RUNTIME_DISPATCH_H */
