/* SPDX-License-Identifier: MIT */
/*
 * A question: what the connections of "bench --raw load" and "rounds" ask, and
 * which answer is right. It is made of the settings once, and doesn't change: all
 * threads read it.
 *
 *	echo	a request is some bytes, different each time; the answer is
 *		those bytes
 *	http	a request is GET /; the answer has to be 200, and its body that
 *		of the connection's first answer; with rounds, all connections'
 *		first answers have to have one body
 *	exact	request and answer are the bytes that the settings give
 */
#ifndef FLEXSC_BENCH_QUESTION_H
#define FLEXSC_BENCH_QUESTION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "route.h"
#include "bench/raw/settings.h"

struct bench_bytes {
	unsigned char *data;
	size_t size;
};

struct bench_question {
	enum { BENCH_ECHO, BENCH_HTTP, BENCH_EXACT } mode;
	bool udp;			/* requests and answers are datagrams */
	struct bench_route route;
	size_t bytes;			/* the setting of that name */
	struct bench_bytes request;	/* as answer: empty but for exact */
	struct bench_bytes answer;
};

/*
 * 0, or 1 after a line on stderr that begins with the case's name.
 * bench_question_fini() is due in both cases.
 */
int bench_question_init(struct bench_question *question, const char *name,
			const struct bench_settings *settings);
void bench_question_fini(struct bench_question *question);

#endif /* FLEXSC_BENCH_QUESTION_H */
