/* SPDX-License-Identifier: MIT */
/*
 * A visit: a client's GETs of one page or of several, one after the other, over
 * a connection of its own or over one that was kept. It never blocks. An answer
 * has to be HTTP/1.1 200 with exactly the page, which is a file of the file
 * set, or is what the first visit to it has learned.
 */
#ifndef FLEXSC_STUDY_VISIT_H
#define FLEXSC_STUDY_VISIT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "fileset.h"
#include "tally.h"

#define BENCH_HEAD_MAX	2048	/* bytes of an answer's head */

struct bench_page {
	char request[96];
	size_t request_size;
	unsigned char *body;	/* NULL: not learned yet */
	size_t size;
	bool learned;		/* body is complete */
	unsigned int class;
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
	size_t head_size;	/* so far */
	size_t got;		/* of the body */
	bool headed;		/* the head is complete */
	enum bench_end end;	/* of the request, when it is over */
	const char *wrong;	/* NULL, or why the answer isn't right */
	char head[BENCH_HEAD_MAX];
};

/* kept: the server is asked to keep the connection. kib 0: the page "/". */
void bench_page_init(struct bench_page *page, uint32_t kib, bool kept);
void bench_page_fini(struct bench_page *page);

/* A page that is a file; bench_page_fini() isn't due. */
void bench_page_of(struct bench_page *page, const char *target,
		   const struct bench_file *file);

/* The page is due; all of its bytes will be compared. */
void bench_visit_ask(struct bench_visit *visit, uint64_t due);

/* Send what can be sent now. True: the request is over, as visit->end says. */
bool bench_visit_send(struct bench_visit *visit);

/* Send and receive what can be now. True: as of bench_visit_send(). */
bool bench_visit_go(struct bench_visit *visit);

#endif /* FLEXSC_STUDY_VISIT_H */
