/* SPDX-License-Identifier: MIT */
/* Runs on the worker's thread. */
#include "message.h"

#include <errno.h>

#include "exchange.h"
#include "transfer.h"

_Static_assert(BUFFER_HEAD >= RESPONSE_HEAD_MAX, "a head fits");
_Static_assert(BUFFER_BODY / 2 >= RESPONSE_MESSAGE_MAX +
	       RESPONSE_LOCATION_MAX(BUFFER_PATH), "a message with a location fits twice");

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
	if (error == EMFILE || error == ENFILE)
		x->events->short_of_fds(x);
	message_send(x, response_status_of(error));
}

void message_redirect(struct exchange *x)
{
	char *location = x->buffer->body + BUFFER_BODY / 2;
	struct response_detail detail = { .location = location };

	detail.location_length =
		response_location(location, &x->path) - location;
	message_send_with(x, 301, &detail);
}
