/* SPDX-License-Identifier: MIT */
/*
 * The states of a connection, the call of each, and where the call's result
 * leads; calls.c has the calls.
 *
 *	READING		recvfrom	OPENING, when a request is complete;
 *					SENDING, with a message (404 ...);
 *					CLOSING, when the client is gone
 *	OPENING		openat2		LOOKING; SENDING, with a message;
 *					OPENING, if the tree has changed
 *	LOOKING		statx		LOADING; SENDING, with a head alone
 *					(HEAD, 304) or a message
 *	LOADING		pread64		SENDING, when the first part is
 *					complete, or with a message
 *	SENDING		sendto		PASSING, if more is left;
 *					DROPPING, READING, SHUTTING or CLOSING,
 *					when all is sent or the client is gone
 *	PASSING		sendfile	as SENDING, when all is sent
 *	DROPPING	close		READING, SHUTTING or CLOSING
 *	SHUTTING	shutdown	LINGERING
 *	LINGERING	recvfrom	CLOSING, when the client is gone, or has
 *					lingered for long: to close while bytes
 *					are unread would destroy the answer on
 *					its way
 *	CLOSING		close		OVER
 *
 * An answer whose connection is kept leads to READING, or, if the input has
 * another request already, to where READING leads.
 */
#include "web.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#define ROOM		512U	/* smallest room for a receive, in bytes */
#define TRIES		8U	/* attempts of openat2(), which returns EAGAIN if
				 * the tree changes */
#define LINGER_BYTES	(4U << 20)	/* most bytes that LINGERING receives */

_Static_assert(WEB_BODY / 2 >= RESPONSE_MESSAGE_MAX +
	       RESPONSE_LOCATION_MAX(WEB_NAME), "a message with a location fits twice");

/* The input. */

static bool rest(const struct web_connection *c)
{
	return c->parsed < c->end;
}

static void rewind_input(struct web_connection *c)
{
	c->start = c->parsed = c->end = 0;
}

/* Make room for the rest of the request that begins at start. */
static bool make_room(struct web_connection *c)
{
	const struct request *r = &c->request;
	size_t length = c->end - c->start;

	if (r->state == REQUEST_IDLE) {
		rewind_input(c);
		return true;
	}
	/* The body received so far was counted, and isn't needed. */
	if (r->state == REQUEST_BODY)
		length = r->length;
	if (sizeof(c->input) - c->start - length < ROOM) {
		memmove(c->input, c->input + c->start, length);
		c->start = 0;
	}
	c->parsed = c->end = c->start + length;
	return sizeof(c->input) - c->end >= ROOM;
}

/* The answer. */

static void send_bytes(struct web_connection *c, const char *out, size_t length)
{
	c->out = out;
	c->out_left = length;
	c->state = WEB_SENDING;
}

/* The answer's date comes from the clock of the thread that writes the head. */
static struct response *dated(struct web_connection *c)
{
	clock_update(&c->thread->clock);
	c->response.clock = &c->thread->clock;
	return &c->response;
}

static void answer_message(struct web_connection *c, int status,
			   const struct response_detail *detail)
{
	const char *end;

	c->response.status = status;
	c->left = 0;
	end = response_message(dated(c), c->body, detail);
	send_bytes(c, c->body, (size_t)(end - c->body));
}

static void answer_redirect(struct web_connection *c)
{
	char *location = c->body + WEB_BODY / 2;
	struct response_detail detail = { .location = location };

	detail.location_length =
		(size_t)(response_location(location, &c->path) - location);
	answer_message(c, 301, &detail);
}

/*
 * Send the head of an answer of "length" bytes, and the part that was loaded.
 */
static void answer_head(struct web_connection *c, uint64_t length)
{
	char *end = c->head + sizeof(c->head);
	const char *head = response_file(dated(c), end, &c->own, c->offset,
					 length);

	_Static_assert(offsetof(struct web_connection, body) ==
		       offsetof(struct web_connection, head) +
		       RESPONSE_HEAD_MAX, "the body follows the head");
	send_bytes(c, head, (size_t)(end - head) + c->have);
	c->offset += c->have;
}

