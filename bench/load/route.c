/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "route.h"

#include "bench/raw/settings.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#define CONNECT_S	2

static bool on_loopback(struct in_addr address)
{
	return ntohl(address.s_addr) >> 24 == IN_LOOPBACKNET;
}

int bench_route_init(struct bench_route *route, const char *name,
		     const struct bench_settings *settings, const char *source)
{
	struct in_addr first = { 0 };

	*route = (struct bench_route){
		.server.sin_family = AF_INET,
		.server.sin_port = htons((uint16_t)settings->port),
		.sources = (uint32_t)settings->sources,
	};
	if (!inet_aton(settings->address, &route->server.sin_addr))
		goto wrong;
	if (settings->source)
		source = settings->source;
	else if (!on_loopback(route->server.sin_addr))
		source = NULL;
	if (source && !inet_aton(source, &first))
		goto wrong;
	route->source = ntohl(first.s_addr);
	return 0;
wrong:
	fprintf(stderr, "%s: %s: address and source must be IPv4 addresses, "
			"such as 127.0.0.1\n", bench_who, name);
	return 1;
}

static int bind_to(const struct bench_route *route, int fd, uint64_t turn)
{
	struct sockaddr_in from = {
		.sin_family = AF_INET,
		.sin_addr.s_addr = htonl(route->source +
					 (uint32_t)(turn % route->sources)),
	};
	int one = 1;

	if (!route->source)
		return 0;
	/* Let connect() choose a port that is free for this destination. */
	setsockopt(fd, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, &one, sizeof(one));
	return bind(fd, (struct sockaddr *)&from, sizeof(from)) ? -errno : 0;
}

static int connect_by(const struct bench_route *route, int fd, bool wait)
{
	struct timeval limit = { .tv_sec = CONNECT_S };

	if (!wait)
		return connect(fd, (const struct sockaddr *)&route->server,
			       sizeof(route->server)) &&
		       errno != EINPROGRESS ? -errno : 0;
	setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit));
	if (connect(fd, (const struct sockaddr *)&route->server,
		    sizeof(route->server)))
		return errno == EINPROGRESS ? -ETIMEDOUT : -errno;
	return fcntl(fd, F_SETFL, O_NONBLOCK) ? -errno : 0;
}

int bench_route_connect(const struct bench_route *route, uint64_t turn,
			bool udp, bool wait)
{
	int type = (udp ? SOCK_DGRAM : SOCK_STREAM) | SOCK_CLOEXEC;
	int fd = socket(AF_INET, type | (wait ? 0 : SOCK_NONBLOCK), 0);
	int err, one = 1;

	if (fd < 0)
		return -errno;
	if (!udp)
		setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	err = bind_to(route, fd, turn) ?: connect_by(route, fd, wait);
	if (!err)
		return fd;
	close(fd);
	return err;
}
