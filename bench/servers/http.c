/* SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <string.h>

#include "http.h"
#include "service.h"

static const struct limits limits = { .head = HTTP_HEAD_MAX - 1 };

void http_in_init(struct http_in *in)
{
	in->begin = in->seen = in->end = 0;
	request_init(&in->request, &limits);
}

size_t http_room(struct http_in *in)
{
	if (in->begin) {
		memmove(in->buf, in->buf + in->begin, in->end - in->begin);
		in->end -= in->begin;
		in->seen -= in->begin;
		in->begin = 0;
	}
	return sizeof(in->buf) - in->end;
}

/*
 * The size of a target's page in KiB: 1 for "/", N for "/Nk"; 0: no such page.
 */
static unsigned int page_of(const char *target, size_t n)
{
	unsigned int kib = 0;

	if (n == 1 && *target == '/')
		return 1;
	if (n < 3 || n > 7 || target[0] != '/' || target[1] == '0' ||
	    target[n - 1] != 'k')
		return 0;
	for (size_t i = 1; i < n - 1; i++) {
		if (target[i] < '0' || target[i] > '9')
			return 0;
		kib = 10 * kib + (unsigned int)(target[i] - '0');
	}
	return kib;
}

/* Decide how to answer a complete request. */
static struct http_request read_request(const struct request *r,
					const char *head)
{
	struct http_request request = {
		.status = 501, .head = r->method == HTTP_HEAD,
	};

	if (r->method != HTTP_HEAD && r->method != HTTP_GET)
		return request;
	request.kib = page_of(head + r->target.at, r->target.length);
	request.status = request.kib ? 200 : 404;
	request.keep = r->keep_alive;
	return request;
}

bool http_next(struct http_in *in, struct http_request *request)
{
	struct request *r = &in->request;
	const char *head = in->buf + in->begin;
	size_t used;
	int state;

	if (in->seen == in->end)
		return false;
	state = request_parse(r, head, in->seen - in->begin,
			      in->end - in->begin, &used);
	in->seen = in->begin + used;
	if (state < REQUEST_READY)
		return false;
	*request = read_request(r, head);
	if (state != REQUEST_READY) {
		request->keep = false;
		/*
		 * With 413 the head is complete, so an unsupported method (501)
		 * is known, and takes precedence.
		 */
		if (state != 413 || request->status != 501)
			request->status = 400;
	}
	in->begin = in->seen;
	request_init(r, &limits);
	return true;
}

static const char *reason(int status)
{
	switch (status) {
	case 200:
		return "OK";
	case 400:
		return "Bad Request";
	case 404:
		return "Not Found";
	default:
		return "Not Implemented";
	}
}

/* Repeat a line of text; the last one may be truncated. */
void http_page(char *out, size_t size)
{
	static const char line[] = "A page that was in memory all the time.\n";

	for (size_t i = 0; i < size; i += sizeof(line) - 1) {
		size_t left = size - i;

		memcpy(out + i, line,
		       left < sizeof(line) - 1 ? left : sizeof(line) - 1);
	}
}

size_t http_head(const struct http_request *request, size_t page, char *out)
{
	return (size_t)sprintf(out,
		"HTTP/1.1 %d %s\r\nServer: example\r\n"
		"Content-Type: text/plain\r\nContent-Length: %zu\r\n"
		"Connection: %s\r\n\r\n", request->status,
		reason(request->status), page,
		request->keep ? "keep-alive" : "close");
}

/*
 * Write the answer to out, which has HTTP_ANSWER_MAX bytes. Returns its length.
 */
static size_t http_answer(const struct http_request *request, char *out)
{
	struct http_request mine = *request;
	size_t body, n;

	if (mine.status == 200 && mine.kib > 1)
		mine.status = 404;
	body = mine.status == 200 ? HTTP_PAGE : 0;
	n = http_head(&mine, body, out);
	if (!body || mine.head)
		return n;
	http_page(out + n, body);
	return n + body;
}

static void begin(struct buffers *c)
{
	http_in_init(&c->in);
	c->last = false;
}

static char *room(struct buffers *c, size_t *size)
{
	*size = http_room(&c->in);
	return c->in.buf + c->in.end;
}

static void answer(struct buffers *c, size_t n)
{
	struct http_request request;

	c->in.end += n;
	c->begin = c->end = 0;
	while (!c->last && c->end <= sizeof(c->out) - HTTP_ANSWER_MAX &&
	       http_next(&c->in, &request)) {
		c->end += http_answer(&request, c->out + c->end);
		c->last = !request.keep;
	}
}

const struct service service = { "http", begin, room, answer };
