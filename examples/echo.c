/* SPDX-License-Identifier: MIT */
/*
 * An echo server with multishot calls: one post accepts all connections, and
 * one post per connection receives all its data, into buffers that all
 * connections share.
 *
 * 	echo [PORT [one]]	prints the port; "one": a call for each receive
 *
 * The received pieces are sent back in order, one at a time. While a client has
 * QUEUE pieces left to read, the server doesn't receive from it.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <flexsc/default.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#define BUFFERS	1024
#define SIZE	4096
#define QUEUE	16

struct piece {
	struct piece *next;
	char *data;
	size_t size;
};

struct connection {
	struct flexsc_cb receive, send;
	int fd;
	bool receiving, sending, over;	/* over: no more data will come */
	struct piece *first, **end;	/* queue; the first piece is being sent */
	unsigned int count;
	struct piece own;		/* used with "one" */
	char bytes[];
};

static struct flexsc_cb accepting;
static struct flexsc_buffers *buffers;
static bool one;
static int listener;

static void add_piece(struct connection *c, char *data, size_t size)
{
	struct piece *piece = one ? &c->own : malloc(sizeof(*piece));

	if (!piece)
		abort();
	*piece = (struct piece){ .data = data, .size = size };
	*c->end = piece;
	c->end = &piece->next;
	c->count++;
}

static void drop_piece(struct connection *c)
{
	struct piece *piece = c->first;

	c->first = piece->next;
	if (!c->first)
		c->end = &c->first;
	c->count--;
	if (one)
		return;
	flexsc_buffers_return(buffers, piece->data);
	free(piece);
}

static void receive(struct connection *c)
{
	int err = one ? flexsc_recv(&c->receive, c->fd, c->bytes, SIZE, 0) :
			flexsc_recv_multishot(&c->receive, c->fd, buffers);

	c->receiving = !err;
	c->over = err;
}

/*
 * Start every call that can be started. If none is pending then, nothing refers
 * to c, and it is freed.
 */
static void go_on(struct connection *c)
{
	if (c->first && !c->sending)
		c->sending = !flexsc_send(&c->send, c->fd, c->first->data,
					  c->first->size, MSG_NOSIGNAL);
	if (!c->first && !c->receiving && !c->over)
		receive(c);
	if (c->sending || c->receiving)
		return;
	flexsc_close(NULL, c->fd);
	free(c);
}

static void sent(struct flexsc_cb *cb)
{
	struct connection *c = cb->arg;

	c->sending = false;
	drop_piece(c);
	if (cb->ret < 0) {
		c->over = true;
		while (c->first)
			drop_piece(c);
		if (c->receiving)
			flexsc_cancel(&c->receive);
	}
	go_on(c);
}

static void received(struct flexsc_cb *cb)
{
	struct connection *c = cb->arg;

	c->receiving = flexsc_cb_more(cb);
	if (cb->ret > 0)
		add_piece(c, one ? c->bytes : flexsc_buffers_data(buffers, cb),
			  (size_t)cb->ret);
	else if (cb->ret != -ENOBUFS && cb->ret != -ECANCELED)
		c->over = true;
	if (c->receiving && c->count == QUEUE)
		flexsc_cancel(cb);
	go_on(c);
}

static void accepted(struct flexsc_cb *cb);

static void accept_all(struct flexsc_cb *cb)
{
	cb->callback = accepted;
	flexsc_accept_multishot(cb, listener, SOCK_CLOEXEC);
}

/*
 * After an error, such as running out of descriptors: accept again later, when
 * connections may have closed.
 */
static void accept_later(struct flexsc_cb *cb)
{
	cb->callback = accept_all;
	flexsc_timer(cb, 100000000);
}

static void accepted(struct flexsc_cb *cb)
{
	struct connection *c;
	int on = 1;

	if (cb->ret < 0) {
		accept_later(cb);
		return;
	}
	c = calloc(1, sizeof(*c) + (one ? SIZE : 0));
	if (!c) {
		flexsc_close(NULL, (int)cb->ret);
		return;
	}
	c->fd = (int)cb->ret;
	c->end = &c->first;
	c->receive = (struct flexsc_cb){ .callback = received, .arg = c };
	c->send = (struct flexsc_cb){ .callback = sent, .arg = c };
	setsockopt(c->fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	go_on(c);
}

static int listen_on(uint16_t port)
{
	struct sockaddr_in address = {
		.sin_family = AF_INET,
		.sin_port = htons(port),
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK),
	};
	socklen_t length = sizeof(address);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), on = 1;

	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	if (bind(fd, (struct sockaddr *)&address, length) || listen(fd, 4096) ||
	    getsockname(fd, (struct sockaddr *)&address, &length)) {
		perror("echo");
		exit(1);
	}
	printf("%u\n", ntohs(address.sin_port));
	fflush(stdout);
	return fd;
}

int main(int argc, char **argv)
{
	one = argc > 2 && !strcmp(argv[2], "one");
	listener = listen_on((uint16_t)(argc > 1 ? atoi(argv[1]) : 0));
	if (flexsc_init() || flexsc_buffers_create(flexsc_loop_default(), &buffers,
						   BUFFERS, SIZE))
		return 1;
	accept_all(&accepting);
	return flexsc_main_loop();
}
