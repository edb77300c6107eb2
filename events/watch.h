/* SPDX-License-Identifier: MIT */
#ifndef FLEXSC_EVENTS_WATCH_H
#define FLEXSC_EVENTS_WATCH_H

#include <linux/flexsc_ecb.h>
#include <stdint.h>

struct flexsc_ecb;

/*
 * Watch a descriptor. "flags" are added to the source's flags. Returns the slot's
 * index, or -errno. Owner only.
 */
int flexsc__watch(struct flexsc_ecb *ecb, int fd, enum flexsc_event_type type,
		  uint32_t want, int group, uint8_t flags, void *data);

#endif /* FLEXSC_EVENTS_WATCH_H */