static void answer_file(struct web_connection *c)
{
	uint64_t length = 0;

	clock_update(&c->thread->clock);
	c->response.status = condition_decide(&c->request,
					      c->input + c->start, &c->own,
					      &c->thread->clock, &c->offset,
					      &length);
	c->have = 0;
	if (c->response.status == 416) {
		answer_message(c, 416, &(struct response_detail){
				       .size = c->own.size });
	} else if (c->response.status == 412) {
		answer_message(c, 412, NULL);
	} else if (c->response.head_only || !length) {
		answer_head(c, length);
	} else {
		c->needed = length < WEB_FIRST ? length : WEB_FIRST;
		c->left = length - c->needed;
		c->state = WEB_LOADING;
	}
}

static void refuse(struct web_connection *c, int status)
{
	c->request.keep_alive = false;
	c->request.unread = true;
	c->response.keep_alive = false;
	answer_message(c, status, NULL);
}

static void find(struct web_connection *c)
{
	const struct request *r = &c->request;
	int status;

	if (r->method != HTTP_GET && r->method != HTTP_HEAD) {
		answer_message(c, 405, NULL);
		return;
	}
	status = path_resolve(&c->path, c->input + c->start + r->target.at,
			      r->target.length, c->name, sizeof(c->name),
			      false);
	if (status) {
		answer_message(c, status, NULL);
		return;
	}
	if (c->path.directory)
		path_push_index(&c->path);
	c->state = WEB_OPENING;
}

/*
 * Answer a complete request. If "status" isn't 0, refuse the request with it.
 */
static void begin_answer(struct web_connection *c, int status)
{
	const struct request *r = &c->request;

	web_count(&c->thread->counts.requests);
	c->response = (struct response){
		.keep_alive = r->keep_alive,
		.head_only = r->method == HTTP_HEAD,
		.minor = r->minor,
	};
	c->tries = 0;
	c->left = 0;
	if (status)
		refuse(c, status);
	else
		find(c);
}

/*
 * The time limit applies to the whole request. Otherwise a client could keep its
 * connection by sending a byte a minute.
 */
static bool is_late(struct web_connection *c)
{
	if (c->request.state == REQUEST_IDLE)
		return false;
	if (!c->begun)
		c->begun = clock_ticks();
	return clock_ticks() - c->begun >= c->web->timeout;
}

/* Parse a request from the input. */
static void parse(struct web_connection *c)
{
	size_t used;
	int rc = request_parse(&c->request, c->input + c->start,
			       c->parsed - c->start, c->end - c->start, &used);

	c->parsed = c->start + used;
	if (rc >= 400)
		begin_answer(c, rc);
	else if (rc == REQUEST_READY)
		begin_answer(c, 0);
	else if (!make_room(c))
		begin_answer(c, 431);
	else if (is_late(c))
		begin_answer(c, 408);
	else
		c->state = WEB_READING;
}

/* The end of an answer. */

static void next_request(struct web_connection *c)
{
	if (!c->response.keep_alive) {
		c->state = !c->ended && (c->request.unread || rest(c)) ?
				   WEB_SHUTTING : WEB_CLOSING;
		return;
	}
	request_init(&c->request, &c->web->limits);
	c->begun = 0;
	c->start = c->parsed;
	if (rest(c)) {
		parse(c);
		return;
	}
	rewind_input(c);
	c->state = WEB_READING;
}

static void answered(struct web_connection *c)
{
	if (c->own.fd >= 0)
		c->state = WEB_DROPPING;
	else
		next_request(c);
}

/* End an answer early; the client notices by the connection's end. */
static void cut(struct web_connection *c)
{
	c->response.keep_alive = false;
	c->ended = true;
	answered(c);
}

/* Handle the end of sending a part. */
static void sent(struct web_connection *c)
{
	if (!c->left)
		answered(c);
	else
		c->state = WEB_PASSING;
}

/* Results. */

static void received(struct web_connection *c, int64_t ret)
{
	if (ret > 0) {
		c->end += (size_t)ret;
		parse(c);
	} else if (ret == -ETIME && c->request.state != REQUEST_IDLE) {
		begin_answer(c, 408);
	} else {
		c->state = WEB_CLOSING;
	}
}

