/* SPDX-License-Identifier: MIT */
#include "stacks.h"

#include <stdint.h>
#include <sys/mman.h>

#include "lib/base/futex.h"

#define SLAB	16U	/* stacks mapped at once */
#define PAGE	4096UL

/*
 * A slab begins with a page for this. The stacks follow, each with a guard page
 * below.
 */
struct slab {
	struct slab *next;
	unsigned int used;
};

static struct slab *slabs;
/* Free stacks, linked at the top, where they have been touched. */
static void *free_stacks;
static struct lock stacks_lock;

static char *stack_in(struct slab *slab, unsigned int i)
{
	return (char *)slab + PAGE + i * STACK_BYTES + PAGE;
}

static void **link_of(void *stack)
{
	return (void **)((char *)stack + STACK_BYTES - PAGE) - 1;
}

static struct slab *map_slab(void)
{
	struct slab *slab = mmap(NULL, PAGE + SLAB * STACK_BYTES,
				 PROT_READ | PROT_WRITE,
				 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE,
				 -1, 0);

	if (slab == MAP_FAILED)
		return NULL;
	slab->next = slabs;
	slabs = slab;
	return slab;
}

static void *carve(void)
{
	struct slab *slab = slabs;
	char *stack;

	while (slab && slab->used == SLAB)
		slab = slab->next;
	if (!slab)
		slab = map_slab();
	if (!slab)
		return NULL;
	stack = stack_in(slab, slab->used);
	if (mprotect(stack - PAGE, PAGE, PROT_NONE))
		return NULL;
	slab->used++;
	return stack;
}

void *flexsc__stack_get(size_t *bytes)
{
	void *stack;

	*bytes = STACK_BYTES - PAGE;
	lock(&stacks_lock);
	stack = free_stacks;
	if (stack)
		free_stacks = *link_of(stack);
	else
		stack = carve();
	unlock(&stacks_lock);
	return stack;
}

void flexsc__stack_put(void *stack)
{
	if (!stack)
		return;
	lock(&stacks_lock);
	*link_of(stack) = free_stacks;
	free_stacks = stack;
	unlock(&stacks_lock);
}

void *flexsc__stack_of(pthread_t thread)
{
	void *stack = NULL;

	lock(&stacks_lock);
	for (struct slab *slab = slabs; slab && !stack; slab = slab->next) {
		/*
		 * libc has a thread's descriptor, its pthread_t, at the top of
		 * its stack.
		 */
		uint64_t at = (uint64_t)thread - (uintptr_t)stack_in(slab, 0);

		if (at < SLAB * STACK_BYTES)
			stack = stack_in(slab, at / STACK_BYTES);
	}
	unlock(&stacks_lock);
	return stack;
}

void flexsc__stacks_forked(void)
{
	stacks_lock = (struct lock){ 0 };
	free_stacks = NULL;
	for (struct slab *slab = slabs; slab; slab = slab->next)
		slab->used = 0;
}
