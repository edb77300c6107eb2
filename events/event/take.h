/* SPDX-License-Identifier: MIT */
/* Handing events out. Owner only, in a critical section. */
#ifndef FLEXSC_EVENTS_TAKE_H
#define FLEXSC_EVENTS_TAKE_H

#include <stdbool.h>
#include <stdint.h>

struct flexsc_ecb;
struct flexsc_ecb_event;

/* Take the first event of the groups; false: none. */
bool flexsc__take(struct flexsc_ecb *ecb, uint32_t groups,
		  struct flexsc_ecb_event *event);

#endif /* FLEXSC_EVENTS_TAKE_H */
