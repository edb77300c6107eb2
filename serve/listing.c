/* SPDX-License-Identifier: MIT */
/* Runs on the worker's thread. */
#include "listing.h"

#include <flexsc/flexsc.h>

#include "exchange.h"
#include "directory.h"
#include "message.h"
#include "transfer.h"
#include "http/condition.h"

static void read_names(struct exchange *x)
{
	int rc = flexsc_loop_getdents64(x->env->loop, &x->load, x->own.fd,
					(void *)x->buffer->body, BUFFER_BODY);

	exchange_posted(x, OP_LOAD, rc);
}

void listing_start(struct exchange *x)
{
	x->stage = EXCHANGE_LIST;
	x->directory = directory_create(x->env->settings->all);
	if (x->directory)
		read_names(x);
	else
		message_send(x, 503);
}

static void send_listing(struct exchange *x)
{
	int status = condition_check(x->request, x->request_head, NULL);
	const char *head;
	size_t length;

	if (status == 412) {
		message_send(x, 412);
		return;
	}
	x->page = directory_page(x->directory, x->path.name, x->path.length,
				 RESPONSE_HEAD_MAX, &length);
	if (!x->page) {
		message_send(x, 503);
		return;
	}
	x->response.status = status;
	head = response_html(&x->response, x->page + RESPONSE_HEAD_MAX, length);
	x->head = x->page + RESPONSE_HEAD_MAX - head;
	if (x->response.head_only || status == 304)
		length = 0;
	transfer_last(x, head, x->head, x->head + length);
}

void listing_loaded(struct exchange *x, int64_t ret)
{
	if (ret < 0)
		message_send_error(x, -ret);
	else if (ret == 0)
		send_listing(x);
	else if (directory_add(x->directory, x->buffer->body, ret))
		read_names(x);
	else
		message_send(x, 503);
}
