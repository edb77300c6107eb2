/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "route.h"

#include "bench/raw/settings.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

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
	fprintf(stderr, "%s: %s: address and source are as "
		"127.0.0.1\n", bench_who, name);
	return 1;
}

int bench_route_bind(const struct bench_route *route, int fd, uint64_t turn)
{
	struct sockaddr_in from = {
		.sin_family = AF_INET,
		.sin_addr.s_addr = htonl(route->source +
					 (uint32_t)(turn % route->sources)),
	};
	int one = 1;

	if (!route->source)
		return 0;
	/* connect() chooses the port: one that is free towards the server. */
	setsockopt(fd, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, &one, sizeof(one));
	return bind(fd, (struct sockaddr *)&from, sizeof(from)) ? -errno : 0;
}

int bench_route_connect(const struct bench_route *route, uint64_t turn)
{
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	int err, one = 1;

	if (fd < 0)
		return -errno;
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	err = bench_route_bind(route, fd, turn);
	if (!err &&
	    (!connect(fd, (struct sockaddr *)&route->server,
		      sizeof(route->server)) || errno == EINPROGRESS))
		return fd;
	err = err ?: -errno;
	close(fd);
	return err;
}
