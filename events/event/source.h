/* SPDX-License-Identifier: MIT */
/* Events on their way to the lists, where the library brings them there. */
#ifndef FLEXSC_EVENTS_SOURCE_H
#define FLEXSC_EVENTS_SOURCE_H

#include <stdint.h>

struct flexsc_ecb;

/*
 * Something happened to the slot's source: deliver it, or hold the event if its
 * group may not be delivered. Owner only, in a critical section.
 */
void flexsc__source_raise(struct flexsc_ecb *ecb, uint32_t index,
			  uint32_t bits);
/* There is more of what was just taken: put the slot on its list again. */
void flexsc__source_again(struct flexsc_ecb *ecb, uint32_t index);
/* Deliver events that are held and may be delivered now. Likewise. */
void flexsc__source_flush(struct flexsc_ecb *ecb);

/* Any thread, any signal handler. */
void flexsc__source_post(struct flexsc_ecb *ecb, uint32_t index,
			 uint64_t word);

#endif /* FLEXSC_EVENTS_SOURCE_H */
