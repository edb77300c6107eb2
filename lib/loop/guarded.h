/* SPDX-License-Identifier: MIT */
/*
 * Guards for an entry's descriptors (files/guard.h), one per descriptor that the call
 * names. A call that closes a descriptor has no guards. The side that has the entry at
 * the time runs these functions: the owner, the pool with its lock held, or the thread
 * that executes the call. The owner may call flexsc__call_names() at any time.
 */
#ifndef FLEXSC_GUARDED_H
#define FLEXSC_GUARDED_H

#include <stdbool.h>
#include <stdint.h>

#include "call.h"

struct flexsc_loop;
struct guard;

static inline bool call_is_guarded(const struct call *call)
{
	return __atomic_load_n(&call->guarded, __ATOMIC_RELAXED);
}

/*
 * Begin guards for the call's descriptors, unless it has them already. Needed before
 * the call may enter the kernel a second time.
 */
void flexsc__call_guard(struct flexsc_loop *loop, uint32_t index);
/*
 * Called when the program is about to close fd. If the call names fd, and has no guard
 * for it, "guard" becomes the call's guard. True: the call names fd, and isn't one that
 * closes descriptors.
 */
bool flexsc__call_join(struct flexsc_loop *loop, uint32_t index, uint32_t fd,
		       struct guard *guard);
/*
 * Called before the engine continues with the call's remainder: duplicate the
 * descriptors, except those of files on a disk, and put the duplicates into the
 * arguments. False: not all descriptors were duplicated.
 */
bool flexsc__call_keep(struct flexsc_loop *loop, uint32_t index);
/*
 * Called before the call enters the kernel: set its arguments to the descriptors that
 * refer to its files now. True: an argument has changed.
 */
bool flexsc__call_renew(struct flexsc_loop *loop, uint32_t index);
/* Called when the call is complete: end its guards. */
void flexsc__call_unguard(struct flexsc_loop *loop, uint32_t index);

/*
 * Does the call name this descriptor? False if the program has closed the descriptor
 * after the call began.
 */
bool flexsc__call_names(const struct flexsc_loop *loop, uint32_t index, int fd);

#endif /* FLEXSC_GUARDED_H */
