/* SPDX-License-Identifier: MIT */
/* Runs on the worker's thread. */
#include "message.h"

#include <errno.h>

#include "exchange.h"
#include "transfer.h"

/* Bytes of the longest query that a redirection keeps. */
#define QUERY_MAX	16384

_Static_assert(BUFFER_HEAD >= RESPONSE_HEAD_MAX, "a head fits");
_Static_assert(BUFFER_BODY / 2 >= RESPONSE_MESSAGE_MAX + QUERY_MAX +
	       3 * BUFFER_PATH, "a message with a location fits twice");

void message_send_with(struct exchange *x, int status,
		       const struct response_detail *detail)
{
	char *p = x->buffer->body;
	size_t length;

	x->response.status = status;
	length = response_message(&x->response, p, detail) - p;
	transfer_last(x, p, length, length);
}

void message_send(struct exchange *x, int status)
{
	message_send_with(x, status, NULL);
}

void message_send_busy(struct exchange *x)
{
	size_t length;
	const char *text = response_busy(&length);

	x->response.keep_alive = false;
	x->response.status = 503;
	transfer_last(x, text, length, length);
}

void message_send_error(struct exchange *x, int error)
{
	switch (error) {
	case ENOENT:
	case ENOTDIR:
	case ENAMETOOLONG:
		message_send(x, 404);
		break;
	case EACCES:
	case EPERM:
	case EXDEV:
	case ELOOP:
	case ENXIO:
	case ENODEV:
		message_send(x, 403);
		break;
	case EMFILE:
	case ENFILE:
		x->events->short_of_fds(x);
		/* fall through */
	case EAGAIN:
	case ECANCELED:
	case EINTR:
	case ENOBUFS:
	case ENOMEM:
	case ETIME:
		message_send(x, 503);
		break;
	default:
		message_send(x, 500);
	}
}

void message_redirect(struct exchange *x)
{
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
	message_send_with(x, 301, &detail);
}
