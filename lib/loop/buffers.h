/* SPDX-License-Identifier: MIT */
/*
 * Buffers that a loop receives into. A buffer is free, in use by a receive, or owned by
 * the program. Free buffers belong to the engine if all were lent to it (engine.h), and
 * are on the stack "free" otherwise. Owner only.
 *
 *	free	-> in use	the kernel, or flexsc__buffers_take()
 *	in use	-> free		nothing was received, or the result is dropped:
 *				flexsc__buffers_put()
 *	in use	-> the program's	a completion names the buffer:
 *				flexsc__buffers_give()
 *	the program's -> free	flexsc_buffers_return()
 */
#ifndef FLEXSC_BUFFERS_H
#define FLEXSC_BUFFERS_H

#include <flexsc/multishot.h>
#include <stdbool.h>
#include <stdint.h>

struct flexsc_buffers {
	struct flexsc_loop *loop;
	struct flexsc_buffers *next;	/* in this loop's list */
	char *data;
	size_t size;		/* bytes per buffer */
	uint32_t count;
	uint32_t users;		/* multishot calls that use them */
	bool *given;		/* per buffer: does the program own it? */
	uint16_t group;		/* the engine's number for these buffers */
	void *lent;		/* the engine's ring; NULL: not lent */
	uint32_t out;		/* lent buffers that are filled and not free again
				 * yet */
	uint16_t *free;		/* stack of free buffers; only if the buffers aren't
				 * lent */
	uint32_t frees;
};

/* The number that means "no buffer". */
#define NO_BUFFER	UINT32_MAX

static inline void *buffers_at(const struct flexsc_buffers *buffers,
			       uint32_t which)
{
	return buffers->data + (size_t)which * buffers->size;
}

/*
 * Take a free buffer from the stack, if the buffers aren't lent; NO_BUFFER: none is
 * free.
 */
uint32_t flexsc__buffers_take(struct flexsc_buffers *buffers);
/* Free the buffer, and discard its content. */
void flexsc__buffers_put(struct flexsc_buffers *buffers, uint32_t which);
/* Make the program the owner of the buffer. */
void flexsc__buffers_give(struct flexsc_buffers *buffers, uint32_t which);

/* Free all buffers. Called when the loop ends, after its engine has released them. */
void flexsc__buffers_fini(struct flexsc_loop *loop);

#endif /* FLEXSC_BUFFERS_H */
