/* SPDX-License-Identifier: MIT */
/*
 * HTTP/1.1 for servers of few pages. It uses http/request.h to find requests in
 * the received bytes, however they are split, and writes the answers. It makes
 * no system calls. Each connection has its own struct http_in.
 *
 * The answers:
 * - a page of 1 KiB for GET and HEAD of / or /1k; larger pages for /2k, /3k
 *   ..., which http-events.c has
 * - 404 for other targets
 * - 501 for other methods
 * - 400 for requests with a body, and for anything that isn't HTTP
 * After 501 and 400 the connection is closed.
 */
#ifndef BENCH_HTTP_H
#define BENCH_HTTP_H

#include <stdbool.h>
#include <stddef.h>

#include "http/request.h"

#define HTTP_HEAD_MAX	4096	/* a longer request head results in 400 */
#define HTTP_ANSWER_MAX	1536
#define HTTP_FIELDS_MAX	256	/* longest head of an answer */
#define HTTP_PAGE	1024

struct http_in {
	size_t begin;	/* beginning of the next request */
	size_t seen;	/* bytes of the request that have been parsed */
	size_t end;	/* end of the received bytes */
	struct request request;
	char buf[HTTP_HEAD_MAX];
};

struct http_request {
	int status;	/* status of the answer */
	bool head;	/* a HEAD request: send no page */
	bool keep;	/* keep the connection */
	unsigned int kib;	/* size of the requested page; 0: no page */
};

void http_in_init(struct http_in *in);

/*
 * Returns the number of free bytes at in->end, at least one. The caller receives there,
 * and adds the number received to in->end.
 */
size_t http_room(struct http_in *in);

/* Parse the next request. False: it is incomplete. */
bool http_next(struct http_in *in, struct http_request *request);

/*
 * Write only the answer's head, for a page of that size: at most
 * HTTP_FIELDS_MAX.
 */
size_t http_head(const struct http_request *request, size_t page, char *out);

/* Write the first bytes of a page; all pages begin with the same bytes. */
void http_page(char *out, size_t size);

#endif /* BENCH_HTTP_H */
