/* SPDX-License-Identifier: MIT */
/*
 * A visit: a client's requests for one page or for several, one after the other, and
 * their answers, over a connection that doesn't block. An answer over HTTP has to
 * be HTTP/1.1 200 with exactly the page; the answer for a bare page is the
 * page alone. Of a page that isn't known yet, the first answer becomes the page.
 */
#ifndef FLEXSC_BENCH_VISIT_H
#define FLEXSC_BENCH_VISIT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "http/reply.h"

#define BENCH_HEAD_MAX	2048	/* bytes of an answer's head */

/* How a request ends. */
enum bench_end {
	BENCH_ANSWERED,
	BENCH_LATE,		/* the client gave up, or the run was over */
	BENCH_REFUSED,
	BENCH_RESET,
	BENCH_CLOSED,		/* by the server, within the answer or before */
	BENCH_UNSENT,		/* this client had no port or descriptor left */
	/* The answer is wrong: */
	BENCH_STATUS,		/* not 200 */
	BENCH_LENGTH,		/* its Content-Length, or what came behind it */
	BENCH_BODY,		/* a byte of it */
	BENCH_HEAD,		/* the head has no end, or no length */
	BENCH_CUT,		/* under way when the run was cut off */
	BENCH_ENDS,
};

struct bench_page {
	char get[96];		/* the request, unless there is another */
	const void *request;	/* NULL: get */
	size_t request_size;
	bool bare;		/* the answer has no head */
	unsigned char *body;	/* NULL: not learned yet */
	size_t size;
	bool learned;		/* body is complete */
	uint64_t think;		/* ns from the answer to the next request */
};

struct bench_visit {
	struct bench_visit *older, *newer;	/* the crowd's */
	struct bench_page *page;	/* the session's next one is behind */
	size_t left;		/* pages that are still to come */
	uint64_t due;		/* when the page is asked for */
	uint64_t ready;		/* when bytes could first be sent; or 0 */
	int fd;			/* -1: none yet */
	bool made;		/* the connection was given for this page */
	bool asking;		/* the request is due, and isn't over */
	bool closing;		/* the server says that it closes, or has */
	size_t from, to;	/* the bytes of the body that are compared */
	size_t sent;		/* of the request */
	struct reply head;
	size_t got;		/* of the body */
	bool headed;		/* the head is complete, or there is none */
	enum bench_end end;	/* of the request, when it is over */
	const char *wrong;	/* NULL, or why the answer isn't right */
};

/* kept: the server is asked to keep the connection. kib 0: the page "/". */
void bench_page_init(struct bench_page *page, uint32_t kib, bool kept);
void bench_page_fini(struct bench_page *page);

/* A page whose bytes are known; bench_page_fini() isn't due. */
void bench_page_of(struct bench_page *page, const char *target,
		   const unsigned char *body, size_t size);

/* The page is due; all of its bytes will be compared. */
void bench_visit_ask(struct bench_visit *visit, uint64_t due);

/* Send what can be sent now. True: the request is over, as visit->end says. */
bool bench_visit_send(struct bench_visit *visit);

/* Send and receive what can be now. True: as of bench_visit_send(). */
bool bench_visit_go(struct bench_visit *visit);

/* The same, until it is over. False: nothing was possible for so long. */
bool bench_visit_wait(struct bench_visit *visit, int ms);

/* Why the request, which is over, wasn't answered; NULL: it was. */
const char *bench_visit_failure(const struct bench_visit *visit);

#endif /* FLEXSC_BENCH_VISIT_H */
