/* SPDX-License-Identifier: MIT */
/*
 * Guards of an entry's descriptors (files/guard.h): one for each descriptor that the
 * call names. A call that closes a descriptor has none. Run by the party that has the
 * entry: its owner, its pool with the pool's lock, or the thread that executes it. The
 * owner may call flexsc__call_names() at any time.
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

/* The call may enter the kernel again. Without effect if it has guards. */
void flexsc__call_guard(struct flexsc_loop *loop, uint32_t index);
/*
 * The program is about to close fd. If the call names it, and has no guard of it yet, it
 * joins this one. True: the call names fd, and closes no descriptor.
 */
bool flexsc__call_join(struct flexsc_loop *loop, uint32_t index, uint32_t fd,
		       struct guard *guard);
/*
 * The engine will go on with the rest: copy the descriptors, but of files on a disk.
 * The arguments name the copies. False: not all descriptors were copied.
 */
bool flexsc__call_keep(struct flexsc_loop *loop, uint32_t index);
/* The call is about to enter the kernel: its arguments name its files. */
void flexsc__call_renew(struct flexsc_loop *loop, uint32_t index);
/* The call is complete. */
void flexsc__call_unguard(struct flexsc_loop *loop, uint32_t index);

/* Is the descriptor one that the program named in the call, and hasn't closed? */
bool flexsc__call_names(const struct flexsc_loop *loop, uint32_t index, int fd);

#endif /* FLEXSC_GUARDED_H */
