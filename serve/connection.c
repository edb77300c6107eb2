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
 *					or places are short
 *	ANSWERING	WAITING		the answer was sent, and the connection
 *					is kept
 *	ANSWERING	LINGERING	the last answer was sent, but bytes
 *					arrived that will not be read: closing
 *					now would destroy the answer on its way
 *	ANSWERING	CLOSING		the last answer was sent; the client
 *					has gone or is stuck
 *	LINGERING	CLOSING		the client has gone, or a limit is
 *					reached; room or descriptors are short
 *	CLOSING		-		no call is pending
 *
 * The bits of "ops" are the connection's own pending calls; the exchange has
 * others. Each callback first clears its own bit, and last calls
 * connection_settle(), the only function that frees the connection. So any
 * function that a callback calls may drop the connection, and its callers
 * needn't check for that.
 *
 * The next read is posted while the end of an answer is being sent, unless
 * bytes of another request have arrived already: those are parsed first. The
 * read appends to the input, which nothing else touches meanwhile, and its
 * result is parsed when the answer has been sent.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <arpa/inet.h>

#include <utlist.h>

#include <flexsc/flexsc.h>

#include "answer.h"
#include "connection.h"

#define LINGER_TIME	(2 * CLOCK_SECOND)
#define LINGER_BYTES	(4U << 20)

/* A client that has sent nothing yet counts as idle only after this time. */
#define SILENCE		CLOCK_SECOND

/*
 * Lists
 */

static void move(struct connection *c, struct connection **list)
{
	if (c->list == list)
		return;
	DL_DELETE(*c->list, c); /* NOLINT(clang-analyzer-core.NullDereference) */
	DL_APPEND(*list, c);
	c->list = list;
}

static void to_idle(struct connection *c)
{
	c->waits = c->clients->waits++;
	move(c, &c->clients->idle);
}

static void to_busy(struct connection *c)
{
	move(c, &c->clients->busy);
}

/*
 * Count c as refused, so that it doesn't take the place of a client that is
 * served.
 */
static void count_refused(struct connection *c)
{
	if (!c->refused)
		c->clients->refused++;
	c->refused = true;
}

static bool connection_pending(const struct connection *c,
			       enum connection_op op)
{
	return c->ops & op;
}

/* Cancel all pending calls, and close the connection when they are complete. */
static void connection_drop(struct connection *c)
{
	struct flexsc_loop *loop = c->clients->env->loop;

	if (c->state == CONNECTION_CLOSING)
		return;
	c->state = CONNECTION_CLOSING;
	to_busy(c);
	if (connection_pending(c, OP_RECEIVE))
		flexsc_loop_cancel(loop, &c->receive);
	exchange_cut(&c->exchange);
}

/* If rc reports success, mark op as pending; otherwise close the connection. */
static bool connection_posted(struct connection *c, enum connection_op op,
			      int rc)
{
	if (rc == 0)
		c->ops |= op;
	else
		connection_drop(c);
	return rc == 0;
}

/*
 * Requests
 */

static void receive(struct connection *c, uint64_t deadline)
{
	struct flexsc_loop *loop = c->clients->env->loop;
	int rc = flexsc_loop_recvfrom(loop, &c->receive, c->fd,
				      input_end(&c->input),
				      input_room(&c->input), 0, NULL, NULL);

	if (connection_posted(c, OP_RECEIVE, rc))
		flexsc_loop_deadline(loop, &c->receive, deadline);
}

/* Returns how much is left of a time limit that began at "since". */
static uint64_t remaining(uint64_t since, uint64_t limit)
{
	uint64_t spent = clock_ticks() - since;

	return spent < limit ? limit - spent : 1;
}

/*
 * Receive with one deadline for the whole request. With a deadline per receive
 * a client could send a byte a minute and stay for ever.
 */
