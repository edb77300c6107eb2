/* SPDX-License-Identifier: MIT */
/* poll: the kernel is given all connections that wait, each time. */
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "events.h"

/* The first one is the listener; a connection's place is its index. */
static struct pollfd *waiting;
static nfds_t count;

static bool begin(int listener)
{
	waiting = calloc((size_t)server_limit, sizeof(*waiting));
	if (!waiting) {
		perror("http-events: poll");
		return false;
	}
	waiting[count++] = (struct pollfd){ listener, POLLIN, 0 };
	return true;
}

static void wait_for_events(void)
{
	int left = poll(waiting, count, -1);

	for (nfds_t i = 1; i < count && left > 0; i++) {
		if (!waiting[i].revents)
			continue;
		server_ready(waiting[i].fd);
		left--;
	}
	if (waiting[0].revents)
		server_accept(waiting[0].fd);
}

static void watch(int fd, bool sending)
{
	struct connection *c = &server_connections[fd];

	if (!c->watched) {
		c->watched = true;
		c->place = (int)count++;
	}
	waiting[c->place] = (struct pollfd){
		fd, sending ? POLLOUT : POLLIN, 0,
	};
}

static void close_it(int fd)
{
	struct connection *c = &server_connections[fd];

	/* The last one takes its place. */
	if (c->watched) {
		waiting[c->place] = waiting[--count];
		server_connections[waiting[c->place].fd].place = c->place;
	}
	close(fd);
}

static void admit(bool yes)
{
	waiting[0].events = yes ? POLLIN : 0;
}

const struct model model_poll = {
	.name = "poll", .delivery = "batched", .notification = "batched",
	.accepting = "in batches", .begin = begin, .wait = wait_for_events,
	.watch = watch, .close = close_it, .admit = admit,
};
