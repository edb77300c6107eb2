/* SPDX-License-Identifier: MIT */
#include "arena.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include "lib/base/syscall.h"

#define PAGE	4096U
#define HUGE	(2U << 20)
#define LIMITED	128U		/* with RLIMIT_AS, an arena reserves at most
				 * 1/LIMITED of the unused address space */
#define LEAST	(256U << 10)	/* the minimum to reserve, even if that share is
				 * smaller */

static size_t round_up(size_t bytes)
{
	return (bytes + PAGE - 1) / PAGE * PAGE;
}

static size_t arena_reserved(const struct arena *arena)
{
	return round_up((size_t)arena->max * arena->size);
}

/* Returns the bytes of address space in use; 0 if unknown. */
static size_t space_in_use(void)
{
	char text[64];
	long fd = raw_syscall(SYS_openat, (uint64_t)AT_FDCWD,
			      PTR("/proc/self/statm"), O_RDONLY | O_CLOEXEC, 0,
			      0, 0);
	long n = -1;

	if (fd >= 0) {
		n = raw_syscall(SYS_read, (uint64_t)fd, PTR(text),
				sizeof(text) - 1, 0, 0, 0);
		raw_syscall(SYS_close, (uint64_t)fd, 0, 0, 0, 0, 0);
	}
	text[n > 0 ? n : 0] = '\0';
	return strtoul(text, NULL, 10) * (size_t)sysconf(_SC_PAGESIZE);
}

/*
 * Returns how many bytes one arena may reserve. If RLIMIT_AS limits the address space,
 * each arena gets a small part of what is left, because the program needs most of it,
 * and there may be many arenas.
 */
static size_t arena_share(void)
{
	struct rlimit limit;
	size_t used;

	if (getrlimit(RLIMIT_AS, &limit) || limit.rlim_cur == RLIM_INFINITY)
		return SIZE_MAX;
	used = space_in_use();
	return limit.rlim_cur > used ? (limit.rlim_cur - used) / LIMITED : 0;
}

int flexsc__arena_init(struct arena *arena, size_t size, uint32_t max)
{
	const size_t share = arena_share();

	*arena = (struct arena){ .size = size, .max = max };
	while (arena_reserved(arena) > share && arena_reserved(arena) > LEAST)
		arena->max /= 2;
	for (;;) {
		arena->base = mmap(NULL, arena_reserved(arena), PROT_NONE,
				   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE,
				   -1, 0);
		if (arena->base != MAP_FAILED)
			break;
		/* Too little address space is left: try half. */
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
	 * mprotect() commits the memory now, so it returns an error if memory is short.
	 * Otherwise a later page fault would raise a signal.
	 */
	if (new > old && mprotect((char *)arena->base + old, new - old,
				  PROT_READ | PROT_WRITE))
		return -ENOMEM;
	/*
	 * Accesses to a large arena are random: without huge pages, most would miss
	 * in the TLB.
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
