/* SPDX-License-Identifier: MIT */
/*
 * An array that grows in place: address space for the most it may ever have is
 * reserved once, memory is committed as it grows, and elements never move, so
 * indices and pointers both stay good. Owned by one thread; others may read
 * elements they were told of. Not inherited by a forked child.
 */
#ifndef FLEXSC_ARENA_H
#define FLEXSC_ARENA_H

#include <stddef.h>
#include <stdint.h>

struct arena {
	void *base;
	size_t size;		/* of an element, in bytes */
	uint32_t count;		/* elements committed, all zero at first */
	uint32_t max;		/* elements reserved */
};

/*
 * The most timers, and the most held calls, of a loop. A carrier of flexsc run
 * has no more of them than the process has threads, and the program may set a
 * limit of its address space at any time, which what is reserved counts against.
 */
#ifdef FLEXSC_IN_RUNTIME
#define ARENA_MAX	(1U << 17)
#else
#define ARENA_MAX	(1U << 24)
#endif

/*
 * Reserve max elements, or fewer if the address space is limited, but at least
 * one page of them; commits none.
 */
int flexsc__arena_init(struct arena *arena, size_t size, uint32_t max);

/* Commit twice as much. -ENOMEM, or -ENOSPC at the limit. */
int flexsc__arena_grow(struct arena *arena);

void flexsc__arena_fini(struct arena *arena);

static inline size_t arena_bytes(const struct arena *arena)
{
	return (size_t)arena->count * arena->size;
}

#endif /* FLEXSC_ARENA_H */
