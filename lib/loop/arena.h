/* SPDX-License-Identifier: MIT */
/*
 * An array that grows in place. Address space for its largest size is reserved once,
 * and memory is committed as the array grows. Elements never move, so indices and
 * pointers stay valid. One thread owns an arena. Other threads may read the elements
 * that the owner passed to them. A forked child doesn't inherit arenas.
 */
#ifndef FLEXSC_ARENA_H
#define FLEXSC_ARENA_H

#include <stddef.h>
#include <stdint.h>

struct arena {
	void *base;
	size_t size;		/* bytes per element */
	uint32_t count;		/* committed elements, initially zero */
	uint32_t max;		/* reserved elements */
};

/*
 * The maximum number of timers, and of staged calls, per loop. Under flexsc run the
 * number is low, because reserved addresses count against RLIMIT_AS, which the program
 * may lower at any time. The number suffices there, because a loop then has at most one
 * timer and one staged call per thread of the process.
 */
#ifdef FLEXSC_IN_RUNTIME
#define ARENA_MAX	(1U << 17)
#else
#define ARENA_MAX	(1U << 24)
#endif

/*
 * Reserve address space for max elements. If address space is limited, reserve less,
 * but at least a page. Commits no memory. 0 or -ENOMEM.
 */
int flexsc__arena_init(struct arena *arena, size_t size, uint32_t max);

/* Double the committed memory. -ENOMEM, or -ENOSPC at the limit. */
int flexsc__arena_grow(struct arena *arena);

void flexsc__arena_fini(struct arena *arena);

static inline size_t arena_bytes(const struct arena *arena)
{
	return (size_t)arena->count * arena->size;
}

#endif /* FLEXSC_ARENA_H */
