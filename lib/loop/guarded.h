/* SPDX-License-Identifier: MIT */
/*
 * Guards for an entry's descriptors (files/guard.h), one per descriptor that the call
 * names. A call that closes a descriptor has no guards. The party that holds the entry
 * runs these functions: its owner, its pool with the pool's lock, or the executing
 * thread. The owner may call flexsc__call_names() at any time.
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

/* The call may enter the kernel again: begin its guards, unless it has them. */
void flexsc__call_guard(struct flexsc_loop *loop, uint32_t index);
/*
 * The program is about to close fd. If the call names fd without a guard, it joins this
 * guard. True: the call names fd and doesn't close a descriptor.
 */
bool flexsc__call_join(struct flexsc_loop *loop, uint32_t index, uint32_t fd,
		       struct guard *guard);
/*
 * The engine will continue with the call's rest: copy the descriptors, except of files
 * on a disk, and put the copies into the arguments. False: not all descriptors were
 * copied.
 */
bool flexsc__call_keep(struct flexsc_loop *loop, uint32_t index);
/* The call is about to enter the kernel: make its arguments refer to its files. */
void flexsc__call_renew(struct flexsc_loop *loop, uint32_t index);
/* The call is complete: end its guards. */
void flexsc__call_unguard(struct flexsc_loop *loop, uint32_t index);

/* Does the call name this descriptor, and has the program not closed it since? */
bool flexsc__call_names(const struct flexsc_loop *loop, uint32_t index, int fd);

#endif /* FLEXSC_GUARDED_H */
