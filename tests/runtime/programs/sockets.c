/* SPDX-License-Identifier: MIT */
/* Sockets and terminals. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <netinet/in.h>
#include <pty.h>
#include <sys/socket.h>

#include "threads.h"

#define BACKLOG	8

static struct sockaddr_in address;

static int connect_to(int fd)
{
	return connect(fd, (struct sockaddr *)&address, sizeof(address)) ?
		       -errno : 0;
}

static void *connect_for_a_time(void *arg)
{
	struct timeval limit = { 0, 50000 };
	uint64_t begin;
	int fd = socket(AF_INET, SOCK_STREAM, 0);

	CHECK_EQ(setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit,
			    sizeof(limit)), 0);
	begin = now_ns();
	CHECK_EQ(connect_to(fd), -EINPROGRESS);
	CHECK(now_ns() - begin >= 45 * MS);
	CHECK_EQ(close(fd), 0);
	return arg;
}

/* Whoever comes when the queue is full isn't answered. */
TEST(a_connect_gives_up_in_time)
{
	int fd = listening_socket(&address, 0, 0), filling[BACKLOG];

	for (int i = 0; i < BACKLOG; i++) {
		filling[i] = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
		CHECK_EQ(connect_to(filling[i]), -EINPROGRESS);
	}
	settle();
	join(start(connect_for_a_time, NULL));
	CHECK_EQ(close(fd), 0);
}

static void *accept_with_flags(void *arg)
{
	struct sockaddr_in peer;
	socklen_t size = sizeof(peer);
	int fd = accept4(*(int *)arg, (struct sockaddr *)&peer, &size,
			 SOCK_NONBLOCK | SOCK_CLOEXEC);
	char byte;

	CHECK(fd >= 0);
	CHECK_EQ(size, sizeof(peer));
	CHECK_EQ(peer.sin_addr.s_addr, htonl(INADDR_LOOPBACK));
	CHECK_EQ(fcntl(fd, F_GETFD), FD_CLOEXEC);
	CHECK(fcntl(fd, F_GETFL) & O_NONBLOCK);
	CHECK_EQ(read(fd, &byte, 1), -1);
	CHECK_EQ(errno, EAGAIN);
	CHECK_EQ(close(fd), 0);
	CHECK_EQ(accept4(*(int *)arg, NULL, NULL, 1), -1);
	CHECK_EQ(errno, EINVAL);
	return arg;
}

TEST(an_accepted_socket_has_the_flags_asked_for)
{
	int fd = listening_socket(&address, 0, BACKLOG), client;
	pthread_t thread = start(accept_with_flags, &fd);

	settle();
	client = socket(AF_INET, SOCK_STREAM, 0);
	CHECK_EQ(connect_to(client), 0);
	join(thread);
	CHECK_EQ(close(client), 0);
	CHECK_EQ(close(fd), 0);
}

/* A terminal's other side, which sends back what comes, line by line. */
static void *echo_lines(void *arg)
{
	char line[64];
	ssize_t n;

	while ((n = read(*(int *)arg, line, sizeof(line))) > 0 &&
	       line[0] != '.')
		CHECK_EQ(write(*(int *)arg, line, (size_t)n), n);
	return arg;
}

static void *talk(void *arg)
{
	int fd = *(int *)arg;
	char line[64];
	size_t have;

	for (int i = 0; i < 20; i++) {
		CHECK_EQ(write(fd, "ab\n", 3), 3);
		/* The terminal's own echo, then the reader's. */
		for (have = 0; have < 8;) {
			ssize_t n = read(fd, line + have, 8 - have);

			CHECK(n > 0);
			have += (size_t)n;
		}
		CHECK(!memcmp(line, "ab\r\nab\r\n", 8));
		usleep(100);
	}
	CHECK_EQ(write(fd, ".\n", 2), 2);
	return arg;
}

TEST(a_terminal_carries_lines)
{
	int here, there;
	pthread_t a, b;

	CHECK_EQ(openpty(&here, &there, NULL, NULL, NULL), 0);
	a = start(echo_lines, &there);
	b = start(talk, &here);
	join(b);
	join(a);
	CHECK_EQ(close(there), 0);
	CHECK_EQ(close(here), 0);
}
