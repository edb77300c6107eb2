/* SPDX-License-Identifier: MIT */
/* What an event contains beyond its slot. Owner only, in a critical section. */
#ifndef FLEXSC_EVENTS_PAYLOAD_H
#define FLEXSC_EVENTS_PAYLOAD_H

#include <stdbool.h>
#include <stdint.h>

struct flexsc_ecb;
struct flexsc_ecb_event;

/*
 * Complete an event that was taken, whose slot had that state. False: there is
 * nothing to hand out.
 */
bool flexsc__payload_complete(struct flexsc_ecb *ecb,
			      struct flexsc_ecb_event *event, uint32_t state);

#endif /* FLEXSC_EVENTS_PAYLOAD_H */