static void receive_request(struct connection *c)
{
	uint64_t timeout = c->clients->env->settings->timeout;

	if (c->request.state != REQUEST_IDLE) {
		to_busy(c);
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
	if (!answer_refuse(&c->exchange, input_request(&c->input), status))
		connection_drop(c);
}

static void connection_answer(struct connection *c)
{
	bool keep = c->request.keep_alive && !c->clients->stopping;

	if (!answer_request(&c->exchange, input_request(&c->input), keep))
		connection_drop(c);
}

static void parse(struct connection *c)
{
	int rc = input_parse(&c->input, &c->request);

	if (rc >= 400) {
		refuse(c, rc);
	} else if (rc == REQUEST_READY) {
		c->state = CONNECTION_ANSWERING;
		to_busy(c);
		connection_answer(c);
	} else if (c->ended) {
		connection_drop(c);
	} else if (!input_make_room(&c->input, &c->request)) {
		refuse(c, c->input.big ? 431 : 503);
	} else {
		receive_request(c);
	}
}

/* The last part of the answer is being sent: read the next request now. */
static void connection_read_ahead(struct exchange *x)
{
	struct connection *c = x->arg;
	struct clients *all = c->clients;

	if (x->stage != EXCHANGE_SEND || all->stopping ||
	    !x->response.keep_alive || input_rest(&c->input) || c->input.big ||
	    c->ended ||
	    connection_pending(c, OP_RECEIVE))
		return;
	/*
	 * Only the log still needs the head. Without a log, discard the head
	 * now, to have room for the next one.
	 */
	if (!log_enabled(&all->env->log))
		input_rewind(&c->input);
	if (input_room(&c->input) >= INPUT_ROOM)
		receive(c, all->env->settings->timeout);
}

/* End */

static void shut_down(struct connection *c)
{
	struct flexsc_loop *loop = c->clients->env->loop;
	int rc = flexsc_loop_shutdown(loop, &c->shutdown, c->fd, SHUT_WR);

	connection_posted(c, OP_SHUTDOWN, rc);
}

static void linger(struct connection *c)
{
	input_discard(&c->input);
	if (c->discarded >= LINGER_BYTES)
		connection_drop(c);
	else
		receive(c, remaining(c->begun, LINGER_TIME));
}

/* Handle the end of the connection's last answer. */
static void finish(struct connection *c)
{
	if (c->ended || !(c->request.unread || input_rest(&c->input))) {
		connection_drop(c);
		return;
	}
	c->state = CONNECTION_LINGERING;
	c->begun = clock_ticks();
	count_refused(c);
	move(c, &c->clients->lingering);
	shut_down(c);
	if (c->state == CONNECTION_LINGERING && !connection_pending(c, OP_RECEIVE))
		linger(c);
	/*
	 * While c lingers, it still takes a place. If that is the last place,
	 * close the connection that has lingered for the longest time: the
	 * worker may need the place to accept a client.
	 */
	if (!clients_have_room(c->clients, 0))
		clients_make_room(c->clients);
}

/* The exchange's callback: the answer has been sent. */
static void connection_answered(struct connection *c)
{
	bool keep = c->exchange.response.keep_alive && !c->clients->stopping;

	if (!keep) {
		finish(c);
		return;
	}
	request_init(&c->request, &c->clients->env->settings->limits);
	c->state = CONNECTION_WAITING;
	c->begun = 0;
	c->input.start = c->input.parsed;
	if (input_rest(&c->input)) {
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
	input_rewind(&c->input);
	receive_request(c);
}

/* Every callback calls this last; c may have been freed after it. */
static void connection_settle(struct connection *c)
{
	struct clients *all = c->clients;

	if (c->state != CONNECTION_CLOSING || c->ops || c->exchange.pending)
		return;
	input_rewind(&c->input);
	flexsc_loop_close(all->env->loop, NULL, c->fd);
	DL_DELETE(*c->list, c);
	c->next = all->unused;
	all->unused = c;
	all->count--;
	counts_add(&all->env->counts.closed, 1);
	all->refused -= c->refused;
	all->left(all);
}

/*
 * Callbacks
 */

/* Handle a receive without data: end of input, an error, or the deadline. */
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
		/*
		 * At a timeout the client may still be there, and get the
		 * answer.
		 */
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
	c->input.end += length;
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

static void on_done(struct exchange *x)
{
	struct connection *c = x->arg;

	if (x->stage == EXCHANGE_SENT)
		connection_answered(c);
	else
		connection_drop(c);
	connection_settle(c);
}

static void connection_shed(struct exchange *x)
{
	struct connection *c = x->arg;

	clients_shed(c->clients);
}

static const struct exchange_events events = {
	.ending = connection_read_ahead,
	.done = on_done,
	.short_of_fds = connection_shed,
};

static void on_shutdown(struct flexsc_cb *cb)
{
	struct connection *c = cb->arg;

	c->ops &= ~OP_SHUTDOWN;
	connection_settle(c);
}

/* Begin */

static void set_peer(struct connection *c, const struct sockaddr_storage *peer)
{
	const struct sockaddr_in6 *v6 = (const void *)peer;
	const struct sockaddr_in *v4 = (const void *)peer;
	const void *address = &v4->sin_addr;
	int family = peer->ss_family;

	if (family == AF_INET6)
		address = &v6->sin6_addr;
	/* An IPv4 client of a socket that also takes IPv6: ::ffff:192.0.2.1 */
	if (family == AF_INET6 && IN6_IS_ADDR_V4MAPPED(&v6->sin6_addr)) {
		family = AF_INET;
		address = &v6->sin6_addr.s6_addr[12];
	}
	/* A client of a local socket has no address. */
	if (!inet_ntop(family, address, c->peer, sizeof(c->peer)))
		strcpy(c->peer, "-");
}

/*
 * The worker stops, and drops idle connections. A client that has sent nothing
 * yet counts as idle SILENCE after its accept: end its receive then.
 */
static void limit_silence(struct connection *c)
{
	flexsc_loop_deadline(c->clients->env->loop, &c->receive,
			     remaining(c->accepted, SILENCE));
}

static struct connection *allocate(struct clients *all)
{
	struct connection *c = all->unused;

	if (c) {
		all->unused = c->next;
		return c;
	}
	c = calloc(1, sizeof(*c));
	if (!c)
		return NULL;
	c->clients = all;
	c->input.buffers = &all->env->buffers;
	c->receive = (struct flexsc_cb){ .callback = on_receive, .arg = c };
	c->shutdown = (struct flexsc_cb){ .callback = on_shutdown, .arg = c };
	c->exchange = (struct exchange){
		.env = all->env,
		.events = &events,
		.arg = c,
		.request = &c->request,
		.peer = c->peer,
	};
	answer_init(&c->exchange);
	return c;
}

void connection_start(struct clients *all, int fd,
		      const struct sockaddr_storage *peer, bool refused)
{
	struct connection *c = allocate(all);

	if (!c) {
		flexsc_loop_close(all->env->loop, NULL, fd);
		return;
	}
	c->fd = fd;
	c->exchange.socket = fd;
	c->state = CONNECTION_WAITING;
	c->ops = 0;
	c->refused = false;
	c->ended = false;
	c->begun = 0;
	c->accepted = clock_ticks();
	c->discarded = 0;
	input_rewind(&c->input);
	if (log_enabled(&all->env->log))
		set_peer(c, peer);
	request_init(&c->request, &all->env->settings->limits);
	c->waits = all->waits++;
	c->list = &all->fresh;
	DL_APPEND(all->fresh, c);
	all->count++;
	counts_add(&all->env->counts.accepted, 1);
	if (refused) {
		count_refused(c);
		refuse(c, 503);
	} else {
		receive_request(c);
		if (all->stopping)
			limit_silence(c);
	}
	connection_settle(c);
}

/*
 * All connections
 */

static void connection_cut(struct connection *c)
{
	connection_drop(c);
	connection_settle(c);
}

/*
 * The connection that has been idle for the longest time, or NULL. Only the
 * first one of each list is a candidate.
 */
static struct connection *longest_idle(const struct clients *all)
{
	struct connection *fresh = all->fresh, *idle = all->idle;

	if (!fresh || clock_ticks() - fresh->accepted < SILENCE)
		return idle;
	return idle && idle->waits < fresh->waits ? idle : fresh;
}

/*
 * Close the connection that has been idle for the longest time. A request that
 * arrives before its receive is cancelled is still answered. False: no
 * connection is idle.
 */
static bool shed_idle(struct clients *all)
{
	struct connection *c = longest_idle(all);

	if (!c)
		return false;
	to_busy(c);
	if (connection_pending(c, OP_RECEIVE))
		flexsc_loop_cancel(all->env->loop, &c->receive);
	else
		connection_cut(c);
	return true;
}

bool clients_make_place(struct clients *all)
{
	return all->count - all->refused < all->max || shed_idle(all);
}

void clients_make_room(struct clients *all)
{
	if (all->lingering)
		connection_cut(all->lingering);
}

void clients_shed(struct clients *all)
{
	if (all->lingering)
		connection_cut(all->lingering);
	else
		shed_idle(all);
}

static void cut_list(struct connection **list)
{
	struct connection *c, *next;

	DL_FOREACH_SAFE(*list, c, next)
		connection_cut(c);
}

static bool connection_waits(const struct connection *c)
{
	return c->state == CONNECTION_WAITING &&
	       c->request.state == REQUEST_IDLE;
}

void clients_stop(struct clients *all)
{
	struct connection *c, *next;

	all->stopping = true;
	DL_FOREACH(all->fresh, c)
		limit_silence(c);
	cut_list(&all->idle);
	cut_list(&all->lingering);
	DL_FOREACH_SAFE(all->busy, c, next)
		if (connection_waits(c))
			connection_cut(c);
}

void clients_cut(struct clients *all)
{
	cut_list(&all->fresh);
	cut_list(&all->idle);
	cut_list(&all->lingering);
	cut_list(&all->busy);
}

void clients_fini(struct clients *all)
{
	while (all->unused) {
		struct connection *c = all->unused;

		all->unused = c->next;
		free(c);
	}
}
