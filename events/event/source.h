/* SPDX-License-Identifier: MIT */
/* Putting events on the lists, if the library does so and not the kernel. */
#ifndef FLEXSC_EVENTS_SOURCE_H
#define FLEXSC_EVENTS_SOURCE_H

#include <stdint.h>

struct flexsc_ecb;

/*
 * Called when the slot's source has an event: deliver it, or hold it if its group may
 * not be delivered. Owner only, in a critical section.
 */
void flexsc__source_raise(struct flexsc_ecb *ecb, uint32_t index,
			  uint32_t bits);
/*
 * Put the slot on its list again, because its source has more data than was taken. Sets
 * no bits: those that the slot gets until it is taken are of new events.
 */
void flexsc__source_again(struct flexsc_ecb *ecb, uint32_t index);
/* Deliver held events that may be delivered now. Owner only, in a critical section. */
void flexsc__source_flush(struct flexsc_ecb *ecb);

/* Post a word to a slot, from any thread or signal handler. */
void flexsc__source_post(struct flexsc_ecb *ecb, uint32_t index,
			 uint64_t word);

#endif /* FLEXSC_EVENTS_SOURCE_H */
