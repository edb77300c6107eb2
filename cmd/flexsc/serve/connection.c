/* SPDX-License-Identifier: MIT */
/*
 * The life of a connection; runs on its worker's thread.
 *
 *	from		to		when
 *	-		WAITING		it was accepted
 *	WAITING		ANSWERING	a request is complete, breaks the rules
 *					(400 ...), or took too long (408)
 *	WAITING		CLOSING		the client has gone, or was idle for
 *					too long; the worker stops; descriptors
 *					are short
 *	ANSWERING	WAITING		the answer was sent, and the connection
 *					is kept
 *	ANSWERING	LINGERING	it was sent and is the last, but there
 *					are bytes that nobody will read: to
 *					close now would destroy the answer on
 *					its way
 *	ANSWERING	CLOSING		it was sent and is the last; the client
 *					has gone or is stuck
 *	LINGERING	CLOSING		the client has gone, or a limit is
 *					reached
 *	CLOSING		-		no call is pending
 *
 * What is pending, "ops" says. Each callback clears its own bit first, and
 * ends with connection_settle(), which alone frees; so whatever a callback
 * calls may drop the connection without its callers having to know.
 *
 * While the end of an answer is being sent, the next read is pending already,
 * unless there are bytes of another request: those come first. It fills input
 * behind what is there, which nothing else touches, and is looked at when the
 * answer is through.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <arpa/inet.h>

#include <utlist.h>

#include <flexsc/flexsc.h>

#include "connection.h"
#include "worker.h"

/* Don't ask for less than this. */
#define ROOM		512

#define LINGER_TIME	(2 * CLOCK_SECOND)
#define LINGER_BYTES	(4U << 20)

_Static_assert(BUFFER_BODY >= REQUEST_HEAD_MAX + ROOM,
	       "the longest head fits in a big buffer");

static bool rest(const struct connection *c)
{
	return c->parsed < c->end;
}

bool connection_posted(struct connection *c, enum connection_op op, int rc)
{
	if (rc == 0)
		c->ops |= op;
	else
		connection_drop(c);
	return rc == 0;
}

/*
 * Lists
 */

static void to_idle(struct connection *c)
{
	struct worker *w = c->worker;

	if (c->idle)
		return;
	c->idle = true;
	DL_DELETE(w->busy, c);
	DL_APPEND(w->idle, c);
}

static void to_busy(struct connection *c)
{
	struct worker *w = c->worker;

	if (!c->idle)
		return;
	c->idle = false;
	DL_DELETE(w->idle, c); /* NOLINT(clang-analyzer-core.NullDereference) */
	DL_APPEND(w->busy, c);
}

/*
 * Input
 */

/* Nothing in it is needed any more. */
static void rewind_input(struct connection *c)
{
	pool_put(&c->worker->pool, c->big);
	c->big = NULL;
	c->input = c->small;
	c->size = sizeof(c->small);
	c->start = 0;
	c->parsed = 0;
	c->end = 0;
}

/* The head doesn't fit in the small one. */
static bool enlarge_input(struct connection *c)
{
	struct buffer *big = pool_get(&c->worker->pool);

	if (!big)
		return false;
	memcpy(big->body, c->input + c->start, c->end - c->start);
	c->big = big;
	c->input = big->body;
	c->size = sizeof(big->body);
	return true;
}

/* Make room for the rest of the request that begins at start. */
static bool make_room(struct connection *c)
{
	const struct request *r = &c->request;
	size_t length = c->end - c->start;

	if (r->state == REQUEST_IDLE) {
		rewind_input(c);
		return true;
	}
	/* The body so far was counted, and isn't needed. */
	if (r->state == REQUEST_BODY)
		length = r->length;
	if (c->size - c->start - length < ROOM) {
		if (c->start > 0)
			memmove(c->input, c->input + c->start, length);
		else if (c->big || !enlarge_input(c))
			return false;
		c->start = 0;
	}
	c->end = c->start + length;
	c->parsed = c->end;
	return true;
}

