/* SPDX-License-Identifier: MIT */
/*
 * Runs on the worker's thread.
 *
 * A file of one part is loaded, then sent. One of some more is loaded into one
 * buffer while the other is sent; whichever of the two ends last goes on with
 * the next chunk. Of a large one, the kernel sends all but the first chunk by
 * itself: that copies nothing, but takes a syscall thread to start it.
 */
#include "transfer.h"

#include <errno.h>

#include <sys/socket.h>

#include <flexsc/flexsc.h>

#include "exchange.h"

/* Bytes of a file that are worth a sendfile(). */
#define LARGE		TRANSFER_FIRST

/* A send is posted; the client has so long to take something of it. */
static void sending(struct exchange *x, int rc)
{
	x->stage = EXCHANGE_SEND;
	if (exchange_posted(x, OP_SEND, rc))
		flexsc_loop_deadline(x->env->loop, &x->send,
				     x->env->settings->timeout);
}

static void send_out(struct exchange *x)
{
	int flags = MSG_NOSIGNAL | MSG_WAITALL | (x->left ? MSG_MORE : 0);

	sending(x, flexsc_loop_sendto(x->env->loop, &x->send, x->socket,
				      (void *)x->out, x->out_left, flags, NULL,
				      0));
}

/* Have the rest of the file sent. */
static void send_rest(struct exchange *x)
{
	x->by_kernel = true;
	x->place = x->offset;
	sending(x, flexsc_loop_sendfile(x->env->loop, &x->send, x->socket,
					x->file->fd, &x->place, x->left));
	x->events->ending(x);
}

void transfer_last(struct exchange *x, const char *out, size_t head,
		   size_t length)
{
	x->out = out;
	x->out_left = length;
	x->head = head;
	x->left = 0;
	x->needed = 0;
	send_out(x);
	exchange_release(x);
	x->events->ending(x);
}

void transfer_load(struct exchange *x)
{
	uint64_t at = x->offset + x->have;
	char *to = x->chunk + x->have;
	size_t n = x->needed - x->have;

	exchange_posted(x, OP_LOAD,
			flexsc_loop_pread64(x->env->loop, &x->load,
					    x->file->fd, to, n, at));
}

/* Begin with the next chunk, if there is a buffer for it. */
static void load_next(struct exchange *x)
{
	struct buffer *to = x->buffer;

	if (exchange_pending(x, OP_SEND)) {
		if (!x->spare)
			x->spare = buffer_spare(&x->env->buffers);
		to = x->spare;
		if (!to)
			return;
	}
	x->chunk = to->body;
	x->have = 0;
	x->needed = x->left < BUFFER_BODY ? x->left : BUFFER_BODY;
	x->left -= x->needed;
	transfer_load(x);
}

void transfer_chunk(struct exchange *x, size_t head)
{
	if (x->spare && x->chunk == x->spare->body) {
		struct buffer *sent = x->buffer;

		x->buffer = x->spare;
		x->spare = sent;
	}
	if (x->left == 0) {
		transfer_last(x, x->chunk - head, x->head, head + x->needed);
		return;
	}
	x->out = x->chunk - head;
	x->out_left = head + x->needed;
	x->offset += x->needed;
	x->needed = 0;
	send_out(x);
	if (x->left < LARGE)
		load_next(x);
}

void transfer_file(struct exchange *x)
{
	const char *head = response_file(&x->response, x->chunk, x->file,
					 x->offset, x->needed + x->left);

	x->head = x->chunk - head;
	transfer_chunk(x, x->head);
}

void transfer_head(struct exchange *x, uint64_t length)
{
	char *body = x->buffer->body;
	const char *head = response_file(&x->response, body, x->file, x->offset,
					 length);

	transfer_last(x, head, body - head, body - head);
}

/* All of the answer is sent. */
static void sent(struct exchange *x)
{
	if (exchange_pending(x, OP_LOAD))
		return;
	if (x->needed) {
		transfer_chunk(x, 0);
	} else if (x->left >= LARGE || (x->by_kernel && x->left)) {
		send_rest(x);
	} else if (x->left) {
		load_next(x);
	} else {
		x->stage = EXCHANGE_SENT;
	}
}

static void took(struct exchange *x, uint64_t n)
{
	if (x->by_kernel) {
		x->offset += n;
		x->left -= n;
	} else {
		x->out += n;
		x->out_left -= n;
	}
}

void transfer_on_send(struct flexsc_cb *cb)
{
	struct exchange *x = cb->arg;
	bool going = exchange_completed(x, OP_SEND);

	if (cb->ret > 0) {
		x->sent += cb->ret;
		took(x, cb->ret);
	}
	if (going) {
		if (cb->ret <= 0 && cb->ret != -EINTR)
			exchange_cut(x);
		else if (x->out_left)
			send_out(x);
		else
			sent(x);
	}
	exchange_settle(x);
}
