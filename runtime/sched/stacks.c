/* SPDX-License-Identifier: MIT */
#include "stacks.h"

#include <stdint.h>
#include <sys/auxv.h>
#include <sys/mman.h>

#define PAGE		4096UL
#define OWN_FRAMES	8192U	/* bytes of a small stack for the runtime's frames */

#ifndef AT_MINSIGSTKSZ
#define AT_MINSIGSTKSZ	51
#endif

/* The first page of a slab. The stacks follow, each above its guard page. */
struct slab {
	struct slab *next;
	unsigned int used;
};

struct stacks flexsc__small = { .per_slab = 64 };
struct stacks flexsc__owned = {
	.bytes = (256UL << 10) - PAGE,
	.per_slab = 16,
	.guarded = true,
};

void flexsc__stacks_init(void)
{
	size_t frame = getauxval(AT_MINSIGSTKSZ);

	if (!frame)
		frame = 4096;
	/*
	 * Reserve room for two signals' frames: that of the signal that calls u to its
	 * host, and on top that of SIGSETXID.
	 */
	flexsc__small.bytes = (OWN_FRAMES + 2 * frame + PAGE - 1) & -PAGE;
}

static size_t guard_of(const struct stacks *stacks)
{
	return stacks->guarded ? PAGE : 0;
}

/* Distance from one stack to the next, in bytes. */
static size_t step_of(const struct stacks *stacks)
{
	return stacks->bytes + guard_of(stacks);
}

static char *stack_in(const struct stacks *stacks, struct slab *slab,
		      unsigned int i)
{
	return (char *)slab + PAGE + i * step_of(stacks) + guard_of(stacks);
}

static void **link_of(const struct stacks *stacks, void *stack)
{
	return (void **)stack_top(stacks, stack) - 1;
}

/* With the lock. */
static struct slab *map_slab(struct stacks *stacks)
{
	struct slab *slab = mmap(NULL, PAGE + stacks->per_slab * step_of(stacks),
				 PROT_READ | PROT_WRITE,
				 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE,
				 -1, 0);

	if (slab == MAP_FAILED)
		return NULL;
	slab->next = stacks->slabs;
	stacks->slabs = slab;
	return slab;
}

/* Take an unused stack. Called with the lock held. */
static void *carve(struct stacks *stacks)
{
	struct slab *slab = stacks->slabs;
	char *stack;

	lock_assert_held(&stacks->lock);
	while (slab && slab->used == stacks->per_slab)
		slab = slab->next;
	if (!slab)
		slab = map_slab(stacks);
	if (!slab)
		return NULL;
	stack = stack_in(stacks, slab, slab->used);
	if (stacks->guarded && mprotect(stack - PAGE, PAGE, PROT_NONE))
		return NULL;
	slab->used++;
	return stack;
}

void *flexsc__stack_get(struct stacks *stacks)
{
	void *stack;

	lock(&stacks->lock);
	stack = stacks->free;
	if (stack)
		stacks->free = *link_of(stacks, stack);
	else
		stack = carve(stacks);
	unlock(&stacks->lock);
	return stack;
}

void flexsc__stack_put(struct stacks *stacks, void *stack)
{
	if (!stack)
		return;
	lock(&stacks->lock);
	*link_of(stacks, stack) = stacks->free;
	stacks->free = stack;
	unlock(&stacks->lock);
}

void *flexsc__stack_of(pthread_t thread)
{
	struct stacks *stacks = &flexsc__owned;
	const size_t step = step_of(stacks);
	void *stack = NULL;

	lock(&stacks->lock);
	for (struct slab *slab = stacks->slabs; slab && !stack;
	     slab = slab->next) {
		/*
		 * libc's pthread_t is the address of a descriptor at the top of the
		 * stack.
		 */
		uint64_t at = (uint64_t)thread -
			      (uintptr_t)stack_in(stacks, slab, 0);

		if (at < stacks->per_slab * step)
			stack = stack_in(stacks, slab,
					 (unsigned int)(at / step));
	}
	unlock(&stacks->lock);
	return stack;
}

void flexsc__stacks_forked(void)
{
	flexsc__small.lock = (struct lock){ 0 };
	flexsc__owned.lock = (struct lock){ 0 };
	flexsc__owned.free = NULL;
	for (struct slab *slab = flexsc__owned.slabs; slab; slab = slab->next)
		slab->used = 0;
}
