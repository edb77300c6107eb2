/* SPDX-License-Identifier: MIT */
/* A server with a thread for each connection, and calls that block. */
#include <errno.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "service.h"

#define STACK_BYTES	(64 << 10)

static bool send_all(int fd, struct buffers *c)
{
	while (c->begin < c->end) {
		ssize_t n = send(fd, c->out + c->begin, c->end - c->begin,
				 MSG_NOSIGNAL);

		if (n < 0)
			return false;
		c->begin += (size_t)n;
	}
	return !c->last;
}

/* Process n received bytes. Returns false if the connection has ended. */
static bool answer(int fd, struct buffers *c, size_t n)
{
	do {
		service.answer(c, n);
		n = 0;
		if (!send_all(fd, c))
			return false;
	} while (c->end);
	return true;
}

static void *serve(void *arg)
{
	int fd = (int)(intptr_t)arg;
	struct buffers c;
	size_t size;
	ssize_t n;

	service.begin(&c);
	do {
		char *to = service.room(&c, &size);

		n = recv(fd, to, size, 0);
	} while (n > 0 && answer(fd, &c, (size_t)n));
	close(fd);
	return NULL;
}

static void start(const pthread_attr_t *attr, int fd)
{
	pthread_t thread;

	errno = pthread_create(&thread, attr, serve, (void *)(intptr_t)fd);
	if (errno) {
		perror("can't serve a connection");
		close(fd);
	}
}

int main(int argc, char **argv)
{
	int listener = service_listen(service.name, "127.0.0.1", (uint16_t)
				      (argc > 1 ? atoi(argv[1]) : 0), 4096);
	pthread_attr_t attr;

	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, STACK_BYTES);
	pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	for (;;) {
		int fd = accept(listener, NULL, NULL);

		if (fd >= 0)
			start(&attr, fd);
		else if (errno != EINTR && errno != ECONNABORTED)
			perror("accept");
	}
}
