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
 * The most timers, and the most staged calls, of a loop. Under flexsc run a loop has no
 * more of either than the process has threads. Reserved addresses count against
 * RLIMIT_AS, which the program may set at any time, so there they are few.
 */
#ifdef FLEXSC_IN_RUNTIME
#define ARENA_MAX	(1U << 17)
#else
#define ARENA_MAX	(1U << 24)
#endif

/*
 * Reserve room for max elements, or for fewer if the address space is limited, but for
 * a page of them at least. Commits nothing. 0 or -ENOMEM.
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
