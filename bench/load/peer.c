/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "peer.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include "head.h"
#include "bench/raw/loop.h"

#define CONNECT_S	2

static const char get[] =
"GET / HTTP/1.1\r\n"
"Host: localhost\r\n"
"\r\n";

static int connect_to(const struct bench_question *question, uint64_t turn)
{
	const struct bench_route *route = &question->route;
	struct timeval limit = { .tv_sec = CONNECT_S };
	int type = (question->udp ? SOCK_DGRAM : SOCK_STREAM) | SOCK_CLOEXEC;
	int fd = socket(AF_INET, type, 0), one = 1, err;

	if (fd < 0)
		return -errno;
	setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit));
	if (!question->udp)
		setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	err = bench_route_bind(route, fd, turn);
	if (!err && !connect(fd, (const struct sockaddr *)&route->server,
			     sizeof(route->server)) &&
	    !fcntl(fd, F_SETFL, O_NONBLOCK))
		return fd;
	err = err ?: -errno;
	close(fd);
	return err == -EINPROGRESS ? -ETIMEDOUT : err;
}

/* Bytes of the longest body that is right. */
static size_t body_max(size_t bytes)
{
	return bytes > BENCH_PEER_BODY_MIN ? bytes : BENCH_PEER_BODY_MIN;
}

static size_t request_size(const struct bench_question *question)
{
	switch (question->mode) {
	case BENCH_HTTP:
		return sizeof(get) - 1;
	case BENCH_EXACT:
		return question->request.size;
	default:
		return question->bytes;
	}
}

/* Bytes for an answer and one more, to see what wasn't asked for. */
static size_t room(const struct bench_question *question)
{
	switch (question->mode) {
	case BENCH_HTTP:
		return BENCH_PEER_HEAD_MAX + body_max(question->bytes);
	case BENCH_EXACT:
		return question->answer.size + 1;
	default:
		return question->bytes + 1;
	}
}

int bench_peer_init(struct bench_peer *peer,
		    const struct bench_question *question, uint32_t number)
{
	*peer = (struct bench_peer){
		.question = question, .fd = -1, .number = number,
		.request_size = request_size(question),
		.room = room(question),
	};
	peer->request = malloc(peer->request_size);
	peer->answer = malloc(peer->room);
	if (!peer->request || !peer->answer)
		return -ENOMEM;
	if (question->mode == BENCH_HTTP)
		memcpy(peer->request, get, peer->request_size);
	if (question->mode == BENCH_EXACT)
		memcpy(peer->request, question->request.data,
		       peer->request_size);
	return 0;
}

int bench_peer_connect(struct bench_peer *peer)
{
	/* By turns: addresses of a peer's connections, and of all peers'. */
	peer->fd = connect_to(peer->question, peer->number + peer->answers);
	return peer->fd < 0 ? peer->fd : 0;
}

void bench_peer_close(struct bench_peer *peer)
{
	if (peer->fd >= 0)
		close(peer->fd);
	peer->fd = -1;
}

void bench_peer_fini(struct bench_peer *peer)
{
	bench_peer_close(peer);
	free(peer->request);
	free(peer->answer);
	free(peer->body);
}

/*
 * Fill the request with bytes that differ from those of the connection's last
 * one, and, if there are 8 or more, from those of all other connections.
 */
static void fill(struct bench_peer *peer)
{
	uint64_t word = ((uint64_t)peer->number << 40) + peer->answers + 1;

	for (size_t i = 0; i < peer->request_size; i += sizeof(word)) {
		size_t left = peer->request_size - i;

		memcpy(peer->request + i, &word,
		       left < sizeof(word) ? left : sizeof(word));
		word = bench_random(&word);
	}
}

bool bench_peer_agrees(const struct bench_peer *peer,
		       const struct bench_peer *other)
{
	return peer->body_size == other->body_size &&
	       (!peer->body_size ||
		memcmp(peer->body, other->body, peer->body_size) == 0);
}

