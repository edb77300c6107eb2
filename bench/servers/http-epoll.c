/* SPDX-License-Identifier: MIT */
/*
 * The web server of http-threads.c as one writes it for speed: one thread,
 * epoll, and descriptors that don't block.
 *
 *	http-epoll [PORT]
 *
 * A connection is either read from, or has answers to be sent first; then it
 * isn't read from, so that a client which doesn't listen can't fill memory.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "http.h"

#define EVENTS	512

struct connection {
	int fd;
	bool sending;		/* epoll waits for room to send */
	bool last;		/* closed once that is sent */
	size_t begin, end;	/* of what is still to be sent */
	struct http_in in;
	char out[4 * HTTP_ANSWER_MAX];
};

static int epoll;

static void drop(struct connection *c)
{
	close(c->fd);
	free(c);
}

static bool watch(struct connection *c, int op, bool sending)
{
	struct epoll_event event = {
		.events = sending ? EPOLLOUT : EPOLLIN,
		.data.ptr = c,
	};

	c->sending = sending;
	return !epoll_ctl(epoll, op, c->fd, &event);
}

/* Answer what has arrived, as far as there is room. */
static void answer(struct connection *c)
{
	struct http_request request;

	c->begin = c->end = 0;
	while (!c->last && c->end <= sizeof(c->out) - HTTP_ANSWER_MAX &&
	       http_next(&c->in, &request)) {
		c->end += http_answer(&request, c->out + c->end);
		c->last = !request.keep;
	}
}

/* 1: all was sent; 0: there is no room; negative: the connection is over. */
static int flush(struct connection *c)
{
	while (c->begin < c->end) {
		ssize_t n = send(c->fd, c->out + c->begin, c->end - c->begin,
				 MSG_NOSIGNAL);

		if (n < 0)
			return errno == EAGAIN ? 0 : -1;
		c->begin += (size_t)n;
	}
	return c->last ? -1 : 1;
}

/* False: the connection is over. */
static bool serve(struct connection *c)
{
	int sent = 1;

	if (!c->sending) {
		size_t room = http_room(&c->in);
		ssize_t n = recv(c->fd, c->in.buf + c->in.end, room, 0);

		if (n <= 0)
			return n < 0 && errno == EAGAIN;
		c->in.end += (size_t)n;
		answer(c);
	}
	while (c->end && (sent = flush(c)) > 0)
		answer(c);
	if (sent < 0)
		return false;
	return c->sending == !sent || watch(c, EPOLL_CTL_MOD, !sent);
}

static void accept_all(int listener)
{
	int fd, one = 1;

	while ((fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK)) >= 0) {
		struct connection *c = calloc(1, sizeof(*c));

		setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
		if (!c) {
			close(fd);
			continue;
		}
		c->fd = fd;
		if (!watch(c, EPOLL_CTL_ADD, false))
			drop(c);
	}
	if (errno != EAGAIN && errno != EINTR && errno != ECONNABORTED)
		perror("http-epoll: accept");
}

int main(int argc, char **argv)
{
	int listener = http_listen("http-epoll", "127.0.0.1",
				   (uint16_t)(argc > 1 ? atoi(argv[1]) : 0),
				   4096);
	struct epoll_event events[EVENTS], event = { .events = EPOLLIN };

	epoll = epoll_create1(EPOLL_CLOEXEC);
	if (epoll < 0 || fcntl(listener, F_SETFL, O_NONBLOCK) ||
	    epoll_ctl(epoll, EPOLL_CTL_ADD, listener, &event)) {
		perror("http-epoll");
		return 1;
	}
	for (;;) {
		int n = epoll_wait(epoll, events, EVENTS, -1);

		for (int i = 0; i < n; i++) {
			if (!events[i].data.ptr)
				accept_all(listener);
			else if (!serve(events[i].data.ptr))
				drop(events[i].data.ptr);
		}
	}
}
