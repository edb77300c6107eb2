/* SPDX-License-Identifier: MIT */
/*
 * Buffers that a loop receives into. A buffer is free, in use by a receive, or
 * the program's. Free buffers are in the engine's hands if all were lent to the
 * engine (engine.h), and on the stack "free" otherwise. Owner only.
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
	struct flexsc_buffers *next;	/* of this loop */
	char *data;
	size_t size;		/* of one, in bytes */
	uint32_t count;
	uint32_t users;		/* multishot calls */
	bool *given;		/* is it the program's? */
	uint16_t group;		/* the engine's name for them */
	void *lent;		/* the engine's ring; NULL: it takes none */
	uint32_t out;		/* lent ones that came back with bytes */
	uint16_t *free;		/* a stack, if they aren't lent */
	uint32_t frees;
};

/* No buffer. */
#define NO_BUFFER	UINT32_MAX

static inline void *buffers_at(const struct flexsc_buffers *buffers,
			       uint32_t which)
{
	return buffers->data + (size_t)which * buffers->size;
}

/* Take a free one that isn't lent; NO_BUFFER. */
uint32_t flexsc__buffers_take(struct flexsc_buffers *buffers);
/* A buffer is free again, and what is in it is forgotten. */
void flexsc__buffers_put(struct flexsc_buffers *buffers, uint32_t which);
/* It is the program's from here on. */
void flexsc__buffers_give(struct flexsc_buffers *buffers, uint32_t which);

/* The loop ends, and its engine has let go of all buffers. */
void flexsc__buffers_fini(struct flexsc_loop *loop);

#endif /* FLEXSC_BUFFERS_H */
