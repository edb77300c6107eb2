/* SPDX-License-Identifier: MIT */
/*
 * A visit: a client's requests for one or several pages, one after the other,
 * and their answers, over a non-blocking connection. An answer over HTTP must
 * be HTTP/1.1 200 with exactly the page; the answer for a bare page is only the
 * page. If a page isn't known yet, its first answer defines it.
 */
#ifndef FLEXSC_BENCH_VISIT_H
#define FLEXSC_BENCH_VISIT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "http/reply.h"

#define BENCH_HEAD_MAX	2048	/* longest head of an answer, in bytes */

/* How a request ends. */
enum bench_end {
	BENCH_ANSWERED,
	BENCH_LATE,		/* the client gave up, or the run ended */
	BENCH_REFUSED,
	BENCH_RESET,
	BENCH_CLOSED,		/* closed by the server, during or before the answer */
	BENCH_UNSENT,		/* not sent: the client had no port or descriptor left */
	/* Wrong answers, by the part that is wrong: */
	BENCH_STATUS,		/* status, which isn't 200 */
	BENCH_LENGTH,		/* Content-Length, or bytes after the body */
	BENCH_BODY,		/* body */
	BENCH_HEAD,		/* head, which has no end or no length */
	BENCH_CUT,		/* the run ended while the request was pending */
	BENCH_ENDS,
};

struct bench_page {
	char get[96];		/* the request, if "request" is NULL */
	const void *request;	/* another request, or NULL */
	size_t request_size;
	bool bare;		/* the answer has no head */
	unsigned char *body;	/* NULL: not learned yet */
	size_t size;
	bool learned;		/* body is complete */
	uint64_t think;		/* ns between the answer and the next request */
};

struct bench_visit {
	struct bench_visit *older, *newer;	/* list of the crowd */
	struct bench_page *page;	/* the session's pages are an array */
	size_t left;		/* number of pages still to come */
	uint64_t due;		/* time at which the request has to begin */
	uint64_t ready;		/* time at which bytes could first be sent; or 0 */
	int fd;			/* -1: not connected */
	bool made;		/* the connection was made for this page */
	bool asking;		/* the request was due, and hasn't ended */
	bool closing;		/* the server has announced to close, or has closed */
	size_t from, to;	/* the range of the body that is compared */
	size_t sent;		/* bytes of the request */
	struct reply head;
	size_t got;		/* bytes of the body */
	bool headed;		/* the head is complete, or the page is bare */
	enum bench_end end;	/* how the request ended */
	const char *wrong;	/* NULL, or why the answer is wrong */
};

/* kept: request a kept connection. kib 0: the page "/". */
void bench_page_init(struct bench_page *page, uint32_t kib, bool kept);
void bench_page_fini(struct bench_page *page);

/* Make a page whose bytes are known; it needs no bench_page_fini(). */
void bench_page_of(struct bench_page *page, const char *target,
		   const unsigned char *body, size_t size);

/* Begin a request for the page; all bytes of the answer will be compared. */
void bench_visit_ask(struct bench_visit *visit, uint64_t due);

/* Send what can be sent now. True: the request has ended; see visit->end. */
bool bench_visit_send(struct bench_visit *visit);

/*
 * Send and receive as much as possible now. Returns as bench_visit_send() does.
 */
bool bench_visit_go(struct bench_visit *visit);

/*
 * As bench_visit_go(), but wait for the request's end. False: there was no
 * progress for ms milliseconds.
 */
bool bench_visit_wait(struct bench_visit *visit, int ms);

/* Why the ended request wasn't answered; NULL: it was. */
const char *bench_visit_failure(const struct bench_visit *visit);

#endif /* FLEXSC_BENCH_VISIT_H */
