/* SPDX-License-Identifier: MIT */
/*
 * An echo server as one writes it first: a thread for each connection, and
 * calls that block. Nothing here knows of FlexSC.
 *
 *	echo-threads [PORT]
 *
 * Listens on the loopback interface; prints the port.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define STACK_BYTES	(64 << 10)

static int write_all(int fd, const char *buf, size_t n)
{
	while (n) {
		ssize_t done = send(fd, buf, n, MSG_NOSIGNAL);

		if (done < 0)
			return -1;
		buf += done;
		n -= (size_t)done;
	}
	return 0;
}

static void *serve(void *arg)
{
	int fd = (int)(intptr_t)arg;
	char buf[4096];
	ssize_t n;

	while ((n = recv(fd, buf, sizeof(buf), 0)) > 0)
		if (write_all(fd, buf, (size_t)n))
			break;
	close(fd);
	return NULL;
}

static int listen_on(uint16_t port)
{
	struct sockaddr_in addr = {
		.sin_family = AF_INET,
		.sin_port = htons(port),
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK),
	};
	socklen_t length = sizeof(addr);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), one = 1;

	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	if (bind(fd, (struct sockaddr *)&addr, length) || listen(fd, 4096) ||
	    getsockname(fd, (struct sockaddr *)&addr, &length)) {
		perror("echo-threads");
		exit(1);
	}
	printf("%u\n", ntohs(addr.sin_port));
	fflush(stdout);
	return fd;
}

static void start(const pthread_attr_t *attr, int fd)
{
	pthread_t thread;
	int one = 1;

	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	errno = pthread_create(&thread, attr, serve, (void *)(intptr_t)fd);
	if (errno) {
		perror("echo-threads: a connection is refused");
		close(fd);
	}
}

int main(int argc, char **argv)
{
	int listener = listen_on((uint16_t)(argc > 1 ? atoi(argv[1]) : 0));
	pthread_attr_t attr;

	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, STACK_BYTES);
	pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	for (;;) {
		int fd = accept(listener, NULL, NULL);

		if (fd >= 0)
			start(&attr, fd);
		else if (errno != EINTR && errno != ECONNABORTED)
			perror("echo-threads: accept");
	}
}
