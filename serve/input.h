/* SPDX-License-Identifier: MIT */
/* What a connection has received, and which part of it is the current request. */
#ifndef SERVE_INPUT_H
#define SERVE_INPUT_H

#include <stdbool.h>
#include <stddef.h>

#include "http/buffer.h"
#include "http/request.h"

/* Most requests fit; a longer head moves to a big buffer. */
#define INPUT_SMALL	2048

/* Minimum room for a read, in bytes. */
#define INPUT_ROOM	512

/*
 * The current request begins at "start". The bytes before "parsed" have been passed to
 * llhttp. "end" is the end of what was received.
 */
struct input {
	struct buffers *buffers;
	char *data;
	size_t size;
	size_t start;
	size_t parsed;
	size_t end;
	struct buffer *big;	/* contains the data, unless "small" does */
	char small[INPUT_SMALL];
};

static inline char *input_request(const struct input *in)
{
	return in->data + in->start;
}

static inline char *input_end(const struct input *in)
{
	return in->data + in->end;
}

static inline size_t input_room(const struct input *in)
{
	return in->size - in->end;
}

/* Has more been received than was parsed? */
static inline bool input_rest(const struct input *in)
{
	return in->parsed < in->end;
}

/* All of the input has been used: discard it, or also release its big buffer. */
void input_discard(struct input *in);
void input_rewind(struct input *in);

/* Make room for the rest of the request that begins at "start". False: there is none. */
bool input_make_room(struct input *in, const struct request *r);

/* Pass what was received to request_parse(). Returns its result. */
int input_parse(struct input *in, struct request *r);

#endif /* SERVE_INPUT_H */
