/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "peer.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bench/raw/loop.h"

int bench_peer_init(struct bench_peer *peer, struct bench_question *question,
		    uint32_t number)
{
	struct bench_page *echo = &peer->echo;

	*peer = (struct bench_peer){
		.question = question, .number = number,
		.visit = { .fd = -1, .page = &question->page },
	};
	if (question->mode != BENCH_ECHO)
		return 0;
	*echo = (struct bench_page){ .bare = true, .learned = true };
	peer->visit.page = echo;
	echo->body = malloc(question->bytes);
	echo->request = echo->body;
	echo->size = echo->request_size = question->bytes;
	return echo->body ? 0 : -ENOMEM;
}

int bench_peer_connect(struct bench_peer *peer)
{
	const struct bench_question *question = peer->question;

	/*
	 * The next peer, and this peer's next connection, use the next source
	 * address.
	 */
	peer->visit.fd = bench_route_connect(&question->route,
					     peer->number + peer->answers,
					     question->udp, true);
	return peer->visit.fd < 0 ? peer->visit.fd : 0;
}

void bench_peer_close(struct bench_peer *peer)
{
	if (peer->visit.fd >= 0)
		close(peer->visit.fd);
	peer->visit.fd = -1;
}

void bench_peer_fini(struct bench_peer *peer)
{
	bench_peer_close(peer);
	bench_page_fini(&peer->echo);
}

/*
 * Fill the request with bytes that differ from the connection's previous
 * request. With 8 bytes or more they also differ from those of all other
 * connections.
 */
static void fill(struct bench_peer *peer)
{
	uint64_t word = ((uint64_t)peer->number << 40) + peer->answers + 1;

	for (size_t i = 0; i < peer->echo.size; i += sizeof(word)) {
		size_t left = peer->echo.size - i;

		memcpy(peer->echo.body + i, &word,
		       left < sizeof(word) ? left : sizeof(word));
		word = bench_random(&word);
	}
}

const char *bench_peer_ask(struct bench_peer *peer, uint64_t now)
{
	if (peer->echo.body)
		fill(peer);
	bench_visit_ask(&peer->visit, now);
	return bench_visit_send(&peer->visit) ?
		       bench_visit_failure(&peer->visit) : NULL;
}

static const char *end(struct bench_peer *peer)
{
	const char *wrong = bench_visit_failure(&peer->visit);

	peer->answers += !wrong;
	return wrong;
}

const char *bench_peer_go(struct bench_peer *peer, bool *done)
{
	*done = bench_visit_go(&peer->visit);
	return *done ? end(peer) : NULL;
}

const char *bench_peer_wait(struct bench_peer *peer, int ms, const char *late)
{
	return bench_visit_wait(&peer->visit, ms) ? end(peer) : late;
}
