/* SPDX-License-Identifier: MIT */
/*
 * HTTP/1.1 for servers of one page: takes request heads out of what has
 * arrived, however it was cut to pieces, and writes the answers. It makes no
 * system calls, and a caller may have any number of these at a time.
 *
 * GET and HEAD of / are answered with the page, other targets with 404, other
 * methods with 501, what isn't HTTP with 400. After the last two, and after a
 * request that has a body, which nobody reads here, the connection is closed.
 */
#ifndef EXAMPLES_HTTP_H
#define EXAMPLES_HTTP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define HTTP_HEAD_MAX	4096	/* a longer request head is answered with 400 */
#define HTTP_ANSWER_MAX	1536
#define HTTP_PAGE	1024

struct http_in {
	size_t begin;	/* of the next request head */
	size_t seen;	/* no empty line begins before it */
	size_t end;	/* of what has arrived */
	char buf[HTTP_HEAD_MAX];
};

struct http_request {
	int status;	/* to answer with */
	bool head;	/* without the page */
	bool keep;	/* the connection */
};

/* Room for what arrives next, never 0 bytes; then count it in in->end. */
size_t http_room(struct http_in *in);

/* The next request. False: more has to arrive. */
bool http_next(struct http_in *in, struct http_request *request);

/* Its answer into out, which has HTTP_ANSWER_MAX bytes; the length. */
size_t http_answer(const struct http_request *request, char *out);

/*
 * Listen on the loopback interface and print the port; what a port of 0 is
 * given is free. It doesn't return if that fails.
 */
int http_listen(const char *program, uint16_t port);

#endif /* EXAMPLES_HTTP_H */
