/* SPDX-License-Identifier: MIT */
/*
 * One request of an open loop: GET of a page over a connection of its own, or
 * over one that was kept. It never blocks. The answer has to be HTTP/1.1 200 with
 * exactly the page, which the first visit to it has learned.
 */
#ifndef FLEXSC_BENCH_VISIT_H
#define FLEXSC_BENCH_VISIT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tally.h"

#define BENCH_HEAD_MAX	512	/* bytes of an answer's head */

struct bench_page {
	char request[96];
	size_t request_size;
	char *body;		/* NULL: not learned yet */
	size_t size;
	bool learned;		/* body is complete */
};

struct bench_visit {
	struct bench_visit *older, *newer;	/* the loop's */
	struct bench_page *page;
	uint64_t due;
	uint64_t connected;	/* when the request could be sent first, or 0 */
	int fd;			/* -1: none yet */
	size_t sent;		/* of the request */
	size_t head_size;	/* so far */
	size_t got;		/* of the body */
	bool headed;		/* the head is complete */
	char head[BENCH_HEAD_MAX];
};

/* kept: the server is asked to keep the connection. kib 0: the page "/". */
void bench_page_init(struct bench_page *page, uint32_t kib, bool kept);
void bench_page_fini(struct bench_page *page);

/*
 * Send and receive as far as that goes now. True: it is over, and *end says how;
 * *wrong, unless it is NULL, says that the answer isn't the right one.
 */
bool bench_visit_go(struct bench_visit *visit, enum bench_end *end,
		    const char **wrong);

#endif /* FLEXSC_BENCH_VISIT_H */
