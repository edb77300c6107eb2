/* SPDX-License-Identifier: MIT */
/*
 * Runs on the worker's thread.
 *
 * The bits of "pending" are the pending calls. Each callback begins with
 * exchange_completed(), and ends with exchange_settle(), the only function that
 * ends an exchange. So any function that a callback calls may cut the exchange,
 * and its callers needn't check for that.
 */
#include "exchange.h"

#include <stdlib.h>

#include <flexsc/flexsc.h>

#include "directory.h"
#include "http/request.h"

bool exchange_begin(struct exchange *x, const char *head, bool keep_alive)
{
	const struct request *r = x->request;
	struct environment *env = x->env;

	clock_update(&env->clock);
	x->request_head = head;
	x->response = (struct response){
		.clock = &env->clock,
		.keep_alive = keep_alive,
		.head_only = r->method == HTTP_HEAD,
		.minor = r->minor,
	};
	x->retries = 0;
	x->offset = 0;
	x->needed = 0;
	x->have = 0;
	x->left = 0;
	x->sent = 0;
	x->by_kernel = false;
	x->buffer = buffer_get(&env->buffers);
	return x->buffer;
}

void exchange_release(struct exchange *x)
{
	if (x->file && x->file->cached)
		cache_release(&x->env->cache, x->file);
	else if (x->own.fd >= 0)
		flexsc_loop_close(x->env->loop, NULL, x->own.fd);
	x->own.fd = -1;
	x->file = NULL;
}

static void exchange_log(struct exchange *x)
{
	const struct request *r = x->request;
	struct log_line line = {
		.peer = x->peer,
		.minor = r->minor,
		.status = x->response.status,
		.sent = x->sent > x->head ? x->sent - x->head : 0,
	};

	/* The log doesn't quote a request line that is incomplete. */
	if (r->length) {
		line.method = llhttp_method_name(r->method);
		line.target = x->request_head + r->target.at;
		line.target_length = r->target.length;
	}
	log_write(&x->env->log, &x->env->clock, &line);
}

static void exchange_count(const struct exchange *x)
{
	struct counts *counts = &x->env->counts;

	counts_add(&counts->responses[x->response.status / 100 - 1], 1);
	counts_add(&counts->sent, x->sent);
}

void exchange_give_back(struct exchange *x)
{
	struct buffers *buffers = &x->env->buffers;

	if (x->response.status) {
		exchange_count(x);
		if (log_enabled(&x->env->log))
			exchange_log(x);
	}
	x->response.status = 0;
	exchange_release(x);
	directory_destroy(x->directory);
	x->directory = NULL;
	free(x->page);
	x->page = NULL;
	buffer_put(buffers, x->buffer);
	x->buffer = NULL;
}

void exchange_end(struct exchange *x)
{
	exchange_give_back(x);
	x->events->done(x);
}

void exchange_cut(struct exchange *x)
{
	struct flexsc_loop *loop = x->env->loop;

	x->stage = EXCHANGE_CUT;
	if (exchange_pending(x, OP_OPEN))
		flexsc_loop_cancel(loop, &x->open);
	if (exchange_pending(x, OP_STAT))
		flexsc_loop_cancel(loop, &x->stat);
	if (exchange_pending(x, OP_LOAD))
		flexsc_loop_cancel(loop, &x->load);
	if (exchange_pending(x, OP_SEND))
		flexsc_loop_cancel(loop, &x->send);
}
