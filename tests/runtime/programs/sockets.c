/* SPDX-License-Identifier: MIT */
/* Sockets and terminals, and waiting for them with a mask. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <pty.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <sys/socket.h>

#include "threads.h"

#define BACKLOG	8

static struct sockaddr_in address;

static int listener(int backlog)
{
	socklen_t size = sizeof(address);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	address = (struct sockaddr_in){
		.sin_family = AF_INET,
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK),
	};
	CHECK_EQ(bind(fd, (struct sockaddr *)&address, size), 0);
	CHECK_EQ(listen(fd, backlog), 0);
	CHECK_EQ(getsockname(fd, (struct sockaddr *)&address, &size), 0);
	return fd;
}

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
	int fd = listener(0), filling[BACKLOG];

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
	int fd = listener(BACKLOG), client;
	pthread_t thread = start(accept_with_flags, &fd);

	settle();
	client = socket(AF_INET, SOCK_STREAM, 0);
	CHECK_EQ(connect_to(client), 0);
	join(thread);
	CHECK_EQ(close(client), 0);
	CHECK_EQ(close(fd), 0);
}

/* Masks that hold while one waits. */

static atomic_int handled, stage;

static void handle(int signo)
{
	(void)signo;
	handled++;
}

static int wait_by_pselect(int fd, const struct timespec *limit,
			   const sigset_t *mask)
{
	fd_set set;

	FD_ZERO(&set);
	FD_SET(fd, &set);
	return pselect(fd + 1, &set, NULL, NULL, limit, mask);
}

static int wait_by_epoll(int fd, const struct timespec *limit,
			 const sigset_t *mask)
{
	struct epoll_event event = { .events = EPOLLIN };
	int set = epoll_create1(0), ret;

	CHECK_EQ(epoll_ctl(set, EPOLL_CTL_ADD, fd, &event), 0);
	ret = epoll_pwait(set, &event, 1,
			  limit ? (int)(limit->tv_nsec / 1000000) : -1, mask);
	if (ret < 0) {
		int err = errno;

		close(set);
		errno = err;
		return ret;
	}
	CHECK_EQ(close(set), 0);
	return ret;
}

static int wait_by_ppoll(int fd, const struct timespec *limit,
			 const sigset_t *mask)
{
	struct pollfd poll = { .fd = fd, .events = POLLIN };

	return ppoll(&poll, 1, limit, mask);
}

struct masked {
	int (*wait)(int fd, const struct timespec *limit, const sigset_t *mask);
	int fd;
};

/* Blocked but for the wait: so it isn't missed before that. */
static void *wait_masked(void *arg)
{
	const struct timespec brief = { 0, 5000000 };
	struct masked *masked = arg;
	sigset_t blocked, open, now;

	sigemptyset(&blocked);
	sigaddset(&blocked, SIGUSR1);
	CHECK_EQ(pthread_sigmask(SIG_BLOCK, &blocked, &open), 0);
	stage++;
	while (handled < 1) {
		CHECK_EQ(masked->wait(masked->fd, NULL, &open), -1);
		CHECK_EQ(errno, EINTR);
	}
	CHECK_EQ(pthread_sigmask(SIG_BLOCK, NULL, &now), 0);
	CHECK_EQ(sigismember(&now, SIGUSR1), 1);
	/* The other way round it waits for its time. */
	CHECK_EQ(pthread_sigmask(SIG_UNBLOCK, &blocked, NULL), 0);
	CHECK_EQ(masked->wait(masked->fd, &brief, &blocked), 0);
	stage++;
	while (stage < 3)
		usleep(100);
	CHECK_EQ(masked->wait(masked->fd, NULL, &blocked), 1);
	return arg;
}

static void with_mask(int (*wait)(int fd, const struct timespec *limit,
				  const sigset_t *mask))
{
	struct masked masked = { .wait = wait };
	pthread_t thread;
	int fds[2];

	handled = 0;
	stage = 0;
	CHECK_EQ(pipe(fds), 0);
	masked.fd = fds[0];
	thread = start(wait_masked, &masked);
	while (stage < 1)
		usleep(100);
	CHECK_EQ(pthread_kill(thread, SIGUSR1), 0);
	while (stage < 2)
		usleep(100);
	CHECK_EQ(handled, 1);
	CHECK_EQ(write(fds[1], "x", 1), 1);
	stage++;
	join(thread);
	CHECK_EQ(close(fds[0]), 0);
	CHECK_EQ(close(fds[1]), 0);
}

TEST(a_mask_holds_while_one_waits)
{
	struct sigaction action = { .sa_handler = handle };

	CHECK_EQ(sigaction(SIGUSR1, &action, NULL), 0);
	for (int i = 0; i < 5; i++) {
		with_mask(wait_by_pselect);
		with_mask(wait_by_epoll);
		with_mask(wait_by_ppoll);
	}
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