void bench_peer_ask(struct bench_peer *peer, uint64_t now)
{
	if (peer->question->mode == BENCH_ECHO)
		fill(peer);
	peer->sent_at = now;
	peer->sent = peer->got = peer->head_size = 0;
}

const char *bench_peer_push(struct bench_peer *peer)
{
	while (peer->sent < peer->request_size) {
		ssize_t n = send(peer->fd, peer->request + peer->sent,
				 peer->request_size - peer->sent, MSG_NOSIGNAL);

		if (n < 0)
			return errno == EAGAIN ? NULL : strerror(errno);
		peer->sent += (size_t)n;
	}
	return NULL;
}

/* Look at an answer's head, which is complete. NULL, or what is wrong. */
static const char *read_head(struct bench_peer *peer)
{
	long n = bench_head_length(peer->answer, peer->head_size);

	if (!bench_head_is_right(peer->answer, peer->head_size))
		return "the answer isn't HTTP/1.1 200";
	if (n < 0 ||
	    (size_t)n > peer->room - BENCH_PEER_HEAD_MAX)
		return "the answer has no Content-Length, or a large one";
	if (peer->body && (size_t)n != peer->body_size)
		return "the answer's length isn't the first one's";
	peer->body_size = (size_t)n;
	return NULL;
}

static const char *check_body(struct bench_peer *peer)
{
	const char *body = peer->answer + peer->head_size;

	if (!peer->body) {
		peer->body = malloc(peer->body_size + 1);
		if (!peer->body)
			return strerror(ENOMEM);
		memcpy(peer->body, body, peer->body_size);
	}
	return memcmp(body, peer->body, peer->body_size) != 0 ?
		       "the answer isn't what it was at first" : NULL;
}

static const char *check_http(struct bench_peer *peer, bool *done)
{
	const char *wrong;

	if (!peer->head_size) {
		size_t seen = peer->got < BENCH_PEER_HEAD_MAX ?
				      peer->got : BENCH_PEER_HEAD_MAX;

		peer->head_size = bench_head_size(peer->answer, seen);
		if (!peer->head_size)
			return seen < BENCH_PEER_HEAD_MAX ? NULL :
			       "the answer's head doesn't end";
		wrong = read_head(peer);
		if (wrong)
			return wrong;
	}
	if (peer->got < peer->head_size + peer->body_size)
		return NULL;
	*done = true;
	return peer->got > peer->head_size + peer->body_size ?
		       "more came than was asked for" : check_body(peer);
}

static const char *check_exact(struct bench_peer *peer, bool *done)
{
	const struct bench_bytes *answer = &peer->question->answer;

	if (peer->got > answer->size)
		return "more came than was asked for";
	*done = peer->got == answer->size;
	return memcmp(peer->answer, answer->data, peer->got) != 0 ?
		       "the answer isn't the one given" : NULL;
}

static const char *check_echo(struct bench_peer *peer, bool *done)
{
	if (peer->got > peer->sent)
		return "more came than was asked for";
	*done = peer->got == peer->request_size;
	return *done && memcmp(peer->answer, peer->request, peer->got) != 0 ?
		       "what came back isn't what was sent" : NULL;
}

static const char *check(struct bench_peer *peer, bool *done)
{
	switch (peer->question->mode) {
	case BENCH_HTTP:
		return check_http(peer, done);
	case BENCH_EXACT:
		return check_exact(peer, done);
	default:
		return check_echo(peer, done);
	}
}

const char *bench_peer_pull(struct bench_peer *peer, bool *done)
{
	const char *wrong;
	ssize_t n = recv(peer->fd, peer->answer + peer->got,
			 peer->room - peer->got, 0);

	*done = false;
	if (n < 0)
		return errno == EAGAIN ? NULL : strerror(errno);
	if (!n)
		return "the server closed it";
	peer->got += (size_t)n;
	wrong = check(peer, done);
	peer->answers += *done && !wrong;
	return wrong;
}
