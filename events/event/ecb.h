/* SPDX-License-Identifier: MIT */
/*
 * The owner's view of an event control block. The files and what they own:
 *
 *	event/slot.c	 slots that the library gives to sources
 *	event/source.c	 putting events on the lists
 *	event/take.c	 handing events out
 *	event/payload.c	 what a handed-out event contains beyond its slot
 *	event/memory.c	 page faults that the kernel reports
 *	event/stack.c	 the handler's stack
 *	event/critical.c critical sections, and calling the handler
 *	backend/	 delivery and notification
 *	ecb.c		 creation, fork, destruction
 *	watch.c		 the program's sources
 *	descriptor_sources.c  sources with descriptors of the library's own
 *	userfault.c, memory.c  page faults and changed pages of memory
 *	deliver.c	 the program's interface: taking events, waiting
 *
 * Only the owner's thread uses the fields below, except those marked "any thread". The
 * handler may interrupt that thread anywhere outside critical sections, so code changes
 * a field only in a critical section.
 */
#ifndef FLEXSC_EVENTS_ECB_H
#define FLEXSC_EVENTS_ECB_H

#include <flexsc/ecb.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "control.h"

struct backend;
struct memory;

/* The library's data about a slot, besides the slot itself. */
struct source {
	uint32_t want;		/* bits of poll(2) to report */
	uint8_t type;		/* type of the next event */
	uint8_t group;		/* group of the next event */
	/* for an accepted connection: its group after the first event */
	uint8_t later;
	uint8_t flags;		/* SOURCE_* */
	uint32_t held;		/* state bits of the held event */
	uint32_t link;		/* the next free slot, or the next held event */
	int32_t error;		/* -errno from the kernel, or 0 */
	uint8_t ends;		/* consecutive polls that ended by themselves (no
				 * IORING_CQE_F_MORE) */
	uint64_t word;		/* any thread: words posted and not taken yet */
	void *own;		/* used by the backend; of memory: event/memory.h */
};

#define SOURCE_USED	0x01
#define SOURCE_HELD	0x02	/* linked in ecb->held */
#define SOURCE_REVOKED	0x04	/* forgotten, but still on a list */
#define SOURCE_CHECKED	0x08	/* FLEXSC_WATCH_CHECKED: poll(2) before handing an
				 * event out */
#define SOURCE_ACCEPTS	0x10	/* a listening socket, with FLEXSC_WATCH_ACCEPT */
#define SOURCE_OWN	0x20	/* the descriptor belongs to the library */
#define SOURCE_MEMORY	0x80	/* "own" is a struct memory */
#define SOURCE_BEGINS	0x40	/* being created: errors are returned to the caller */

struct flexsc_ecb {
	struct flexsc_event_control *control;
	struct flexsc_event_slot *slots;
	struct source *sources;
	uint32_t events;	/* number of slots */
	uint32_t flags;		/* FLEXSC_ECB_* */
	size_t area;		/* size of control and slots, in bytes */
	const struct backend *backend;
	void *own;		/* used by the backend */

	void (*handler)(struct flexsc_ecb *ecb, void *arg);
	void *arg;
	void *stack;		/* the handler's; see event/stack.h */
	size_t stack_size;	/* 0: none */
	stack_t stack_before;	/* the owner's signal stack, restored at the end */
	void (*over)(void);	/* called when this ECB ends; may be NULL */
	bool handling;		/* the handler is running */
	bool masked;		/* the library blocks SIGURG, or may have done so */
	uint32_t signals;	/* number of times that SIGURG arrived */
	bool stale;		/* a forked child's copy */
	bool owns;		/* SOURCE_OWN was ever set */

	uint32_t first[FLEXSC_ECB_GROUPS];	/* per group: the oldest slot of the
						 * list that take.c reversed */
	uint32_t free;		/* first free slot + 1; 0: none */
	uint32_t fresh;		/* slots from this index on were never used */
	uint32_t held;		/* oldest held event + 1; 0: none */
	uint32_t held_last;	/* newest held event + 1, if any is held */
	uint8_t groups[FLEXSC_EVT_TYPES];	/* default groups of the types */
	struct memory *memories;	/* list of the sources of this kind */
	int pagemap;		/* /proc/self/pagemap; 0: not open */

	int32_t tid;		/* any thread: the owner's thread id */
	struct flexsc_ecb *next, *prev;	/* list of all ECBs; guarded by ecb.c's
					 * lock */
	char why[192];
};

/*
 * The calling thread's ECB, or NULL. Signal handlers read it, so a first access must
 * not allocate memory. With glibc that requires static thread-local storage. musl
 * allocates thread-local storage in dlopen(), and can't load a library that needs it to
 * be static.
 */
extern _Thread_local struct flexsc_ecb *flexsc__ecb_self
#ifdef __GLIBC__
	__attribute__((tls_model("initial-exec")))
#endif
	;

#endif /* FLEXSC_EVENTS_ECB_H */
