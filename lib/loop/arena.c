/* SPDX-License-Identifier: MIT */
#include "arena.h"

#include <errno.h>
#include <sys/mman.h>

#define PAGE	4096U
#define HUGE	(2U << 20)

static size_t round_up(size_t bytes)
{
	return (bytes + PAGE - 1) / PAGE * PAGE;
}

static size_t arena_reserved(const struct arena *arena)
{
	return round_up((size_t)arena->max * arena->size);
}

int flexsc__arena_init(struct arena *arena, size_t size, uint32_t max)
{
	*arena = (struct arena){ .size = size, .max = max };
	for (;;) {
		arena->base = mmap(NULL, arena_reserved(arena), PROT_NONE,
				   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE,
				   -1, 0);
		if (arena->base != MAP_FAILED)
			break;
		/* RLIMIT_AS may allow less: try half of it. */
		arena->base = NULL;
		if (arena->max <= PAGE / size)
			return -ENOMEM;
		arena->max /= 2;
	}
	madvise(arena->base, arena_reserved(arena), MADV_DONTFORK);
	return 0;
}

int flexsc__arena_grow(struct arena *arena)
{
	uint64_t count = arena->count ? 2ULL * arena->count :
					(PAGE + arena->size - 1) / arena->size;
	size_t old = round_up(arena_bytes(arena));
	size_t new;

	if (arena->count == arena->max)
		return -ENOSPC;
	if (count > arena->max)
		count = arena->max;
	new = round_up(count * arena->size);
	/*
	 * mprotect() rather than a page fault decides whether there is memory,
	 * so that its lack is an error code and no signal.
	 */
	if (new > old && mprotect((char *)arena->base + old, new - old,
				  PROT_READ | PROT_WRITE))
		return -ENOMEM;
	/*
	 * A large arena is used at random: without huge pages most accesses
	 * miss.
	 */
	if (new >= HUGE)
		madvise(arena->base, new / HUGE * HUGE, MADV_HUGEPAGE);
	arena->count = (uint32_t)count;
	return 0;
}

void flexsc__arena_fini(struct arena *arena)
{
	if (arena->base)
		munmap(arena->base, arena_reserved(arena));
	*arena = (struct arena){ 0 };
}
