/* SPDX-License-Identifier: MIT */
/*
 * Big buffers of one thread. The buffer that was released last is reused first,
 * because it is in the processor's cache.
 */
#include <stdlib.h>

#include "buffer.h"

#define KEEP	1024	/* maximum number of unused buffers kept; libc gets
			 * the others back */

struct buffer *buffer_get(struct buffers *buffers)
{
	struct buffer *buffer = buffers->free;

	if (buffer) {
		buffers->free = buffer->next;
		buffers->unused--;
	} else {
		buffer = malloc(sizeof(*buffer));
		if (!buffer)
			return NULL;
	}
	return buffer;
}

void buffer_put(struct buffers *buffers, struct buffer *buffer)
{
	if (!buffer)
		return;
	if (buffers->unused >= KEEP) {
		free(buffer);
		return;
	}
	buffer->next = buffers->free;
	buffers->free = buffer;
	buffers->unused++;
}

void buffers_fini(struct buffers *buffers)
{
	while (buffers->free) {
		struct buffer *buffer = buffers->free;

		buffers->free = buffer->next;
		free(buffer);
	}
	buffers->unused = 0;
}
