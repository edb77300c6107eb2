/* SPDX-License-Identifier: MIT */
/*
 * A program with its own malloc(). Like real ones, it takes a lock, calls the
 * kernel, has a cache per thread, and sometimes waits.
 */
#define _GNU_SOURCE
#include <malloc.h>
#include <sched.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include "threads.h"

#define CHUNK	(1UL << 20)
#define CLASSES	26		/* powers of two, from 32 on */
#define CACHED	8U		/* blocks of each class in a thread's cache */
#define MAGIC	0x6d616c6cU

struct block {
	uint32_t magic;
	uint32_t class;
	union {
		/* start of the block, if this one is aligned within it */
		void *start;
		struct block *next;
	};
};

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static struct block *free_blocks[CLASSES];
static char *chunk, *chunk_end;
static __thread struct block *cache[CLASSES];
static __thread unsigned int cached[CLASSES];
/* What the allocator additionally does with its lock held. */
static atomic_bool waits, yields;
static unsigned int turns;
static int pipes[2];
static atomic_ulong allocations;

/* Makes other threads want the lock while the caller holds it. */
static void dawdle(void)
{
	char byte = 0;

	turns++;
	if (yields && turns % 16 == 0)
		sched_yield();
	if (!waits || turns % 64 || pipes[1] <= 0)
		return;
	if (write(pipes[1], &byte, 1) == 1 && read(pipes[0], &byte, 1) != 1)
		abort();
	usleep(50);
}

static struct block *carve(unsigned int class)
{
	size_t size = 32UL << class;
	struct block *block;

