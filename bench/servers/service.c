/* SPDX-License-Identifier: MIT */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>

#include "service.h"

int service_listen(const char *program, const char *address, uint16_t port,
		   int backlog)
{
	struct sockaddr_in addr = {
		.sin_family = AF_INET,
		.sin_port = htons(port),
	};
	socklen_t length = sizeof(addr);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), one = 1;

	if (!inet_aton(address, &addr.sin_addr)) {
		fprintf(stderr, "%s: invalid address: %s\n", program, address);
		exit(1);
	}
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	/* Accepted connections inherit this option. */
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	if (bind(fd, (struct sockaddr *)&addr, length) || listen(fd, backlog) ||
	    getsockname(fd, (struct sockaddr *)&addr, &length)) {
		perror(program);
		exit(1);
	}
	printf("%u\n", ntohs(addr.sin_port));
	fflush(stdout);
	return fd;
}
