/* SPDX-License-Identifier: MIT */
/*
 * Big buffers. A connection has one from a request to the end of its answer,
 * and none while it waits for the next request, so an idle client costs no
 * buffer.
 */
#ifndef HTTP_BUFFER_H
#define HTTP_BUFFER_H

#include <stdbool.h>
#include <stddef.h>

#define BUFFER_PATH	4096	/* the file's name, with its terminating zero */
#define BUFFER_HEAD	1024	/* for a head in front of the body */
#define BUFFER_BODY	65536

/*
 * The head is written so that it ends where the body begins, so one send covers
 * both. The last field is padding, which shifts the next buffer's lines to
 * other sets of the processor's cache.
 */
struct buffer {
	struct buffer *next;
	char path[BUFFER_PATH - sizeof(struct buffer *)];
	char head[BUFFER_HEAD];
	char body[BUFFER_BODY];
	char shift[192];
};

struct buffers {
	struct buffer *free;
	unsigned int unused;	/* length of the free list */
};

/* Get a free buffer; NULL: no memory. */
struct buffer *buffer_get(struct buffers *buffers);

/* Release a buffer; NULL is allowed. */
void buffer_put(struct buffers *buffers, struct buffer *buffer);

void buffers_fini(struct buffers *buffers);

#endif /* HTTP_BUFFER_H */
