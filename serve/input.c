/* SPDX-License-Identifier: MIT */
#include "input.h"

#include <string.h>

_Static_assert(BUFFER_BODY >= REQUEST_HEAD_MAX + INPUT_ROOM,
	       "the longest head fits in a big buffer");

void input_discard(struct input *in)
{
	in->start = 0;
	in->parsed = 0;
	in->end = 0;
}

void input_rewind(struct input *in)
{
	buffer_put(in->buffers, in->big);
	in->big = NULL;
	in->data = in->small;
	in->size = sizeof(in->small);
	input_discard(in);
}

/*
 * Move the input to a big buffer, because the head doesn't fit in the small
 * one.
 */
static bool enlarge(struct input *in)
{
	struct buffer *big = buffer_get(in->buffers);

	if (!big)
		return false;
	memcpy(big->body, in->data + in->start, in->end - in->start);
	in->big = big;
	in->data = big->body;
	in->size = sizeof(big->body);
	return true;
}

bool input_make_room(struct input *in, const struct request *r)
{
	size_t length = in->end - in->start;

	if (r->state == REQUEST_IDLE) {
		input_rewind(in);
		return true;
	}
	/* Discard the body so far: it was counted, and isn't needed. */
	if (r->state == REQUEST_BODY)
		length = r->length;
	if (in->size - in->start - length < INPUT_ROOM) {
		if (in->start > 0)
			memmove(in->data, in->data + in->start, length);
		else if (in->big || !enlarge(in))
			return false;
		in->start = 0;
	}
	in->end = in->start + length;
	in->parsed = in->end;
	return true;
}

int input_parse(struct input *in, struct request *r)
{
	size_t used;
	int rc = request_parse(r, input_request(in), in->parsed - in->start,
			       in->end - in->start, &used);

	in->parsed = in->start + used;
	return rc;
}
