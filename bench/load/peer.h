/* SPDX-License-Identifier: MIT */
/*
 * A peer: one client connection of "bench --raw load" or "rounds". It sends a
 * request, takes the answer however that is cut to pieces, and tells whether
 * the answer is right. Bytes that weren't asked for are wrong, too. Only
 * connecting waits, for two seconds at most. One thread at a time uses a peer.
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
	bool over;		/* load: the last answer has come */
	uint64_t counted;	/* load: answers that are measured */
	uint32_t number;	/* among all connections */
	uint64_t answers;	/* right ones */
	uint64_t sent_at;	/* bench_peer_ask()'s "now" */
	size_t request_size;
	size_t sent;		/* bytes of the request that are sent */
	size_t got;		/* bytes of the answer that have come */
	size_t room;		/* bytes at "answer" */
	size_t head_size;	/* with the empty line; 0: hasn't come */
	size_t body_size;
	char *request;
	char *answer;
	char *body;		/* the first answer's; NULL: none has come */
};

/*
 * 0, or a negative errno code. bench_peer_fini() is due in both cases. The
 * question has to outlive the peer.
 */
int bench_peer_init(struct bench_peer *peer,
		    const struct bench_question *question, uint32_t number);
void bench_peer_fini(struct bench_peer *peer);

/* Connect to the question's server; 0, or a negative errno code. */
int bench_peer_connect(struct bench_peer *peer);
void bench_peer_close(struct bench_peer *peer);

/* Over HTTP: have both peers' first answers one body? Else true. */
bool bench_peer_agrees(const struct bench_peer *peer,
		       const struct bench_peer *other);

/* Make the next request, which bench_peer_push() sends. */
void bench_peer_ask(struct bench_peer *peer, uint64_t now);

/* Send what is left of the request; NULL, or what is wrong. */
const char *bench_peer_push(struct bench_peer *peer);

/* Receive what there is; *done: the answer is whole. NULL, or what is wrong. */
const char *bench_peer_pull(struct bench_peer *peer, bool *done);

#endif /* FLEXSC_BENCH_PEER_H */
