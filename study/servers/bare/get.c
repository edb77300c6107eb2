/* SPDX-License-Identifier: MIT */
/*
 * memcached's protocol without a cache, for the servers get-epoll and get-flexsc: a line
 * that begins with "set" is followed by a line of data, and is answered by STORED. All
 * other lines are answered by one value of 64 bytes, for the key "key".
 */
#include <string.h>

#include "bench/servers/service.h"

#define ERROR	"ERROR\r\n"
#define STORED	"STORED\r\n"
#define VALUE	"VALUE key 0 64\r\n"						\
		"abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyz"		\
		"abcdefghijkl\r\nEND\r\n"

static void begin(struct buffers *c)
{
	*c = (struct buffers){ .last = false };
}

static char *room(struct buffers *c, size_t *size)
{
	struct http_in *in = &c->in;

	memmove(in->buf, in->buf + in->begin, in->end - in->begin);
	in->end -= in->begin;
	in->begin = 0;
	*size = sizeof(in->buf) - in->end;
	return in->buf + in->end;
}

/* Returns the length of the request at the beginning; 0: it is incomplete. */
static size_t request(const char *line, size_t size, bool *set)
{
	const char *end = memchr(line, '\n', size);

	*set = size >= 3 && !memcmp(line, "set", 3);
	if (end && *set)
		end = memchr(end + 1, '\n', size - (size_t)(end + 1 - line));
	return end ? (size_t)(end + 1 - line) : 0;
}

static void answer(struct buffers *c, size_t n)
{
	struct http_in *in = &c->in;
	size_t size;
	bool set;

	in->end += n;
	c->begin = c->end = 0;
	while (c->end + sizeof(VALUE) <= sizeof(c->out) &&
	       (size = request(in->buf + in->begin, in->end - in->begin, &set))) {
		const char *text = set ? STORED : VALUE;

		in->begin += size;
		memcpy(c->out + c->end, text, strlen(text));
		c->end += strlen(text);
	}
	/* A request that doesn't fit ends the connection. */
	if (!in->begin && in->end == sizeof(in->buf)) {
		memcpy(c->out, ERROR, strlen(ERROR));
		c->end = strlen(ERROR);
		c->last = true;
	}
}

const struct service service = { "get", begin, room, answer };
