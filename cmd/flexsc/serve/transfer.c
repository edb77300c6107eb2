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

#include "connection.h"
#include "worker.h"

/* What is left of a file that is worth a sendfile(). */
#define LARGE		TRANSFER_FIRST

/* The client has so long to take something of what was posted. */
static void sending(struct connection *c, int rc)
{
	struct exchange *x = &c->exchange;

	x->stage = EXCHANGE_SEND;
	if (connection_posted(c, OP_SEND, rc))
		flexsc_loop_deadline(c->worker->loop, &x->send,
				     c->worker->settings->timeout);
}

static void send_out(struct connection *c)
{
	struct exchange *x = &c->exchange;
	int flags = MSG_NOSIGNAL | MSG_WAITALL | (x->left ? MSG_MORE : 0);

	sending(c, flexsc_loop_sendto(c->worker->loop, &x->send, c->fd,
				      (void *)x->out, x->out_left, flags, NULL,
				      0));
}

/* Have the rest of the file sent. */
static void send_rest(struct connection *c)
{
	struct exchange *x = &c->exchange;

	x->by_kernel = true;
	x->place = x->offset;
	sending(c, flexsc_loop_sendfile(c->worker->loop, &x->send, c->fd,
					x->file->fd, &x->place, x->left));
	connection_read_ahead(c);
}

void transfer_last(struct connection *c, const char *out, size_t head,
		   size_t length)
{
	struct exchange *x = &c->exchange;

	x->out = out;
	x->out_left = length;
	x->head = head;
	x->left = 0;
	x->want = 0;
	send_out(c);
	exchange_release(c);
	connection_read_ahead(c);
}

/*
 * A descriptor of our own is read in order as far as possible: only pread64()
 * has to know whether it is one that can be sought.
 */
void transfer_load(struct connection *c)
{
	struct exchange *x = &c->exchange;
	uint64_t at = x->offset + x->have;
	char *to = x->chunk + x->have;
	size_t n = x->want - x->have;
	int fd = x->file->fd, rc;

	x->in_order = !x->file->cached && at == x->position;
	if (x->in_order)
		rc = flexsc_loop_read(c->worker->loop, &x->load, fd, to, n);
	else
		rc = flexsc_loop_pread64(c->worker->loop, &x->load, fd, to,
					 n, at);
	connection_posted(c, OP_LOAD, rc);
}

/* Begin with the next chunk, if there is a buffer for it. */
static void load_next(struct connection *c)
{
	struct exchange *x = &c->exchange;
	struct buffer *to = x->buffer;

	if (connection_pending(c, OP_SEND)) {
		if (!x->spare)
			x->spare = pool_spare(&c->worker->pool);
		to = x->spare;
		if (!to)
			return;
	}
	x->chunk = to->body;
	x->have = 0;
	x->want = x->left < BUFFER_BODY ? x->left : BUFFER_BODY;
	x->left -= x->want;
	transfer_load(c);
}

void transfer_chunk(struct connection *c, size_t head)
{
	struct exchange *x = &c->exchange;

	if (x->spare && x->chunk == x->spare->body) {
		struct buffer *sent = x->buffer;

		x->buffer = x->spare;
		x->spare = sent;
	}
	if (x->left == 0) {
		transfer_last(c, x->chunk - head, x->head, head + x->want);
		return;
	}
	x->out = x->chunk - head;
	x->out_left = head + x->want;
	x->offset += x->want;
	x->want = 0;
	send_out(c);
	if (x->left < LARGE)
		load_next(c);
}

void transfer_file(struct connection *c)
{
	struct exchange *x = &c->exchange;
	const char *head = response_file(&x->response, x->chunk, x->file,
					 x->offset, x->want + x->left);

	x->head = x->chunk - head;
	transfer_chunk(c, x->head);
}

void transfer_head(struct connection *c, uint64_t length)
{
	struct exchange *x = &c->exchange;
	char *body = x->buffer->body;
	const char *head = response_file(&x->response, body, x->file, x->offset,
					 length);

	transfer_last(c, head, body - head, body - head);
}

/* All that was to be sent is sent. */
static void sent(struct connection *c)
{
	struct exchange *x = &c->exchange;

	if (connection_pending(c, OP_LOAD))
		return;
	if (x->want) {
		transfer_chunk(c, 0);
	} else if (x->left >= LARGE || (x->by_kernel && x->left)) {
		send_rest(c);
	} else if (x->left) {
		load_next(c);
	} else {
		exchange_fini(c);
		connection_answered(c);
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
	struct connection *c = cb->arg;
	struct exchange *x = &c->exchange;

	c->ops &= ~OP_SEND;
	if (cb->ret > 0) {
		x->sent += cb->ret;
		took(x, cb->ret);
	}
	if (c->state != CONNECTION_CLOSING) {
		if (cb->ret <= 0 && cb->ret != -EINTR)
			connection_drop(c);
		else if (x->out_left)
			send_out(c);
		else
			sent(c);
	}
	connection_settle(c);
}
