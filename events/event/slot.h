/* SPDX-License-Identifier: MIT */
/*
 * Slots that the library assigns to sources, for the backend uring. (The kernel module
 * assigns slots itself.) Owner only, in a critical section.
 */
#ifndef FLEXSC_EVENTS_SLOT_H
#define FLEXSC_EVENTS_SLOT_H

#include <stdint.h>

struct flexsc_ecb;
struct flexsc_ecb_watch;

/* Assign a slot: FREE -> IDLE. Returns its index, or -ENOSPC. */
int flexsc__slot_give(struct flexsc_ecb *ecb,
		      const struct flexsc_ecb_watch *watch);
/* IDLE -> FREE, or QUEUED -> REVOKED. */
void flexsc__slot_revoke(struct flexsc_ecb *ecb, uint32_t index);
/* REVOKED -> FREE: the slot has left its list. */
void flexsc__slot_dropped(struct flexsc_ecb *ecb, uint32_t index);

#endif /* FLEXSC_EVENTS_SLOT_H */
