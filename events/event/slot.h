/* SPDX-License-Identifier: MIT */
/*
 * Slots that the library gives to sources: uring's. (The kernel module gives
 * them itself.) Owner only, in a critical section.
 */
#ifndef FLEXSC_EVENTS_SLOT_H
#define FLEXSC_EVENTS_SLOT_H

#include <stdint.h>

struct flexsc_ecb;
struct flexsc_ecb_watch;

/* Give a slot: FREE -> IDLE. Returns its index, or -ENOSPC. */
int flexsc__slot_give(struct flexsc_ecb *ecb,
		      const struct flexsc_ecb_watch *watch);
/* IDLE -> FREE, or QUEUED -> REVOKED. */
void flexsc__slot_revoke(struct flexsc_ecb *ecb, uint32_t index);
/* REVOKED -> FREE: it is off its list. */
void flexsc__slot_dropped(struct flexsc_ecb *ecb, uint32_t index);

#endif /* FLEXSC_EVENTS_SLOT_H */
