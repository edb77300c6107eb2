/* SPDX-License-Identifier: MIT */
/*
 * A server with one thread, epoll, and non-blocking descriptors. While a
 * connection has bytes to send, the server doesn't read from it, so a client
 * that doesn't read can't fill the server's memory.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "service.h"

#define EVENTS	512

struct peer {
	int fd;
	bool sending;		/* waiting in epoll for room to send */
	struct buffers c;
};

static int epoll;

static void drop(struct peer *peer)
{
	close(peer->fd);
	free(peer);
}

static bool watch(struct peer *peer, int op, bool sending)
{
	struct epoll_event event = {
		.events = sending ? EPOLLOUT : EPOLLIN,
		.data.ptr = peer,
	};

	peer->sending = sending;
	return !epoll_ctl(epoll, op, peer->fd, &event);
}

/*
 * Returns 1: all was sent; 0: there is no room; negative: the connection has
 * ended.
 */
static int flush(struct peer *peer)
{
	struct buffers *c = &peer->c;

	while (c->begin < c->end) {
		ssize_t n = send(peer->fd, c->out + c->begin,
				 c->end - c->begin, MSG_NOSIGNAL);

		if (n < 0)
			return errno == EAGAIN ? 0 : -1;
		c->begin += (size_t)n;
	}
	return c->last ? -1 : 1;
}

/* Returns false if the connection has ended. */
static bool serve(struct peer *peer)
{
	struct buffers *c = &peer->c;
	int sent = 1;

	if (!peer->sending) {
		size_t size;
		char *to = service.room(c, &size);
		ssize_t n = recv(peer->fd, to, size, 0);

		if (n <= 0)
			return n < 0 && errno == EAGAIN;
		service.answer(c, (size_t)n);
	}
	while (c->end && (sent = flush(peer)) > 0)
		service.answer(c, 0);
	if (sent < 0)
		return false;
	return peer->sending == !sent || watch(peer, EPOLL_CTL_MOD, !sent);
}

static void accept_all(int listener)
{
	int fd;

	while ((fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK)) >= 0) {
		struct peer *peer = calloc(1, sizeof(*peer));

		if (!peer) {
			close(fd);
			continue;
		}
		peer->fd = fd;
		service.begin(&peer->c);
		if (!watch(peer, EPOLL_CTL_ADD, false))
			drop(peer);
	}
	if (errno != EAGAIN && errno != EINTR && errno != ECONNABORTED)
		perror("accept");
}

int main(int argc, char **argv)
{
	int listener = service_listen(service.name, "127.0.0.1", (uint16_t)
				      (argc > 1 ? atoi(argv[1]) : 0), 4096);
	struct epoll_event events[EVENTS], event = { .events = EPOLLIN };

	epoll = epoll_create1(EPOLL_CLOEXEC);
	if (epoll < 0 || fcntl(listener, F_SETFL, O_NONBLOCK) ||
	    epoll_ctl(epoll, EPOLL_CTL_ADD, listener, &event)) {
		perror(service.name);
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