/* Ask for more input, until deadline. */
static void receive(struct connection *c, uint64_t deadline)
{
	struct flexsc_loop *loop = c->worker->loop;
	int rc = flexsc_loop_recvfrom(loop, &c->receive, c->fd,
				      c->input + c->end, c->size - c->end, 0,
				      NULL, NULL);

	if (connection_posted(c, OP_RECEIVE, rc))
		flexsc_loop_deadline(loop, &c->receive, deadline);
}

/* What is left of limit since then. */
static uint64_t remaining(uint64_t since, uint64_t limit)
{
	uint64_t spent = clock_ticks() - since;

	return spent < limit ? limit - spent : 1;
}

/* A request has its time as a whole, lest a client sends a byte a minute. */
static void receive_request(struct connection *c)
{
	uint64_t timeout = c->worker->settings->timeout;

	if (c->request.state != REQUEST_IDLE) {
		if (!c->begun)
			c->begun = clock_ticks();
		timeout = remaining(c->begun, timeout);
	}
	receive(c, timeout);
}

static void refuse(struct connection *c, int status)
{
	c->request.keep_alive = false;
	c->request.unread = true;
	c->state = CONNECTION_ANSWERING;
	to_busy(c);
	exchange_refuse(c, status);
}

/* Look for a request in the input. */
static void parse(struct connection *c)
{
	struct request *r = &c->request;
	size_t used;
	int rc = request_parse(r, c->input + c->start, c->parsed - c->start,
			       c->end - c->start, &used);

	c->parsed = c->start + used;
	if (rc >= 400) {
		refuse(c, rc);
	} else if (rc == REQUEST_READY) {
		c->state = CONNECTION_ANSWERING;
		to_busy(c);
		exchange_start(c);
	} else if (c->ended) {
		connection_drop(c);
	} else if (!make_room(c)) {
		refuse(c, c->big ? 431 : 503);
	} else {
		receive_request(c);
	}
}

void connection_read_ahead(struct connection *c)
{
	struct worker *w = c->worker;

	if (c->state != CONNECTION_ANSWERING || w->stopping ||
	    !c->exchange.response.keep_alive || rest(c) || c->big ||
	    c->ended || connection_pending(c, OP_RECEIVE))
		return;
	/* The log alone still wants the head. */
	if (!log_enabled(&w->log))
		rewind_input(c);
	if (c->size - c->end >= ROOM)
		receive(c, w->settings->timeout);
}

/*
 * The end
 */

static void shut_down(struct connection *c)
{
	int rc = flexsc_loop_shutdown(c->worker->loop, &c->shutdown, c->fd,
				      SHUT_WR);

	connection_posted(c, OP_SHUTDOWN, rc);
}

static void linger(struct connection *c)
{
	c->parsed = c->end = c->start = 0;
	if (c->discarded >= LINGER_BYTES)
		connection_drop(c);
	else
		receive(c, remaining(c->begun, LINGER_TIME));
}

/* The answer was the last. */
static void finish(struct connection *c)
{
	if (c->ended || !(c->request.unread || rest(c))) {
		connection_drop(c);
		return;
	}
	c->state = CONNECTION_LINGERING;
	c->begun = clock_ticks();
	shut_down(c);
	if (c->state == CONNECTION_LINGERING && !connection_pending(c, OP_RECEIVE))
		linger(c);
}

void connection_answered(struct connection *c)
{
	bool keep = c->exchange.response.keep_alive && !c->worker->stopping;

	if (!keep) {
		finish(c);
		return;
	}
	request_init(&c->request, &c->worker->settings->limits);
	c->state = CONNECTION_WAITING;
	c->begun = 0;
	c->start = c->parsed;
	if (rest(c)) {
		parse(c);
		return;
	}
	to_idle(c);
	if (connection_pending(c, OP_RECEIVE))
		return;
	if (c->ended) {
		connection_drop(c);
		return;
	}
	rewind_input(c);
	receive_request(c);
}

void connection_drop(struct connection *c)
{
	struct flexsc_loop *loop = c->worker->loop;

	if (c->state == CONNECTION_CLOSING)
		return;
	c->state = CONNECTION_CLOSING;
	to_busy(c);
	if (connection_pending(c, OP_RECEIVE))
		flexsc_loop_cancel(loop, &c->receive);
	exchange_cancel(c);
}

