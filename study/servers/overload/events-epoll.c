/* SPDX-License-Identifier: MIT */
/*
 * epoll, edge-triggered: a connection is registered once, when a call on it
 * would block for the first time. (SEND compares with /dev/poll, epoll's
 * predecessor.)
 */
#define _GNU_SOURCE
#include <stdio.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "events.h"

#define EVENTS	512

static int epoll, listening;

static bool begin(int listener)
{
	struct epoll_event event = { .events = EPOLLIN, .data.fd = listener };

	listening = listener;
	epoll = epoll_create1(EPOLL_CLOEXEC);
	if (epoll >= 0 && !epoll_ctl(epoll, EPOLL_CTL_ADD, listener, &event))
		return true;
	perror("http-events: epoll");
	return false;
}

static void wait_for_events(void)
{
	struct epoll_event events[EVENTS];
	int n = epoll_wait(epoll, events, EVENTS, -1);

	for (int i = 0; i < n; i++) {
		if (events[i].data.fd == listening)
			server_accept(listening);
		else
			server_ready(events[i].data.fd);
	}
}

static void watch(int fd, bool sending)
{
	struct epoll_event event = {
		.events = EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET,
		.data.fd = fd,
	};

	if (server_connections[fd].watched)
		return;
	server_connections[fd].watched = true;
	if (epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event))
		perror("http-events: epoll");
}

static void close_it(int fd)
{
	close(fd);
}

static void admit(bool yes)
{
	struct epoll_event event = {
		.events = yes ? EPOLLIN : 0, .data.fd = listening,
	};

	epoll_ctl(epoll, EPOLL_CTL_MOD, listening, &event);
}

const struct model model_epoll = {
	.name = "epoll", .delivery = "batched", .notification = "batched",
	.accepting = "in batches", .begin = begin, .wait = wait_for_events,
	.watch = watch, .close = close_it, .admit = admit,
};
