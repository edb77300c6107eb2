/* SPDX-License-Identifier: MIT */
/* Runs on the worker's thread. */
#include "listing.h"

#include <flexsc/flexsc.h>

#include "connection.h"
#include "directory.h"
#include "message.h"
#include "transfer.h"
#include "worker.h"

static void read_names(struct connection *c)
{
	struct exchange *x = &c->exchange;
	int rc = flexsc_loop_getdents64(c->worker->loop, &x->load, x->own.fd,
					(void *)x->buffer->body, BUFFER_BODY);

	connection_posted(c, OP_LOAD, rc);
}

void listing_start(struct connection *c)
{
	struct exchange *x = &c->exchange;

	x->stage = EXCHANGE_LIST;
	x->directory = directory_create(c->worker->settings->all);
	if (x->directory)
		read_names(c);
	else
		message_send(c, 503);
}

static void send_listing(struct connection *c)
{
	struct exchange *x = &c->exchange;
	const char *head;
	size_t length;

	x->page = directory_page(x->directory, x->path.name, x->path.length,
				 RESPONSE_HEAD_MAX, &length);
	if (!x->page) {
		message_send(c, 503);
		return;
	}
	x->response.status = 200;
	head = response_html(&x->response, x->page + RESPONSE_HEAD_MAX, length);
	x->head = x->page + RESPONSE_HEAD_MAX - head;
	if (x->response.head_only)
		length = 0;
	transfer_last(c, head, x->head, x->head + length);
}

void listing_loaded(struct connection *c, int64_t ret)
{
	struct exchange *x = &c->exchange;

	if (ret < 0)
		message_send_error(c, -ret);
	else if (ret == 0)
		send_listing(c);
	else if (directory_add(x->directory, x->buffer->body, ret))
		read_names(c);
	else
		message_send(c, 503);
}