static void opened(struct web_connection *c, int64_t ret)
{
	if (ret >= 0) {
		c->own.fd = (int)ret;
		c->state = WEB_LOOKING;
	} else if (ret != -EAGAIN || ++c->tries == TRIES) {
		answer_message(c, response_status_of((int)-ret), NULL);
	}
}

static void looked(struct web_connection *c, int64_t ret)
{
	if (ret < 0) {
		answer_message(c, response_status_of((int)-ret), NULL);
	} else if (S_ISDIR(c->stx.stx_mode) && !c->path.directory) {
		answer_redirect(c);
	} else if (S_ISDIR(c->stx.stx_mode)) {
		answer_message(c, 404, NULL);
	} else if (!S_ISREG(c->stx.stx_mode)) {
		answer_message(c, 403, NULL);
	} else {
		file_describe(&c->own, &c->stx,
			      mime_find(c->path.name, c->path.length), NULL);
		answer_file(c);
	}
}

/* If the first part is short, the file was truncated, and the answer ends. */
static void part_loaded(struct web_connection *c)
{
	bool cut_short = c->have < c->needed;

	if (cut_short && c->response.status != 200) {
		answer_message(c, 500, NULL);
		return;
	}
	if (cut_short)
		c->left = 0;
	answer_head(c, c->have + c->left);
}

static void loaded(struct web_connection *c, int64_t ret)
{
	if (ret < 0) {
		answer_message(c, response_status_of((int)-ret), NULL);
		return;
	}
	c->have += (size_t)ret;
	if (!ret || c->have == c->needed)
		part_loaded(c);
}

static void sent_bytes(struct web_connection *c, int64_t ret)
{
	if (ret <= 0) {
		cut(c);
		return;
	}
	c->out += ret;
	c->out_left -= (size_t)ret;
	if (!c->out_left)
		sent(c);
}

static void passed(struct web_connection *c, int64_t ret)
{
	if (ret <= 0) {
		cut(c);
		return;
	}
	c->offset += (uint64_t)ret;
	c->left -= (uint64_t)ret;
	if (!c->left)
		answered(c);
}

static void dropped(struct web_connection *c)
{
	c->own.fd = -1;
	next_request(c);
}

static void shut_down(struct web_connection *c)
{
	c->begun = clock_ticks();
	c->state = WEB_LINGERING;
}

static void lingered(struct web_connection *c, int64_t ret)
{
	if (ret > 0)
		c->discarded += (uint64_t)ret;
	if (ret <= 0 || c->discarded >= LINGER_BYTES ||
	    clock_ticks() - c->begun >= WEB_LINGER)
		c->state = WEB_CLOSING;
}

void web_done(struct web_connection *c, int64_t ret)
{
	web_count(&c->thread->counts.calls[web_kind_of(c)]);
	/* close() closes the descriptor even if it returns EINTR. */
	if (ret == -EINTR && web_kind_of(c) != WEB_CLOSE)
		return;
	switch (c->state) {
	case WEB_READING:
		received(c, ret);
		break;
	case WEB_OPENING:
		opened(c, ret);
		break;
	case WEB_LOOKING:
		looked(c, ret);
		break;
	case WEB_LOADING:
		loaded(c, ret);
		break;
	case WEB_SENDING:
		sent_bytes(c, ret);
		break;
	case WEB_PASSING:
		passed(c, ret);
		break;
	case WEB_DROPPING:
		dropped(c);
		break;
	case WEB_SHUTTING:
		shut_down(c);
		break;
	case WEB_LINGERING:
		lingered(c, ret);
		break;
	case WEB_CLOSING:
		c->state = WEB_OVER;
		break;
	case WEB_OVER:
		break;
	}
}

void web_begin(struct web_connection *c, struct web *web,
	       struct web_thread *thread, int fd)
{
	c->web = web;
	c->thread = thread;
	c->fd = fd;
	c->state = WEB_READING;
	c->ended = false;
	c->begun = 0;
	c->discarded = 0;
	c->own = (struct file){ .fd = -1 };
	/* The memory may contain an earlier connection's response. */
	c->response.keep_alive = false;
	rewind_input(c);
	request_init(&c->request, &web->limits);
	web_count(&thread->counts.connections);
}
