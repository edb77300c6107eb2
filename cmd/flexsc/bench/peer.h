/* SPDX-License-Identifier: MIT */
/*
 * One client connection of "bench --raw load" or "rounds": it sends a request,
 * takes the answer however it is cut to pieces, and tells whether it is the right
 * one. It never blocks. The thread that has it runs all of this. More than the
 * answer, or anything before it was asked for, is wrong, too.
 */
#ifndef FLEXSC_BENCH_PEER_H
#define FLEXSC_BENCH_PEER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "question.h"

#define BENCH_PEER_BODY_MIN	16384	/* bytes of a body that always fit */
#define BENCH_PEER_HEAD_MAX	4096

struct bench_peer {
	const struct bench_question *question;
	int fd;			/* -1: not connected */
	bool over;		/* the thread's: no more is expected */
	uint32_t number;	/* among all connections */
	uint64_t answers;	/* right ones */
	uint64_t sent_at;	/* when the request began to be sent */
	size_t request_size;
	size_t sent;		/* of the request */
	size_t got;		/* of the answer */
	size_t room;		/* of the answer */
	size_t head_size;	/* of the answer, with the empty line, or 0 */
	size_t body_size;
	char *request;
	char *answer;
	char *body;		/* of the first answer */
};

/*
 * 0, or a negative errno code, after which bench_peer_fini() is due, too. The
 * question outlives the peer.
 */
int bench_peer_init(struct bench_peer *peer,
		    const struct bench_question *question, uint32_t number);
void bench_peer_fini(struct bench_peer *peer);

/* Connect to the question's server; 0, or a negative errno code. */
int bench_peer_connect(struct bench_peer *peer);
void bench_peer_close(struct bench_peer *peer);

/* Over HTTP: both have had an answer, and with one body. */
bool bench_peer_agrees(const struct bench_peer *peer,
		       const struct bench_peer *other);

/* Begin the next request: bench_peer_push() sends it. */
void bench_peer_ask(struct bench_peer *peer, uint64_t now);

/* Send what is left of the request; NULL, or what is wrong. */
const char *bench_peer_push(struct bench_peer *peer);

/* Receive; *done: this was the answer's end. NULL, or what is wrong. */
const char *bench_peer_pull(struct bench_peer *peer, bool *done);

#endif /* FLEXSC_BENCH_PEER_H */
