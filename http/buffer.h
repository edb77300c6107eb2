/* SPDX-License-Identifier: MIT */
/*
 * Big buffers, given to a connection while it has a request to answer and
 * taken back before it waits for the next: an idle client costs none.
 */
#ifndef HTTP_BUFFER_H
#define HTTP_BUFFER_H

#include <stdbool.h>
#include <stddef.h>

#define BUFFER_PATH	4096	/* the file's name, with its end */
#define BUFFER_HEAD	1024	/* room for a head in front of the body */
#define BUFFER_BODY	65536

/*
 * The head is written so that it ends where the body begins, and one send
 * takes both. The last field only shifts the next buffer's lines to other
 * sets of the processor's cache.
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
	unsigned int unused;	/* on the free list */
};

/* A free buffer; NULL: no memory. */
struct buffer *buffer_get(struct buffers *buffers);

/* Take a buffer back; NULL is fine. */
void buffer_put(struct buffers *buffers, struct buffer *buffer);

void buffers_fini(struct buffers *buffers);

#endif /* HTTP_BUFFER_H */
