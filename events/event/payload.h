/* SPDX-License-Identifier: MIT */
/* Event data that isn't in the slot. Owner only, in a critical section. */
#ifndef FLEXSC_EVENTS_PAYLOAD_H
#define FLEXSC_EVENTS_PAYLOAD_H

#include <stdbool.h>
#include <stdint.h>

struct flexsc_ecb;
struct flexsc_ecb_event;

/*
 * Complete an event that was taken from a slot in this state. False: there is no event
 * to hand out.
 */
bool flexsc__payload_complete(struct flexsc_ecb *ecb,
			      struct flexsc_ecb_event *event, uint32_t state);

#endif /* FLEXSC_EVENTS_PAYLOAD_H */
