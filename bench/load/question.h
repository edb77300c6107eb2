/* SPDX-License-Identifier: MIT */
/*
 * A question: the request of all connections of "bench --raw load" and
 * "rounds", and its correct answer. It is made from the settings. After the
 * first answer over HTTP it is constant, and all threads read it.
 *
 * 	echo	a request is some bytes, different each time; the answer is
 * 		those bytes
 * 	http	a request is GET /; the answer has to be 200, and its body that
 * 		of the first answer
 * 	exact	request and answer are the bytes in the settings
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
	bool udp;		/* use datagrams */
	struct bench_route route;
	size_t bytes;		/* size of an echo */
	struct bench_page page;	/* unused for an echo: each peer has its own page */
};

/*
 * Returns 0, or 1 after a message that begins with the case's name.
 * bench_question_fini() must be called in both cases.
 */
int bench_question_init(struct bench_question *question, const char *name,
			const struct bench_settings *settings);
void bench_question_fini(struct bench_question *question);

#endif /* FLEXSC_BENCH_QUESTION_H */
