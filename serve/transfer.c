/* SPDX-License-Identifier: MIT */
/*
 * Runs on the worker's thread.
 *
 * A small file is loaded, then sent together with its head. Of a larger file
 * only the first part is loaded; the kernel sends the rest without a copy. A
 * small file that the cache keeps isn't loaded again: it is mapped, and sent
 * from the mapping.
 */
#include "transfer.h"

#include <errno.h>

#include <sys/socket.h>

#include <flexsc/flexsc.h>

#include "exchange.h"

/*
 * Called when a send was posted: set its deadline, the time by which the client
 * must make progress.
 */
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
	struct flexsc_loop *loop = x->env->loop;

	if (x->out[1].iov_len) {
		x->message = (struct msghdr){
			.msg_iov = x->out, .msg_iovlen = 2,
		};
		sending(x, flexsc_loop_sendmsg(loop, &x->send, x->socket,
					       &x->message, flags));
		return;
	}
	sending(x, flexsc_loop_sendto(loop, &x->send, x->socket,
				      x->out[0].iov_base, x->out[0].iov_len,
				      flags, NULL, 0));
}

static void send_rest(struct exchange *x)
{
	x->by_kernel = true;
	x->place = x->offset;
	sending(x, flexsc_loop_sendfile(x->env->loop, &x->send, x->socket,
					x->file->fd, &x->place, x->left));
	x->events->ending(x);
}

static void set_out(struct exchange *x, const char *out, size_t head,
		    size_t length)
{
	x->out[0] = (struct iovec){ (void *)out, length };
	x->out[1].iov_len = 0;
	x->head = head;
}

void transfer_last(struct exchange *x, const char *out, size_t head,
		   size_t length)
{
	set_out(x, out, head, length);
	x->left = 0;
	send_out(x);
	exchange_release(x);
	x->events->ending(x);
}

void transfer_load(struct exchange *x)
{
	char *to = x->buffer->body + x->have;

	exchange_posted(x, OP_LOAD,
			flexsc_loop_pread64(x->env->loop, &x->load,
					    x->file->fd, to,
					    x->needed - x->have,
					    x->offset + x->have));
}

void transfer_file(struct exchange *x)
{
	char *body = x->buffer->body;
	const char *out = response_file(&x->response, body, x->file, x->offset,
					x->needed + x->left);
	size_t head = body - out;

	if (!x->left) {
		transfer_last(x, out, head, head + x->needed);
		return;
	}
	set_out(x, out, head, head + x->needed);
	x->offset += x->needed;
	send_out(x);
}

void transfer_mapped(struct exchange *x, uint64_t length)
{
	char *body = x->buffer->body;
	const char *out = response_file(&x->response, body, x->file, x->offset,
					length);

	set_out(x, out, body - out, body - out);
	x->out[1] = (struct iovec){
		(void *)(x->file->contents + x->offset), length,
	};
	send_out(x);
	x->events->ending(x);
}

void transfer_head(struct exchange *x, uint64_t length)
{
	char *body = x->buffer->body;
	const char *head = response_file(&x->response, body, x->file, x->offset,
					 length);

	transfer_last(x, head, body - head, body - head);
}

/* Account for n bytes that the client has taken. */
static void took(struct exchange *x, size_t n)
{
	x->sent += n;
	if (x->by_kernel) {
		x->offset += n;
		x->left -= n;
		return;
	}
	for (; n && n >= x->out[0].iov_len; x->out[1].iov_len = 0) {
		n -= x->out[0].iov_len;
		x->out[0] = x->out[1];
	}
	x->out[0].iov_base = (char *)x->out[0].iov_base + n;
	x->out[0].iov_len -= n;
}

void transfer_on_send(struct flexsc_cb *cb)
{
	struct exchange *x = cb->arg;
	bool going = exchange_completed(x, OP_SEND);

	if (cb->ret > 0)
		took(x, cb->ret);
	if (going) {
		if (cb->ret <= 0 && cb->ret != -EINTR)
			exchange_cut(x);
		else if (x->out[0].iov_len)
			send_out(x);
		else if (x->left)
			send_rest(x);
		else
			x->stage = EXCHANGE_SENT;
	}
	exchange_settle(x);
}
