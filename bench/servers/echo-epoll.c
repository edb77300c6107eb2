/* SPDX-License-Identifier: MIT */
/*
 * The echo server of echo-threads.c as one writes it for speed: one thread,
 * epoll, and descriptors that don't block.
 *
 *	echo-epoll [PORT]
 *
 * A connection is either read from, or has something to be sent first; then it
 * isn't read from, so that a client which doesn't listen can't fill memory.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#define EVENTS	512

struct connection {
	int fd;
	bool sending;		/* epoll waits for room to send */
	size_t begin, end;	/* of what is still to be sent */
	char buf[4096];
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

/* False: the connection is over. */
static bool flush(struct connection *c)
{
	while (c->begin < c->end) {
		ssize_t n = send(c->fd, c->buf + c->begin, c->end - c->begin,
				 MSG_NOSIGNAL);

		if (n < 0 && errno == EAGAIN)
			return c->sending || watch(c, EPOLL_CTL_MOD, true);
		if (n < 0)
			return false;
		c->begin += (size_t)n;
	}
	return !c->sending || watch(c, EPOLL_CTL_MOD, false);
}

static bool serve(struct connection *c)
{
	ssize_t n;

	if (c->sending)
		return flush(c);
	n = recv(c->fd, c->buf, sizeof(c->buf), 0);
	if (n <= 0)
		return n < 0 && errno == EAGAIN;
	c->begin = 0;
	c->end = (size_t)n;
	return flush(c);
}

static int listen_on(uint16_t port)
{
	struct sockaddr_in addr = {
		.sin_family = AF_INET,
		.sin_port = htons(port),
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK),
	};
	socklen_t length = sizeof(addr);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	int one = 1;

	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	if (bind(fd, (struct sockaddr *)&addr, length) || listen(fd, 4096) ||
	    getsockname(fd, (struct sockaddr *)&addr, &length)) {
		perror("echo-epoll");
		exit(1);
	}
	printf("%u\n", ntohs(addr.sin_port));
	fflush(stdout);
	return fd;
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
		perror("echo-epoll: accept");
}

int main(int argc, char **argv)
{
	int listener = listen_on((uint16_t)(argc > 1 ? atoi(argv[1]) : 0));
	struct epoll_event events[EVENTS], event = { .events = EPOLLIN };

	epoll = epoll_create1(EPOLL_CLOEXEC);
	if (epoll < 0 || epoll_ctl(epoll, EPOLL_CTL_ADD, listener, &event)) {
		perror("echo-epoll");
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
