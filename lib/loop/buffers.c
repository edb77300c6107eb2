/* SPDX-License-Identifier: MIT */
#include "buffers.h"

#include <errno.h>
#include <stdlib.h>

#include "loop.h"
#include "multishot.h"

#define COUNT_MAX	32768U
#define BYTES_MAX	(1U << 30)
#define GROUPS_MAX	(UINT16_MAX + 1U)

uint32_t flexsc__buffers_take(struct flexsc_buffers *buffers)
{
	loop_assert_owner(buffers->loop);
	RULE(!buffers->lent);
	return buffers->frees ? buffers->free[--buffers->frees] : NO_BUFFER;
}

void flexsc__buffers_put(struct flexsc_buffers *buffers, uint32_t which)
{
	loop_assert_owner(buffers->loop);
	RULE(!buffers->given[which]);
	if (buffers->lent) {
		buffers->out--;
		buffers->loop->engine->buffer_put(buffers, which);
		return;
	}
	buffers->free[buffers->frees++] = (uint16_t)which;
}

void flexsc__buffers_give(struct flexsc_buffers *buffers, uint32_t which)
{
	RULE(!buffers->given[which]);
	buffers->given[which] = true;
}

static void buffers_release(struct flexsc_buffers *buffers)
{
	/*
	 * A forked child doesn't end the loan, because the ring that has the buffers
	 * belongs to the parent.
	 */
	if (buffers->lent && !buffers->loop->stale)
		buffers->loop->engine->buffers_unlend(buffers);
	free(buffers->data);
	free(buffers->given);
	free(buffers->free);
	free(buffers);
}

/*
 * Lend the buffers to the engine. If the engine doesn't take them, keep them on the
 * stack "free".
 */
static int buffers_prepare(struct flexsc_buffers *buffers)
{
	const struct engine *engine = buffers->loop->engine;

	if (engine->buffers_lend && !engine->buffers_lend(buffers))
		return 0;
	buffers->free = calloc(buffers->count, sizeof(*buffers->free));
	if (!buffers->free)
		return -ENOMEM;
	for (uint32_t i = buffers->count; i-- > 0;)
		flexsc__buffers_put(buffers, i);
	return 0;
}

int flexsc_buffers_create(struct flexsc_loop *loop,
			     struct flexsc_buffers **out, unsigned int count,
			     size_t size)
{
	int err = flexsc__post_check(loop, NULL);
	struct flexsc_buffers *buffers;

	if (err)
		return err;
	loop_assert_owner(loop);
	if (!out || !count || count & (count - 1) || count > COUNT_MAX ||
	    !size || size > BYTES_MAX)
		return -EINVAL;
	if (loop->groups_made == GROUPS_MAX)
		return -ENOSPC;
	buffers = calloc(1, sizeof(*buffers));
	if (!buffers)
		return -ENOMEM;
	*buffers = (struct flexsc_buffers){
		.loop = loop, .size = size, .count = count,
		.group = (uint16_t)loop->groups_made,
		.data = calloc(count, size),
		.given = calloc(count, sizeof(bool)),
	};
	if (!buffers->data || !buffers->given || buffers_prepare(buffers)) {
		buffers_release(buffers);
		return -ENOMEM;
	}
	loop->groups_made++;
	buffers->next = loop->buffers;
	loop->buffers = buffers;
	*out = buffers;
	return 0;
}

int flexsc_buffers_destroy(struct flexsc_buffers *buffers)
{
	struct flexsc_buffers **link;

	if (!buffers)
		return -EINVAL;
	if (buffers->loop->stale)
		return -ESTALE;
	loop_assert_owner(buffers->loop);
	if (buffers->users)
		return -EBUSY;
	for (link = &buffers->loop->buffers; *link != buffers;)
		link = &(*link)->next;
	*link = buffers->next;
	buffers_release(buffers);
	return 0;
}

void flexsc__buffers_fini(struct flexsc_loop *loop)
{
	struct flexsc_buffers *buffers, *next;

	for (buffers = loop->buffers; buffers; buffers = next) {
		next = buffers->next;
		buffers_release(buffers);
	}
	loop->buffers = NULL;
}

void *flexsc_buffers_data(const struct flexsc_buffers *buffers,
			  const struct flexsc_cb *cb)
{
	if (!buffers || !cb || !(cb->flags & FLEXSC_CB_BUFFER))
		return NULL;
	return buffers_at(buffers, cb->buffer);
}

int flexsc_buffers_return(struct flexsc_buffers *buffers, void *data)
{
	size_t place, which;

	if (!buffers)
		return -EINVAL;
	if (buffers->loop->stale)
		return -ESTALE;
	place = (size_t)((char *)data - buffers->data);
	which = place / buffers->size;
	if (which >= buffers->count || place % buffers->size ||
	    !buffers->given[which])
		return -EINVAL;
	buffers->given[which] = false;
	flexsc__buffers_put(buffers, (uint32_t)which);
	return 0;
}
