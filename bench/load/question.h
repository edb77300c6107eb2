/* SPDX-License-Identifier: MIT */
/*
 * A question: what the connections of "bench --raw load" and "rounds" ask, and
 * which answer is right. It is made of the settings. When the first answer over HTTP
 * has come, it doesn't change any more: all threads read it.
 *
 *	echo	a request is some bytes, different each time; the answer is
 *		those bytes
 *	http	a request is GET /; the answer has to be 200, and its body that
 *		of the first answer
 *	exact	request and answer are the bytes that the settings give
 */
#ifndef FLEXSC_BENCH_QUESTION_H
#define FLEXSC_BENCH_QUESTION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "route.h"
#include "visit.h"
#include "bench/raw/settings.h"

struct bench_question {
	enum { BENCH_ECHO, BENCH_HTTP, BENCH_EXACT } mode;
	bool udp;		/* requests and answers are datagrams */
	struct bench_route route;
	size_t bytes;		/* of an echo */
	struct bench_page page;	/* but for echo, where each peer has its own */
};

/*
 * 0, or 1 after a line on stderr that begins with the case's name.
 * bench_question_fini() is due in both cases.
 */
int bench_question_init(struct bench_question *question, const char *name,
			const struct bench_settings *settings);
void bench_question_fini(struct bench_question *question);

#endif /* FLEXSC_BENCH_QUESTION_H */
