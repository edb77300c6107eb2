/* SPDX-License-Identifier: MIT */

#include <errno.h>
#include <sys/mman.h>

#include "kmod.h"

/* The number of pages for at most this many entries: a power of two, at least 1. */
static uint32_t pages_for(uint32_t entries)
{
	uint32_t pages = 1;

	while (pages < FLEXSC_PAGES_MAX &&
	       2 * pages * FLEXSC_PAGE_ENTRIES <= entries)
		pages *= 2;
	return pages;
}

int flexsc__kmod_area_map(struct kmod *kmod)
{
	struct arena *entries = &kmod->loop->entries;
	const uint32_t count = entries->count;
	struct flexsc_register args = {
		.size = sizeof(args),
		.abi = FLEXSC_ABI_VERSION,
		.flags = FLEXSC_REGISTER_FILTERED_LATER,
		.pages = pages_for(entries->max),
	};
	char *area;
	int err = (int)control(kmod, FLEXSC_IOC_REGISTER, PTR(&args));

	if (err)
		return err;
	flexsc__arena_fini(entries);
	area = mmap(NULL, args.area, PROT_READ | PROT_WRITE, MAP_SHARED,
		    kmod->fd, 0);
	if (area == MAP_FAILED)
		return -errno;
	kmod->area = args.area;
	kmod->watched = args.features & FLEXSC_FEATURE_TRACED;
	kmod->shared = (void *)area;
	kmod->ring = (void *)(area + args.ring_offset);
	kmod->mask = args.ring_entries - 1;
	*entries = (struct arena){
		.base = area + args.entries_offset,
		.size = sizeof(struct flexsc_entry),
		.count = count,
		.max = args.pages * FLEXSC_PAGE_ENTRIES,
	};
	return 0;
}

int flexsc__kmod_area_unmap(struct kmod *kmod, const struct arena *was)
{
	struct arena *entries = &kmod->loop->entries;
	int err = 0;

	if (kmod->shared)
		munmap(kmod->shared, kmod->area);
	if (entries->base == was->base)
		return 0;
	err = flexsc__arena_init(entries, was->size, was->max);
	while (!err && entries->count < was->count)
		err = flexsc__arena_grow(entries);
	return err;
}
