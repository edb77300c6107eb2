/* SPDX-License-Identifier: MIT */
#include "park.h"

#include <sys/auxv.h>
#include <sys/mman.h>

#include "lib/base/futex.h"

#define SLAB		64U	/* stacks mapped at once */
#define OWN_FRAMES	8192U	/* bytes that the runtime needs */

#ifndef AT_MINSIGSTKSZ
#define AT_MINSIGSTKSZ	51
#endif

size_t flexsc__park_bytes;

/* Free stacks, linked by link_of(). */
static void *free_stacks;
static struct lock stacks_lock;

void flexsc__park_init(void)
{
	size_t frame = getauxval(AT_MINSIGSTKSZ);

	if (!frame)
		frame = 4096;
	/*
	 * Frames of two signals: one to come home for, and SIGSETXID on top of
	 * it.
	 */
	flexsc__park_bytes = (OWN_FRAMES + 2 * frame + 4095) & ~4095UL;
}

/*
 * The top page of a stack is the one that is in use, so the link is there, too.
 */
static void **link_of(void *stack)
{
	return (void **)((char *)stack + PARK_BYTES) - 1;
}

static void put(void *stack)
{
	*link_of(stack) = free_stacks;
	free_stacks = stack;
}

static void *map_slab(void)
{
	char *slab = mmap(NULL, SLAB * PARK_BYTES, PROT_READ | PROT_WRITE,
			  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (slab == MAP_FAILED)
		return NULL;
	for (unsigned int i = 1; i < SLAB; i++)
		put(slab + i * PARK_BYTES);
	return slab;
}

void *flexsc__park_get(void)
{
	void *stack;

	lock(&stacks_lock);
	stack = free_stacks;
	if (stack)
		free_stacks = *link_of(stack);
	else
		stack = map_slab();
	unlock(&stacks_lock);
	return stack;
}

void flexsc__park_put(void *stack)
{
	if (!stack)
		return;
	lock(&stacks_lock);
	put(stack);
	unlock(&stacks_lock);
}

void flexsc__park_forked(void)
{
	/* Stacks in use are lost, as the threads' own stacks are. */
	stacks_lock = (struct lock){ 0 };
}
