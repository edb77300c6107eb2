/* SPDX-License-Identifier: MIT */
/*
 * Entries that the kernel module gives back: complete, or INTERRUPTED, which
 * are submitted once more. Owner only.
 */
#ifndef FLEXSC_KMOD_REAP_H
#define FLEXSC_KMOD_REAP_H

#include "lib/base/compiler.h"
#include "kmod.h"

/* The entry may go to the kernel again, with the rest. */
COLD void flexsc__kmod_in_parts(struct flexsc_loop *loop, uint32_t index);

/* The kernel has completed the call with ret; returns the call's result. */
int64_t flexsc__kmod_finish(struct flexsc_loop *loop, uint32_t index,
			    int64_t ret);

/* Collect the entries that the kernel has completed; false: there are none. */
bool flexsc__kmod_collect(struct flexsc_loop *loop);

/* Likewise those of syscall threads that a filter keeps from the kernel. */
COLD void flexsc__kmod_collect_strays(struct flexsc_loop *loop);

/*
 * The loop is about to end, and a filter forbids the module's calls. Once the
 * syscall threads have ended nothing is executed any more, so entries that
 * aren't complete are completed here.
 */
COLD void flexsc__kmod_abandon(struct flexsc_loop *loop);

#endif /* FLEXSC_KMOD_REAP_H */
