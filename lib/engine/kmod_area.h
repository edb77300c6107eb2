/* SPDX-License-Identifier: MIT */
/*
 * The area: the memory that the kernel module shares with the process, which
 * has the loop's entries. Owner only, when the engine is opened.
 */
#ifndef FLEXSC_KMOD_AREA_H
#define FLEXSC_KMOD_AREA_H

#include "kmod.h"

/*
 * Register with the module, and map the area. The loop's entries are there from
 * now on; none is in use yet. 0 or a negative error code.
 */
int flexsc__kmod_area_map(struct kmod *kmod);

/* Another engine is tried: give the loop entries of its own, as it had. */
int flexsc__kmod_area_unmap(struct kmod *kmod, const struct arena *was);

#endif /* FLEXSC_KMOD_AREA_H */
