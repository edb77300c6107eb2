/* SPDX-License-Identifier: MIT */
/*
 * bench/servers/epoll.c, written with libflexsc: one post accepts all connections, one
 * post per connection receives all its data, and the answers of a turn are sent together.
 * One thread.
 *
 * A connection is freed when none of its two calls is pending. While an answer is being
 * sent, received bytes are kept in the service's room; a client that sends more than fits
 * without reading its answers is dropped.
 */
#include <errno.h>
#include <flexsc/default.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "bench/servers/service.h"

#define BUFFERS	256
#define SIZE	(2048 + 64)	/* not all in the same cache sets */

struct peer {
	struct flexsc_cb receive, send;
	int fd;
	bool receiving, sending, over;
	unsigned int number;	/* of its last receive */
	struct buffers c;
};

static struct flexsc_cb accepting;
static struct flexsc_buffers *buffers;
static unsigned int receives;	/* of all connections */

static void end(struct peer *peer)
{
	peer->over = true;
	if (peer->receiving)
		flexsc_cancel(&peer->receive);
}

static void release(struct peer *peer)
{
	if (peer->receiving || peer->sending)
		return;
	flexsc_close(NULL, peer->fd);
	free(peer);
}

/*
 * Send the answer. "alone": no other connection has received since this one's last
 * request, so a plain call is cheaper. Returns false if a send is pending, or if the
 * connection has ended.
 */
static bool flush(struct peer *peer, bool alone)
{
	struct buffers *c = &peer->c;
	ssize_t sent = 0;

	if (alone && !c->last)
		sent = send(peer->fd, c->out + c->begin, c->end - c->begin,
			    MSG_DONTWAIT | MSG_NOSIGNAL);
	if (sent > 0)
		c->begin += (size_t)sent;
	if (c->begin == c->end)
		return true;
	peer->sending = !flexsc_send(&peer->send, peer->fd, c->out + c->begin,
				     c->end - c->begin, MSG_NOSIGNAL | MSG_WAITALL);
	if (!peer->sending)
		end(peer);
	return false;
}

/* Answer n more received bytes, and all that can be answered after that. */
static void answer(struct peer *peer, size_t n, bool alone)
{
	do {
		service.answer(&peer->c, n);
		n = 0;
	} while (peer->c.end && flush(peer, alone));
}

static void sent(struct flexsc_cb *cb)
{
	struct peer *peer = cb->arg;

	peer->sending = false;
	if (cb->ret != (int64_t)(peer->c.end - peer->c.begin) || peer->c.last)
		end(peer);
	else if (!peer->over)
		answer(peer, 0, false);
	release(peer);
}

static void take(struct peer *peer, const char *data, size_t n)
{
	bool alone = ++receives - peer->number == 1;
	size_t size;
	char *to;

	peer->number = receives;
	if (peer->over)
		return;
	to = service.room(&peer->c, &size);
	if (n > size) {
		end(peer);
		return;
	}
	memcpy(to, data, n);
	if (peer->sending)
		peer->c.in.end += n;
	else
		answer(peer, n, alone);
}

static void receive(struct peer *peer);

static void received(struct flexsc_cb *cb)
{
	struct peer *peer = cb->arg;
	char *data = flexsc_buffers_data(buffers, cb);

	peer->receiving = flexsc_cb_more(cb);
	if (data) {
		take(peer, data, (size_t)cb->ret);
		flexsc_buffers_return(buffers, data);
	}
	if (cb->ret <= 0 && cb->ret != -ENOBUFS)
		peer->over = true;
	if (!peer->receiving && !peer->over)
		receive(peer);
	release(peer);
}

static void receive(struct peer *peer)
{
	peer->receiving = !flexsc_recv_multishot(&peer->receive, peer->fd, buffers);
	peer->over = !peer->receiving;
}

static void accepted(struct flexsc_cb *cb)
{
	struct peer *peer = cb->ret < 0 ? NULL : calloc(1, sizeof(*peer));

	if (!peer) {
		fputs("get-flexsc: accepting failed\n", stderr);
		exit(1);
	}
	peer->fd = (int)cb->ret;
	peer->receive = (struct flexsc_cb){ .callback = received, .arg = peer };
	peer->send = (struct flexsc_cb){ .callback = sent, .arg = peer };
	service.begin(&peer->c);
	receive(peer);
	release(peer);
}

int main(int argc, char **argv)
{
	int listener = service_listen("get-flexsc", "127.0.0.1", (uint16_t)
				      (argc > 1 ? atoi(argv[1]) : 0), 4096);

	if (flexsc_init() || flexsc_buffers_create(flexsc_loop_default(), &buffers,
						   BUFFERS, SIZE))
		return 1;
	accepting.callback = accepted;
	if (flexsc_accept_multishot(&accepting, listener, 0))
		return 1;
	return flexsc_main_loop();
}
