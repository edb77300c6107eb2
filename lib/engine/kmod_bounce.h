/* SPDX-License-Identifier: MIT */
/* Entries that bounce, and how the kernel is spared them. Owner only. */
#ifndef FLEXSC_KMOD_BOUNCE_H
#define FLEXSC_KMOD_BOUNCE_H

#include "kmod.h"

/* Registering found the thread watched: begin with the pool. */
void flexsc__kmod_spare_first(struct flexsc_loop *loop);

/* The kernel has executed n entries: did they bounce? */
void flexsc__kmod_note_bounces(struct flexsc_loop *loop, uint32_t n);

/* Has flexsc__kmod_note_bounces() something to look at? */
static inline bool bounced_lately(const struct kmod *kmod)
{
	return kmod->bouncing.row ||
	       __atomic_load_n(&kmod->shared->bounced, __ATOMIC_RELAXED) !=
		       kmod->bouncing.seen;
}

/* A batch begins while the kernel is spared: is it time for a trial? */
void flexsc__kmod_try_again(struct flexsc_loop *loop);

/* Have the call made without the kernel. False: there is no thread for it. */
bool flexsc__kmod_spare(struct flexsc_loop *loop, uint32_t index,
			enum call_class class);

#endif /* FLEXSC_KMOD_BOUNCE_H */
