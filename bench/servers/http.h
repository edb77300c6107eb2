/* SPDX-License-Identifier: MIT */
/*
 * HTTP/1.1 for servers of few pages: takes requests out of what has arrived,
 * however it was cut to pieces, by http/request.h, and writes the answers. It makes
 * no system calls, and a caller may have any number of these at a time.
 *
 * GET and HEAD of / or /1k are answered with a page of 1 KiB; /2k, /3k ... name
 * larger ones, which http-events.c has. Other targets are answered with 404,
 * other methods with 501, what isn't HTTP and requests with a body with 400.
 * After the last two the connection is closed.
 */
#ifndef BENCH_HTTP_H
#define BENCH_HTTP_H

#include <stdbool.h>
#include <stddef.h>

#include "http/request.h"

#define HTTP_HEAD_MAX	4096	/* a longer request head is answered with 400 */
#define HTTP_ANSWER_MAX	1536
#define HTTP_FIELDS_MAX	256	/* of an answer's head */
#define HTTP_PAGE	1024

struct http_in {
	size_t begin;	/* of the next request */
	size_t seen;	/* the request's bytes before it are parsed */
	size_t end;	/* of what has arrived */
	struct request request;
	char buf[HTTP_HEAD_MAX];
};

struct http_request {
	int status;	/* to answer with */
	bool head;	/* without the page */
	bool keep;	/* the connection */
	unsigned int kib;	/* of the page that is asked for; 0: none */
};

void http_in_init(struct http_in *in);

/* Room for what arrives next, never 0 bytes; then count it in in->end. */
size_t http_room(struct http_in *in);

/* The next request. False: more has to arrive. */
bool http_next(struct http_in *in, struct http_request *request);

/* Its answer into out, which has HTTP_ANSWER_MAX bytes; the length. */
size_t http_answer(const struct http_request *request, char *out);

/* The answer's head alone, for a page of so many bytes: HTTP_FIELDS_MAX. */
size_t http_head(const struct http_request *request, size_t page, char *out);

/* The first bytes of every page. */
void http_page(char *out, size_t size);

#endif /* BENCH_HTTP_H */
