/* SPDX-License-Identifier: MIT */
/*
 * An event control block as its owner has it. Which file owns what:
 *
 *	event/slot.c	 slots that the library gives to sources
 *	event/source.c	 events on their way to the lists
 *	event/take.c	 events that are handed out
 *	event/payload.c	 what a handed-out event contains beyond its slot
 *	event/critical.c critical sections, and calls of the handler
 *	backend/	 who delivers, and who notifies
 *	ecb.c		 creating, forking, destroying
 *	watch.c		 the program's sources
 *	descriptor_sources.c  sources with descriptors of the library's own
 *	deliver.c	 the program takes events, and waits
 *
 * The owner's thread alone uses the fields below, except where it says "any".
 * That thread may be interrupted by its own handler anywhere outside of critical
 * sections, so whatever changes a field is in one.
 */
#ifndef FLEXSC_EVENTS_ECB_H
#define FLEXSC_EVENTS_ECB_H

#include <flexsc/ecb.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "control.h"

struct backend;

/* What is known of a slot besides the slot. */
struct source {
	uint32_t want;		/* bits of poll(2) */
	uint8_t type;		/* of the next event */
	uint8_t group;		/* of the next event */
	uint8_t later;		/* of an accepted connection: then its group */
	uint8_t flags;		/* SOURCE_* */
	uint32_t held;		/* state of an event that may not be delivered */
	uint32_t link;		/* the next free slot, or the next held event */
	int32_t error;		/* -errno of the kernel's, or 0 */
	uint8_t ends;		/* early ends of its request, one after another */
	uint64_t word;		/* any: what was posted and isn't taken */
	void *own;		/* the backend's */
};

#define SOURCE_USED	0x01
#define SOURCE_HELD	0x02	/* linked in ecb->held */
#define SOURCE_REVOKED	0x04	/* forgotten, and still on a list */
#define SOURCE_CHECKED	0x08	/* FLEXSC_WATCH_CHECKED */
#define SOURCE_ACCEPTS	0x10	/* a listener's */
#define SOURCE_OWN	0x20	/* its descriptor is the library's */
#define SOURCE_BEGINS	0x40	/* not made yet: an error is returned */

struct flexsc_ecb {
	struct flexsc_event_control *control;
	struct flexsc_event_slot *slots;
	struct source *sources;
	uint32_t events;	/* slots */
	uint32_t flags;		/* FLEXSC_ECB_* */
	size_t area;		/* of control and slots, in bytes */
	const struct backend *backend;
	void *own;		/* the backend's */

	void (*handler)(struct flexsc_ecb *ecb, void *arg);
	void *arg;
	void (*over)(void);	/* called when this ECB ends; or NULL */
	bool handling;		/* inside of the handler */
	bool masked;		/* the library blocks SIGURG, or may do so */
	uint32_t signals;	/* how often SIGURG came */
	bool stale;		/* in a forked child */
	bool owns;		/* sources have had SOURCE_OWN */

	uint32_t first[FLEXSC_ECB_GROUPS];	/* oldest slots taken off lists */
	uint32_t free;		/* first free slot + 1; 0: none */
	uint32_t fresh;		/* slots from here on were never given */
	uint32_t held;		/* oldest held event + 1; 0: none */
	uint32_t held_last;	/* the newest + 1, if there is one */
	uint8_t groups[FLEXSC_EVT_TYPES];	/* by default */

	int32_t tid;		/* any: the owner's */
	struct flexsc_ecb *next, *prev;	/* of all; under ecb.c's lock */
	char why[192];
};

/* The calling thread's; NULL: it has none. Any signal handler. */
extern _Thread_local struct flexsc_ecb *flexsc__ecb_self
	__attribute__((tls_model("initial-exec")));

#endif /* FLEXSC_EVENTS_ECB_H */
