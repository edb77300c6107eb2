/* SPDX-License-Identifier: MIT */
/*
 * One client connection of "bench --raw load": it sends a request, takes the
 * answer however it is cut to pieces, and tells whether it is the right one.
 * It never blocks. The thread that has it runs all of this.
 *
 *	echo	a request is some bytes, different each time; the answer is
 *		the same ones
 *	http	a request is GET /; the answer has to be 200, and its body the
 *		one that the connection's first answer had
 *
 * More than the answer, or anything before it was asked for, is wrong, too.
 */
#ifndef FLEXSC_BENCH_PEER_H
#define FLEXSC_BENCH_PEER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define BENCH_PEER_BODY_MIN	16384	/* bytes of a body that always fit */
#define BENCH_PEER_HEAD_MAX	4096

struct bench_peer {
	int fd;
	bool http;
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
 * Connect to a port of this host. 0, or a negative errno code, after which
 * bench_peer_fini() is due, too.
 */
int bench_peer_init(struct bench_peer *peer, uint16_t port, uint32_t number,
		    bool http, size_t bytes);
void bench_peer_fini(struct bench_peer *peer);

/* Begin the next request: bench_peer_push() sends it. */
void bench_peer_ask(struct bench_peer *peer, uint64_t now);

/* Send what is left of the request; NULL, or what is wrong. */
const char *bench_peer_push(struct bench_peer *peer);

/* Receive; *done: this was the answer's end. NULL, or what is wrong. */
const char *bench_peer_pull(struct bench_peer *peer, bool *done);

#endif /* FLEXSC_BENCH_PEER_H */
