/* SPDX-License-Identifier: MIT */
/*
 * A web server of one page, as one writes it first: a thread for each
 * connection, and calls that block. Nothing here knows of FlexSC.
 *
 *	http-threads [PORT]
 *
 * Listens on the loopback interface; prints the port. http.h says what it
 * understands. Requests that arrived together are answered together.
 */
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "http.h"

#define STACK_BYTES	(64 << 10)

static bool write_all(int fd, const char *buf, size_t n)
{
	while (n) {
		ssize_t done = send(fd, buf, n, MSG_NOSIGNAL);

		if (done < 0)
			return false;
		buf += done;
		n -= (size_t)done;
	}
	return true;
}

/* What has arrived. False: the connection is over. */
static bool answer(int fd, struct http_in *in)
{
	struct http_request request = { .keep = true };
	char out[4 * HTTP_ANSWER_MAX];
	size_t n = 0;

	while (request.keep && http_next(in, &request)) {
		n += http_answer(&request, out + n);
		if (n <= sizeof(out) - HTTP_ANSWER_MAX)
			continue;
		if (!write_all(fd, out, n))
			return false;
		n = 0;
	}
	return write_all(fd, out, n) && request.keep;
}

static void *serve(void *arg)
{
	int fd = (int)(intptr_t)arg;
	struct http_in in;

	in.begin = in.seen = in.end = 0;
	do {
		size_t room = http_room(&in);
		ssize_t n = recv(fd, in.buf + in.end, room, 0);

		if (n <= 0)
			break;
		in.end += (size_t)n;
	} while (answer(fd, &in));
	close(fd);
	return NULL;
}

static void start(const pthread_attr_t *attr, int fd)
{
	pthread_t thread;
	int one = 1;

	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	errno = pthread_create(&thread, attr, serve, (void *)(intptr_t)fd);
	if (errno) {
		perror("http-threads: a connection is refused");
		close(fd);
	}
}

int main(int argc, char **argv)
{
	int listener = http_listen("http-threads", "127.0.0.1",
				   (uint16_t)(argc > 1 ? atoi(argv[1]) : 0),
				   4096);
	pthread_attr_t attr;

	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, STACK_BYTES);
	pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	for (;;) {
		int fd = accept(listener, NULL, NULL);

		if (fd >= 0)
			start(&attr, fd);
		else if (errno != EINTR && errno != ECONNABORTED)
			perror("http-threads: accept");
	}
}
