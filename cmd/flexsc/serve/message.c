/* SPDX-License-Identifier: MIT */
/* Runs on the worker's thread. */
#include "message.h"

#include <errno.h>

#include "connection.h"
#include "transfer.h"
#include "worker.h"

/* A redirection forgets a longer query. */
#define QUERY_MAX	16384

_Static_assert(BUFFER_HEAD >= RESPONSE_HEAD_MAX, "a head fits");
_Static_assert(BUFFER_BODY / 2 >= RESPONSE_MESSAGE_MAX + QUERY_MAX +
	       3 * BUFFER_PATH, "a message with a location fits twice");

void message_send_with(struct connection *c, int status,
		       const struct response_detail *detail)
{
	struct exchange *x = &c->exchange;
	char *p = x->buffer->body;
	size_t length;

	x->response.status = status;
	length = response_message(&x->response, p, detail) - p;
	transfer_last(c, p, length, length);
}

void message_send(struct connection *c, int status)
{
	message_send_with(c, status, NULL);
}

void message_send_busy(struct connection *c)
{
	struct exchange *x = &c->exchange;
	size_t length;
	const char *text = response_busy(&length);

	x->response.keep_alive = false;
	x->response.status = 503;
	transfer_last(c, text, length, length);
}

void message_send_error(struct connection *c, int error)
{
	switch (error) {
	case ENOENT:
	case ENOTDIR:
	case ENAMETOOLONG:
		message_send(c, 404);
		break;
	case EACCES:
	case EPERM:
	case EXDEV:
	case ELOOP:
	case ENXIO:
	case ENODEV:
		message_send(c, 403);
		break;
	case EMFILE:
	case ENFILE:
		worker_shed(c->worker);
		/* fall through */
	case EAGAIN:
	case ECANCELED:
	case EINTR:
	case ENOBUFS:
	case ENOMEM:
	case ETIME:
		message_send(c, 503);
		break;
	default:
		message_send(c, 500);
	}
}

void message_redirect(struct connection *c)
{
	struct exchange *x = &c->exchange;
	struct response_detail detail = {
		.location = x->buffer->body + BUFFER_BODY / 2,
	};
	char *p = x->buffer->body + BUFFER_BODY / 2;

	*p++ = '/';
	p = path_encode(p, x->path.name, x->path.length);
	*p++ = '/';
	if (x->path.query_length <= QUERY_MAX)
		p = text_put(p, x->path.query, x->path.query_length);
	detail.location_length = p - detail.location;
	message_send_with(c, 301, &detail);
}
