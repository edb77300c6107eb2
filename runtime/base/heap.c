/* SPDX-License-Identifier: MIT */
/*
 * The heap of the runtime, and of the library inside it. meson.build redirects malloc()
 * and related functions in their files to these functions. The program's malloc() can't
 * be used: a user thread may hold its lock while it waits for the carrier that
 * allocates. libc's malloc() can't either: it reserves 64 MB of addresses for each
 * kernel thread that allocates, and the program's address space may be limited.
 *
 * A block's size is a power of two, or the block is a mapping of its own. A freed block
 * is reused for blocks of the same size. Any thread may call the functions, but a user
 * thread only inside the runtime, because no handler of the program may interrupt a
 * thread that has the lock.
 */
#include "heap.h"

#include <errno.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>

#include "lib/base/futex.h"

#define ALIGNED		64U	/* alignment of all blocks; size of a block's head */
/* a block over half of this gets a mapping of its own */
#define LARGE		(64U << 10)
#define CHUNK		(256U << 10)	/* size of a mapping for smaller blocks */
#define CLASSES		16U

/* The head of a block, followed by what the caller gets. */
struct block {
	size_t size;		/* includes this head */
	struct block *next;	/* next free block, while this one is free */
} __attribute__((aligned(ALIGNED)));

static struct {
	struct lock lock;
	struct block *free[CLASSES];
	char *chunk, *end;	/* the unused part of the current chunk */
} heap;

static void *heap_map(size_t size)
{
	void *area = mmap(NULL, size, PROT_READ | PROT_WRITE,
			  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	return area == MAP_FAILED ? NULL : area;
}

static unsigned int class_of(size_t size)
{
	return (unsigned int)(64 - __builtin_clzl((size - 1) / ALIGNED | 1));
}

/* Cut a block off the chunk. A rest that is too small stays unused. Needs the lock. */
static struct block *carve(size_t size)
{
	struct block *block;

	if ((size_t)(heap.end - heap.chunk) < size) {
		char *chunk = heap_map(CHUNK);

		if (!chunk)
			return NULL;
		heap.chunk = chunk;
		heap.end = chunk + CHUNK;
	}
	block = (struct block *)heap.chunk;
	heap.chunk += size;
	return block;
}

static struct block *take(size_t size)
{
	unsigned int class = class_of(size);
	struct block *block;

	lock(&heap.lock);
	block = heap.free[class];
	if (block)
		heap.free[class] = block->next;
	else
		block = carve((size_t)ALIGNED << class);
	unlock(&heap.lock);
	if (block)
		block->size = (size_t)ALIGNED << class;
	return block;
}

void *flexsc__heap_malloc(size_t bytes)
{
	size_t size = bytes + sizeof(struct block);
	struct block *block = NULL;

	if (size < bytes) {
		errno = ENOMEM;
		return NULL;
	}
	if (size <= LARGE / 2) {
		block = take(size);
	} else {
		block = heap_map(size < LARGE ? LARGE : size);
		if (block)
			block->size = size < LARGE ? LARGE : size;
	}
	if (!block) {
		errno = ENOMEM;
		return NULL;
	}
	return block + 1;
}

void flexsc__heap_free(void *memory)
{
	struct block *block = (struct block *)memory - 1;

	if (!memory)
		return;
	if (block->size >= LARGE) {
		munmap(block, block->size);
		return;
	}
	lock(&heap.lock);
	block->next = heap.free[class_of(block->size)];
	heap.free[class_of(block->size)] = block;
	unlock(&heap.lock);
}

void *flexsc__heap_calloc(size_t n, size_t size)
{
	size_t bytes;
	void *memory;

	if (__builtin_mul_overflow(n, size, &bytes)) {
		errno = ENOMEM;
		return NULL;
	}
	memory = flexsc__heap_malloc(bytes);
	if (memory)
		memset(memory, 0, bytes);
	return memory;
}

void *flexsc__heap_realloc(void *memory, size_t bytes)
{
	void *larger = flexsc__heap_malloc(bytes);
	size_t had;

	if (!larger || !memory)
		return larger;
	had = ((struct block *)memory - 1)->size - sizeof(struct block);
	memcpy(larger, memory, had < bytes ? had : bytes);
	flexsc__heap_free(memory);
	return larger;
}

/* All blocks are aligned to cache lines; no caller needs more. */
void *flexsc__heap_aligned_alloc(size_t alignment, size_t bytes)
{
	RULE(alignment <= ALIGNED);
	return flexsc__heap_malloc(bytes);
}

void flexsc__heap_forked(void)
{
	heap.lock = (struct lock){ 0 };
	/*
	 * When the process forked, another thread may have been between two stores in
	 * carve(). So drop the chunk.
	 */
	heap.chunk = heap.end = NULL;
}
