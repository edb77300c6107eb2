/* SPDX-License-Identifier: MIT */
/*
 * A peer: one client connection of "bench --raw load" or "rounds", which sends
 * the same request again and again. Unexpected bytes are an error. Only
 * bench_peer_connect() and bench_peer_wait() block. One thread at a time uses a
 * peer.
 */
#ifndef FLEXSC_BENCH_PEER_H
#define FLEXSC_BENCH_PEER_H

#include <stdbool.h>
#include <stdint.h>

#include "question.h"
#include "visit.h"

struct bench_peer {
	struct bench_visit visit;
	const struct bench_question *question;
	struct bench_page echo;	/* the expected answer of an echo */
	bool over;		/* load: the last answer has come */
	uint32_t number;	/* index among all connections */
	uint64_t answers;	/* number of correct answers */
};

/*
 * Returns 0 or a negative errno code; bench_peer_fini() must be called in both
 * cases. The question must outlive the peer.
 */
int bench_peer_init(struct bench_peer *peer, struct bench_question *question,
		    uint32_t number);
void bench_peer_fini(struct bench_peer *peer);

/* Connect to the question's server. Returns 0 or a negative errno code. */
int bench_peer_connect(struct bench_peer *peer);
void bench_peer_close(struct bench_peer *peer);

/*
 * Begin the next request, and send what can be sent. Returns NULL or an error
 * message.
 */
const char *bench_peer_ask(struct bench_peer *peer, uint64_t now);

/* Continue. *done: the answer is complete. Returns NULL or an error message. */
const char *bench_peer_go(struct bench_peer *peer, bool *done);

/*
 * Wait for the answer, for ms milliseconds at most. Returns NULL, an error
 * message, or the message in "late" if the time is over.
 */
const char *bench_peer_wait(struct bench_peer *peer, int ms, const char *late);

#endif /* FLEXSC_BENCH_PEER_H */
