/* SPDX-License-Identifier: MIT */
/*
 * What the connections of "bench --raw load" and "rounds" ask, and which answer
 * is right. It is made from the settings once, and doesn't change: all threads
 * read it.
 *
 *	echo	a request is some bytes, different each time; the answer is
 *		the same ones
 *	http	a request is GET /; the answer has to be 200, and its body the
 *		one that the connection's first answer had, which with rounds
 *		all connections have to have in common
 *	exact	request and answer are the bytes that the settings give
 */
#ifndef FLEXSC_BENCH_QUESTION_H
#define FLEXSC_BENCH_QUESTION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "route.h"
#include "settings.h"

struct bench_bytes {
	unsigned char *data;
	size_t size;
};

struct bench_question {
	enum { BENCH_ECHO, BENCH_HTTP, BENCH_EXACT } mode;
	bool udp;			/* each request and answer a datagram */
	struct bench_route route;
	size_t bytes;			/* the setting */
	struct bench_bytes request;	/* empty, as is answer, but for exact */
	struct bench_bytes answer;
};

/* 0, or 1 after a line that names the case. Either way fini() is due. */
int bench_question_init(struct bench_question *question, const char *name,
			const struct bench_settings *settings);
void bench_question_fini(struct bench_question *question);

#endif /* FLEXSC_BENCH_QUESTION_H */
