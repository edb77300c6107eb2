/* SPDX-License-Identifier: MIT */
/*
 * The pool of big buffers of one worker; runs on its thread. The buffer that
 * came back last is given first, for it is in the processor's cache.
 */
#include <stdlib.h>

#include "buffer.h"

#define KEEP	1024	/* unused buffers that aren't given back to libc */
#define SPARES	512	/* no second buffers when so many are in use */

struct buffer *pool_get(struct pool *pool)
{
	struct buffer *buffer = pool->free;

	if (buffer) {
		pool->free = buffer->next;
		pool->unused--;
	} else {
		buffer = malloc(sizeof(*buffer));
		if (!buffer)
			return NULL;
	}
	pool->used++;
	return buffer;
}

struct buffer *pool_spare(struct pool *pool)
{
	return pool->used < SPARES ? pool_get(pool) : NULL;
}

void pool_put(struct pool *pool, struct buffer *buffer)
{
	if (!buffer)
		return;
	pool->used--;
	if (pool->unused >= KEEP) {
		free(buffer);
		return;
	}
	buffer->next = pool->free;
	pool->free = buffer;
	pool->unused++;
}

void pool_fini(struct pool *pool)
{
	while (pool->free) {
		struct buffer *buffer = pool->free;

		pool->free = buffer->next;
		free(buffer);
	}
	pool->unused = 0;
}
