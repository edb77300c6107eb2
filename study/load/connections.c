/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "connections.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <unistd.h>

int bench_connections_init(struct bench_connections *connections)
{
	connections->epoll = epoll_create1(EPOLL_CLOEXEC);
	connections->by_fd = calloc(BENCH_FDS_MAX, sizeof(struct bench_visit *));
	return connections->epoll < 0 || !connections->by_fd ? -ENOMEM : 0;
}

void bench_connections_fini(struct bench_connections *connections)
{
	if (connections->epoll >= 0)
		close(connections->epoll);
	free(connections->by_fd);
}

int bench_connections_open(struct bench_connections *connections,
			   struct bench_visit *visit)
{
	struct epoll_event event = {
		.events = EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET,
	};
	int fd;

	if (connections->count == connections->max)
		return -EMFILE;
	fd = bench_route_connect(&connections->route, connections->begun++,
				 false, false);
	if (fd < 0)
		return fd;
	event.data.fd = fd;
	if ((unsigned int)fd >= BENCH_FDS_MAX ||
	    epoll_ctl(connections->epoll, EPOLL_CTL_ADD, fd, &event)) {
		close(fd);
		return -EMFILE;
	}
	connections->count++;
	connections->by_fd[fd] = visit;
	visit->fd = fd;
	return 0;
}

void bench_connections_close(struct bench_connections *connections,
			     struct bench_visit *visit)
{
	if (visit->fd < 0)
		return;
	connections->by_fd[visit->fd] = NULL;
	connections->count--;
	close(visit->fd);
	visit->fd = -1;
}
