/* SPDX-License-Identifier: MIT */
/*
 * A web server of threads: each of a pool accepts a connection, then serves it to
 * its end by calls that block. Nothing here knows of FlexSC.
 *
 *	web-threads [OPTION]... DIR
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>

#include "command.h"

#define STACK_BYTES	(128 << 10)
#define PAUSE_US	20000	/* while descriptors are short */

static struct command command;
static unsigned int count = 128;
static const char *accepts = "shared";
static int listener;

static const struct command_option options[] = {
	{ "threads", &count, 1, 32000, .help = "N  threads (128)" },
	{ "accept", .text = &accepts,
	  .help = "shared|port  one listening socket, or one for each (shared)" },
	{ 0 },
};

/* A receive or send that has had its time ends with EAGAIN: SO_RCVTIMEO. */
static int64_t make(const struct web_call *call)
{
	int64_t ret = command_make(call);

	return ret == -EAGAIN && call->kind <= WEB_SEND ? -ETIME : ret;
}

static void serve(struct web_connection *c)
{
	struct web_call call;

	while (web_next(c, &call))
		web_done(c, make(&call));
}

/* Accepted sockets inherit the limits, and accept() itself has one. */
static int listen_with_limits(bool shared)
{
	const struct timeval limit = {
		.tv_sec = (time_t)(command.web.timeout / CLOCK_SECOND),
	};
	int fd = command_listen(&command, shared);

	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
	setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit));
	return fd;
}

static void *run(void *arg)
{
	int socket = *(int *)arg;
	struct web_thread *thread = command_thread();
	struct web_connection *c = malloc(sizeof(*c));

	if (!c || !thread) {
		command_complain("a thread can't begin", ENOMEM);
		return NULL;
	}
	for (;;) {
		int fd = accept4(socket, NULL, NULL, SOCK_CLOEXEC);

		if (fd >= 0) {
			web_begin(c, &command.web, thread, fd);
			serve(c);
		} else if (errno != EINTR && errno != EAGAIN &&
			   errno != ECONNABORTED) {
			usleep(PAUSE_US);
		}
	}
	return NULL;
}

static void start(const pthread_attr_t *attr, int *socket)
{
	pthread_t thread;
	int err = pthread_create(&thread, attr, run, socket);

	if (!err)
		return;
	command_complain("threads", err);
	exit(1);
}

int main(int argc, char **argv)
{
	pthread_attr_t attr;
	int *sockets;
	bool port;

	command_parse(&command, "web-threads", options, argc, argv);
	port = !strcmp(accepts, "port");
	if (!port && strcmp(accepts, "shared") != 0) {
		fprintf(stderr, "web-threads: --accept %s: give shared or "
			"port\n", accepts);
		return 2;
	}
	sockets = calloc(count, sizeof(*sockets));
	if (!sockets)
		return 1;
	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, STACK_BYTES);
	listener = listen_with_limits(port);
	for (unsigned int i = 0; i < count; i++) {
		sockets[i] = i && port ? listen_with_limits(true) : listener;
		start(&attr, &sockets[i]);
	}
	command_wait();
}
