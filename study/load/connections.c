/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "connections.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "bench/raw/loop.h"

int bench_connections_init(struct bench_connections *connections)
{
	connections->epoll = epoll_create1(EPOLL_CLOEXEC);
	connections->by_fd = calloc(BENCH_FDS_MAX, sizeof(struct bench_visit *));
	connections->answers = calloc(BENCH_FDS_MAX, sizeof(uint32_t));
	connections->idle = calloc(connections->max, sizeof(int));
	return connections->epoll < 0 || !connections->by_fd ||
	       !connections->answers || !connections->idle ? -ENOMEM : 0;
}

void bench_connections_fini(struct bench_connections *connections)
{
	if (connections->epoll >= 0)
		close(connections->epoll);
	free(connections->by_fd);
	free(connections->answers);
	free(connections->idle);
}

static void drop(struct bench_connections *connections, int fd)
{
	uint32_t answers = connections->answers[fd];

	if (answers && bench_clock(CLOCK_MONOTONIC) >= connections->from)
		bench_evenness_add(&connections->evenness, answers - 1);
	connections->answers[fd] = 0;
	connections->by_fd[fd] = NULL;
	connections->count--;
	close(fd);
}

/* Open a connection. Its descriptor, or -errno. */
static int make(struct bench_connections *connections)
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
	connections->answers[fd] = connections->kept;
	connections->count++;
	return fd;
}

/* The place of an idle connection, of which 0 has been idle for longest. */
static int *idle(const struct bench_connections *connections, size_t index)
{
	return &connections->idle[(connections->idle_first + index) %
				  connections->max];
}

static int take_idle(struct bench_connections *connections)
{
	int fd = *idle(connections, 0);

	connections->idle_first = (connections->idle_first + 1) %
				  connections->max;
	connections->idle_count--;
	return fd;
}

int bench_connections_take(struct bench_connections *connections,
			   struct bench_visit *visit)
{
	int fd = connections->idle_count ? take_idle(connections) :
					   make(connections);

	if (fd < 0)
		return fd;
	visit->fd = fd;
	connections->by_fd[fd] = visit;
	return 0;
}

void bench_connections_keep(struct bench_connections *connections,
			    struct bench_visit *visit)
{
	connections->by_fd[visit->fd] = NULL;
	*idle(connections, connections->idle_count++) = visit->fd;
	visit->fd = -1;
}

void bench_connections_drop(struct bench_connections *connections,
			    struct bench_visit *visit)
{
	drop(connections, visit->fd);
	visit->fd = -1;
}

void bench_connections_lose(struct bench_connections *connections, int fd)
{
	size_t i = 0;

	while (i < connections->idle_count && *idle(connections, i) != fd)
		i++;
	if (i == connections->idle_count)
		return;
	connections->idle_count--;
	for (; i < connections->idle_count; i++)
		*idle(connections, i) = *idle(connections, i + 1);
	drop(connections, fd);
}

void bench_connections_close(struct bench_connections *connections)
{
	for (int fd = 0; fd < (int)BENCH_FDS_MAX; fd++)
		if (connections->answers[fd])
			drop(connections, fd);
	connections->idle_count = 0;
}
