/* SPDX-License-Identifier: MIT */
/*
 * Memory whose page faults a userfaultfd reports: one struct per source, in
 * ecb->memories. A thread that faults sleeps until its fault is completed, so a source
 * must never end without waking the threads. Owner only, in a critical section.
 *
 * flexsc__memory_end() unregisters the memory explicitly instead of only closing the
 * descriptor, because others may keep the open file: io_uring until its ring has ended,
 * and a child that was made without fork handlers.
 */
#ifndef FLEXSC_EVENTS_MEMORY_H
#define FLEXSC_EVENTS_MEMORY_H

#include <flexsc/ecb.h>
#include <linux/userfaultfd.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct memory {
	struct memory *next, *prev;
	uint64_t begin, size;
	uint64_t page;		/* the size of its pages, which may be huge */
	int fd;			/* the userfaultfd */
	uint32_t what;		/* FLEXSC_MEMORY_* */
	uint32_t read, taken;	/* faults read from fd, and handed out */
	uint32_t news;		/* not 0: faults may have happened since the read */
	struct uffd_msg faults[126];	/* fills a page: one read for many faults */
};

_Static_assert(sizeof(struct memory) <= 4096, "a page");

/*
 * Returns NULL if memory is short. Uses no malloc(), because a handler may call it.
 */
struct memory *flexsc__memory_add(struct flexsc_ecb *ecb, int fd);
/* Free the struct, whose descriptor is closed already. */
void flexsc__memory_drop(struct flexsc_ecb *ecb, struct memory *memory);
/* Complete an event. False: there is no fault to hand out. */
bool flexsc__memory_take(struct flexsc_ecb *ecb, struct flexsc_ecb_event *event);
/* Make the memory ordinary again, and wake its threads. */
void flexsc__memory_end(const struct memory *memory);
/* Wake the threads that wait for a page of the range. */
void flexsc__memory_wake(const struct memory *memory, uint64_t begin, uint64_t size);

#endif /* FLEXSC_EVENTS_MEMORY_H */