void connection_settle(struct connection *c)
{
	struct worker *w = c->worker;

	if (c->state != CONNECTION_CLOSING || c->ops)
		return;
	exchange_fini(c);
	rewind_input(c);
	flexsc_loop_close(w->loop, NULL, c->fd);
	DL_DELETE(w->busy, c);
	c->next = w->unused;
	w->unused = c;
	worker_left(w);
}

void connection_cut(struct connection *c)
{
	connection_drop(c);
	connection_settle(c);
}

void connection_stop(struct connection *c)
{
	if (c->state == CONNECTION_LINGERING ||
	    (c->state == CONNECTION_WAITING &&
	     c->request.state == REQUEST_IDLE))
		connection_cut(c);
}

/*
 * Callbacks
 */

/* No more input, or none in time. */
static void received_nothing(struct connection *c, int64_t ret)
{
	bool late = ret == -ETIME;

	switch (c->state) {
	case CONNECTION_WAITING:
		if (late && c->request.state != REQUEST_IDLE)
			refuse(c, 408);
		else
			connection_drop(c);
		break;
	case CONNECTION_ANSWERING:
		/* Not late: it wasn't the client's turn. */
		c->ended |= !late;
		break;
	case CONNECTION_LINGERING:
	case CONNECTION_CLOSING:
		connection_drop(c);
		break;
	}
}

static void received(struct connection *c, size_t length)
{
	c->end += length;
	switch (c->state) {
	case CONNECTION_WAITING:
		parse(c);
		break;
	case CONNECTION_LINGERING:
		c->discarded += length;
		linger(c);
		break;
	case CONNECTION_ANSWERING:
	case CONNECTION_CLOSING:
		break;
	}
}

static void on_receive(struct flexsc_cb *cb)
{
	struct connection *c = cb->arg;

	c->ops &= ~OP_RECEIVE;
	if (cb->ret > 0)
		received(c, cb->ret);
	else
		received_nothing(c, cb->ret);
	connection_settle(c);
}

static void on_shutdown(struct flexsc_cb *cb)
{
	struct connection *c = cb->arg;

	c->ops &= ~OP_SHUTDOWN;
	connection_settle(c);
}

/*
 * The beginning
 */

static void set_peer(struct connection *c, const struct sockaddr_storage *peer)
{
	const struct sockaddr_in6 *v6 = (const void *)peer;
	const struct sockaddr_in *v4 = (const void *)peer;
	const void *address = &v4->sin_addr;

	if (peer->ss_family == AF_INET6)
		address = &v6->sin6_addr;
	inet_ntop(peer->ss_family, address, c->peer, sizeof(c->peer));
}

static struct connection *allocate(struct worker *w)
{
	struct connection *c = w->unused;

	if (c) {
		w->unused = c->next;
		return c;
	}
	c = calloc(1, sizeof(*c));
	if (!c)
		return NULL;
	c->worker = w;
	c->receive = (struct flexsc_cb){ .callback = on_receive, .arg = c };
	c->shutdown = (struct flexsc_cb){ .callback = on_shutdown, .arg = c };
	exchange_init(c);
	return c;
}

void connection_start(struct worker *w, int fd,
		      const struct sockaddr_storage *peer, bool refused)
{
	struct connection *c = w->stopping ? NULL : allocate(w);

	if (!c) {
		flexsc_loop_close(w->loop, NULL, fd);
		return;
	}
	c->fd = fd;
	c->state = CONNECTION_WAITING;
	c->ops = 0;
	c->idle = false;
	c->ended = false;
	c->begun = 0;
	c->discarded = 0;
	rewind_input(c);
	if (log_enabled(&w->log))
		set_peer(c, peer);
	request_init(&c->request, &w->settings->limits);
	DL_APPEND(w->busy, c);
	w->connections++;
	if (refused)
		refuse(c, 503);
	else
		receive_request(c);
	connection_settle(c);
}

void connection_free_unused(struct worker *w)
{
	while (w->unused) {
		struct connection *c = w->unused;

		w->unused = c->next;
		free(c);
	}
}
