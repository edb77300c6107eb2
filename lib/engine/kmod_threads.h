/* SPDX-License-Identifier: MIT */
/*
 * Syscall threads that the kernel module has the process make, and the pool
 * where the module has none left. Owner only, unless it says otherwise.
 */
#ifndef FLEXSC_KMOD_THREADS_H
#define FLEXSC_KMOD_THREADS_H

#include "lib/pool/pool.h"
#include "kmod.h"

/* How many syscall threads there may be: the rest is for a pool. */
uint32_t flexsc__kmod_threads_max(const struct flexsc_loop *loop);

/* Any thread: make one more; false if there can be none. */
bool flexsc__kmod_thread_create(struct kmod *kmod);

/*
 * An entry is CANCEL now: if a thread makes its call in user mode, interrupt
 * it.
 */
void flexsc__kmod_threads_cancel(struct kmod *kmod, uint32_t index);

/* Let all syscall threads end, and wait for that. */
void flexsc__kmod_threads_end(struct kmod *kmod);

/* In a forked child, which has no syscall threads. */
void flexsc__kmod_threads_forked(struct kmod *kmod);

/*
 * Have the pool make the entry's call, with kmod->to_pool's next submission.
 * False: no thread can be made.
 */
bool flexsc__kmod_to_pool(struct flexsc_loop *loop, uint32_t index);

static inline void kmod_submit_to_pool(struct kmod *kmod)
{
	if (kmod->to_pool.count)
		flexsc__pool_submit(loop_pool(kmod->loop), &kmod->to_pool);
}

/*
 * Have an entry made for which the kernel has no thread left that may block.
 * The pool has it when kmod->to_pool is submitted. Without a pool (no thread
 * can be made at all) the call is made here. True: the pool has it.
 */
bool flexsc__kmod_give_to_pool(struct flexsc_loop *loop, uint32_t index);

#endif /* FLEXSC_KMOD_THREADS_H */