	if (size >= CHUNK / 4) {
		block = mmap(NULL, size, PROT_READ | PROT_WRITE,
			     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		return block == MAP_FAILED ? NULL : block;
	}
	if (!chunk || (size_t)(chunk_end - chunk) < size) {
		chunk = (char *)syscall(SYS_mmap, NULL, CHUNK,
					PROT_READ | PROT_WRITE,
					MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		if (chunk == MAP_FAILED) {
			chunk = NULL;
			return NULL;
		}
		chunk_end = chunk + CHUNK;
	}
	block = (struct block *)chunk;
	chunk += size;
	return block;
}

static struct block *take(unsigned int class)
{
	struct block *block = cache[class];

	if (block) {
		cache[class] = block->next;
		cached[class]--;
		return block;
	}
	pthread_mutex_lock(&mutex);
	dawdle();
	block = free_blocks[class];
	if (block)
		free_blocks[class] = block->next;
	else
		block = carve(class);
	pthread_mutex_unlock(&mutex);
	return block;
}

void *malloc(size_t size)
{
	unsigned int class = 0;
	struct block *block;

	allocations++;
	while (class < CLASSES && (32UL << class) < size + sizeof(*block))
		class++;
	block = class < CLASSES ? take(class) : NULL;
	if (!block) {
		errno = ENOMEM;
		return NULL;
	}
	*block = (struct block){ .magic = MAGIC, .class = class };
	block->start = block;
	return block + 1;
}

/* Not inlined: the compiler would assume properties of malloc()'s result. */
__attribute__((noinline)) static struct block *block_of(void *at)
{
	struct block *block = ((struct block *)at - 1)->start;

	if (block->magic != MAGIC)
		abort();
	return block;
}

void free(void *at)
{
	struct block *block;
	unsigned int class;

	if (!at)
		return;
	block = block_of(at);
	class = block->class;
	block->magic = 0;
	if (cached[class] < CACHED) {
		block->next = cache[class];
		cache[class] = block;
		cached[class]++;
		return;
	}
	pthread_mutex_lock(&mutex);
	dawdle();
	block->next = free_blocks[class];
	free_blocks[class] = block;
	pthread_mutex_unlock(&mutex);
}

void *calloc(size_t n, size_t size)
{
	void *at;

	if (size && n > SIZE_MAX / size) {
		errno = ENOMEM;
		return NULL;
	}
	at = malloc(n * size);
	return at ? memset(at, 0, n * size) : NULL;
}

size_t malloc_usable_size(void *at)
{
	struct block *block = block_of(at);

	return (32UL << block->class) - (size_t)((char *)at - (char *)block);
}

void *realloc(void *at, size_t size)
{
	size_t old = at ? malloc_usable_size(at) : 0;
	void *new;

	if (at && size <= old)
		return at;
	new = malloc(size);
	if (new && at) {
		memcpy(new, at, old < size ? old : size);
		free(at);
	}
	return new;
}

void *memalign(size_t alignment, size_t size)
{
	char *at = malloc(size + alignment + sizeof(struct block));
	uintptr_t to = (uintptr_t)at + sizeof(struct block);
	struct block *block;

	if (!at)
		return NULL;
	to = (to + alignment - 1) & ~(alignment - 1);
	block = (struct block *)to - 1;
	block->magic = MAGIC;
	block->start = (struct block *)at - 1;
	return (void *)to;
}

void *aligned_alloc(size_t alignment, size_t size)
{
	return memalign(alignment, size);
}

int posix_memalign(void **at, size_t alignment, size_t size)
{
	void *new = memalign(alignment, size);

	if (!new)
		return ENOMEM;
	*at = new;
	return 0;
}

/* Use the allocator. */

static void use(unsigned int seed)
{
	char *blocks[16] = { NULL };

	for (unsigned int i = 0; i < 200; i++) {
		unsigned int which = (seed * 7 + i * 5) % 16;
		size_t size = 1 + (seed * 131 + i * 977) % 4000;

		if (blocks[which])
			CHECK_EQ(blocks[which][0], (char)which);
		if (i % 3)
			blocks[which] = realloc(blocks[which], size);
		else
			free(blocks[which]), blocks[which] = calloc(1, size);
		CHECK(blocks[which]);
		blocks[which][0] = (char)which;
		blocks[which][size - 1] = (char)which;
	}
	for (unsigned int i = 0; i < 16; i++)
		free(blocks[i]);
}

static void *use_often(void *arg)
{
	int fds[2];
	char byte = 0;

	CHECK_EQ(pipe(fds), 0);
	for (unsigned int i = 0; i < 40; i++) {
		use(i + (unsigned int)(uintptr_t)arg);
		CHECK_EQ(write(fds[1], &byte, 1), 1);
		CHECK_EQ(read(fds[0], &byte, 1), 1);
		if (i % 8 == 0)
			usleep(100);
	}
	CHECK_EQ(close(fds[0]), 0);
	CHECK_EQ(close(fds[1]), 0);
	return NULL;
}

static void *use_once(void *arg)
{
	free(malloc((size_t)(uintptr_t)arg * 40));
	return NULL;
}

#define READERS	200

/* More and more threads wait, and the runtime needs memory to wait for them. */
static void *use_and_read(void *arg)
{
	const int *fds = arg;
	char byte;

	use_once((void *)1);
	CHECK_EQ(read(fds[0], &byte, 1), 1);
	use_once((void *)2);
	return NULL;
}

static void begin_readers(pthread_t *readers, int (*fds)[2])
{
	for (int i = 0; i < READERS; i++) {
		CHECK_EQ(pipe(fds[i]), 0);
		readers[i] = start(use_and_read, fds[i]);
		join(start(use_once, (void *)(intptr_t)i));
	}
}

static void end_readers(const pthread_t *readers, int (*fds)[2])
{
	for (int i = 0; i < READERS; i++)
		CHECK_EQ(write(fds[i][1], "x", 1), 1);
	for (int i = 0; i < READERS; i++) {
		join(readers[i]);
		CHECK_EQ(close(fds[i][0]), 0);
		CHECK_EQ(close(fds[i][1]), 0);
	}
}

static void use_everywhere(void)
{
	pthread_t threads[12], readers[READERS];
	int fds[READERS][2];

	CHECK_EQ(pipe(pipes), 0);
	for (int i = 0; i < 12; i++)
		threads[i] = start(use_often, (void *)(intptr_t)i);
	begin_readers(readers, fds);
	use_often((void *)99);
	end_readers(readers, fds);
	join_all(threads, 12);
	CHECK(allocations > 1000);
}

TEST_LIMIT(a_program_s_malloc_locks, 60)
{
	use_everywhere();
}

TEST_LIMIT(a_program_s_malloc_yields_with_its_lock, 60)
{
	yields = true;
	use_everywhere();
}

TEST_LIMIT(a_program_s_malloc_waits_with_its_lock, 60)
{
	waits = true;
	yields = true;
	use_everywhere();
}
