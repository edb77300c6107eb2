/* SPDX-License-Identifier: MIT */
/* What the kernel offers for page faults and changed pages. Any thread. */
#ifndef FLEXSC_EVENTS_USERFAULT_H
#define FLEXSC_EVENTS_USERFAULT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * Create a userfaultfd for FLEXSC_MEMORY_*. *unpopulated: it can protect pages that
 * don't exist. -EOPNOTSUPP: it doesn't work here, and "why", unless NULL, receives the
 * reason.
 */
int flexsc__userfault_open(uint32_t what, bool *unpopulated, char *why, size_t size);

/* A scan of a page table (PAGEMAP_SCAN). */
struct pagemap {
	int fd;			/* /proc/self/pagemap */
	uint64_t begin, end;
	bool present;		/* omit pages that don't exist */
};

/* The kernel's struct page_region. */
struct pagemap_region {
	uint64_t begin, end, categories;
};

/*
 * Take up to n regions of written pages, and protect these pages again, in one step per
 * page. Returns their number, or -errno.
 */
int flexsc__pagemap_written(const struct pagemap *pagemap,
			    struct pagemap_region *regions, unsigned int n);
/* Open /proc/self/pagemap, if it has PAGEMAP_SCAN. Errors: as above. */
int flexsc__pagemap_open(char *why, size_t size);

#endif /* FLEXSC_EVENTS_USERFAULT_H */
