/* SPDX-License-Identifier: MIT */
/*
 * Socket calls that wait with a time limit (SO_RCVTIMEO), for several bytes
 * (SO_RCVLOWAT, MSG_WAITALL), or for several messages. Such a call may occupy a
 * syscall thread for as long as it waits. Each test makes more of these calls than a
 * loop may have syscall threads, and one more call that has to complete meanwhile.
 * The calls wait for longer than a test may take.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdatomic.h>
#include <sys/socket.h>
#include <sys/time.h>

#include "threads.h"

#define HOLDERS		100

static int held[HOLDERS][2];
static atomic_int begun;

static void *hold_one(void *arg)
{
	char bytes[8];

	begun++;
	CHECK_EQ(recv(*(int *)arg, bytes, sizeof(bytes), 0), 0);
	return arg;
}

static void *receive_four(void *arg)
{
	char bytes[8];

	CHECK_EQ(recv(*(int *)arg, bytes, sizeof(bytes), 0), 4);
	return arg;
}

static void pair_with(int pair[2], int option, const void *value, socklen_t size)
{
	CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
	CHECK_EQ(setsockopt(pair[0], SOL_SOCKET, option, value, size), 0);
}

static void one_receives(int option, const void *value, socklen_t size)
{
	pthread_t one;
	int pair[2];

	settle();
	pair_with(pair, option, value, size);
	one = start(receive_four, &pair[0]);
	settle();
	CHECK_EQ(send(pair[1], "four", 4, 0), 4);
	join(one);
	close(pair[0]);
	close(pair[1]);
}

static void many_wait_one_receives(int option, const void *value, socklen_t size)
{
	pthread_t threads[HOLDERS];

	begun = 0;
	for (int i = 0; i < HOLDERS; i++) {
		pair_with(held[i], option, value, size);
		threads[i] = start(hold_one, &held[i][0]);
	}
	while (begun < HOLDERS)
		usleep(1000);
	one_receives(option, value, size);
	for (int i = 0; i < HOLDERS; i++) {
		close(held[i][1]);
		join(threads[i]);
		close(held[i][0]);
	}
}

TEST(waits_with_a_time_limit_do_not_stop_others)
{
	const struct timeval limit = { .tv_sec = 60 };

	many_wait_one_receives(SO_RCVTIMEO, &limit, sizeof(limit));
}

TEST(waits_for_several_bytes_do_not_stop_others)
{
	const int four = 4;

	many_wait_one_receives(SO_RCVLOWAT, &four, sizeof(four));
}

static void *accept_any(void *arg)
{
	int fd;

	begun++;
	fd = accept(*(int *)arg, NULL, NULL);
	CHECK(fd >= 0);
	close(fd);
	return arg;
}

TEST(accepts_with_a_time_limit_do_not_stop_others)
{
	const struct timeval limit = { .tv_sec = 60 };
	struct sockaddr_in addr;
	int listener = listening_socket(&addr, 0, HOLDERS);
	pthread_t threads[HOLDERS];

	CHECK_EQ(setsockopt(listener, SOL_SOCKET, SO_RCVTIMEO, &limit,
			    sizeof(limit)), 0);
	begun = 0;
	start_all(threads, HOLDERS, accept_any, &listener);
	while (begun < HOLDERS)
		usleep(1000);
	one_receives(SO_RCVTIMEO, &limit, sizeof(limit));
	for (int i = 0; i < HOLDERS; i++) {
		int client = socket(AF_INET, SOCK_STREAM, 0);

		CHECK_EQ(connect(client, (struct sockaddr *)&addr,
				 sizeof(addr)), 0);
		close(client);
	}
	join_all(threads, HOLDERS);
	close(listener);
}

/* Calls that wait for all bytes or messages while some have arrived. */

static void *receive_all(void *arg)
{
	char bytes[4];

	begun++;
	CHECK_EQ(recv(*(int *)arg, bytes, sizeof(bytes), MSG_WAITALL), 4);
	return arg;
}

static void *receive_messages(void *arg)
{
	struct mmsghdr messages[4] = { 0 };
	struct iovec iov[4];
	char bytes[4];

	for (int i = 0; i < 4; i++) {
		iov[i] = (struct iovec){ &bytes[i], 1 };
		messages[i].msg_hdr.msg_iov = &iov[i];
		messages[i].msg_hdr.msg_iovlen = 1;
	}
	begun++;
	CHECK_EQ(recvmmsg(*(int *)arg, messages, 4, 0, NULL), 4);
	return arg;
}

static void send_bytes(int fd, int n)
{
	while (n--)
		CHECK_EQ(send(fd, "x", 1, 0), 1);
}

static void many_have_a_part(int type, void *(*receive)(void *))
{
	pthread_t threads[HOLDERS], one;
	int pair[2];

	begun = 0;
	for (int i = 0; i < HOLDERS; i++) {
		CHECK_EQ(socketpair(AF_UNIX, type, 0, held[i]), 0);
		threads[i] = start(receive, &held[i][0]);
		send_bytes(held[i][1], 1);
	}
	while (begun < HOLDERS)
		usleep(1000);
	settle();
	CHECK_EQ(socketpair(AF_UNIX, type, 0, pair), 0);
	one = start(receive, &pair[0]);
	send_bytes(pair[1], 1);
	settle();
	send_bytes(pair[1], 3);
	join(one);
	for (int i = 0; i < HOLDERS; i++) {
		send_bytes(held[i][1], 3);
		join(threads[i]);
		close(held[i][0]);
		close(held[i][1]);
	}
	close(pair[0]);
	close(pair[1]);
}

TEST(waits_for_all_bytes_do_not_stop_others)
{
	many_have_a_part(SOCK_STREAM, receive_all);
}

TEST(waits_for_several_messages_do_not_stop_others)
{
	many_have_a_part(SOCK_DGRAM, receive_messages);
}

/* A connection to a listener whose queue is full. */

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

/* A listener doesn't answer while its queue is full. */
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

/* Another process sets the time limit of a socket while a call uses it. */

static void limit_by_child(int fd, int option)
{
	const struct timeval limit = { .tv_usec = 20000 };
	int child = test_fork();

	if (!child) {
		CHECK_EQ(setsockopt(fd, SOL_SOCKET, option, &limit, sizeof(limit)), 0);
		test_leave();
	}
	test_reap(child);
}

static void use(int from, int to)
{
	char byte;

	CHECK_EQ(send(from, "x", 1, 0), 1);
	CHECK_EQ(recv(to, &byte, 1, 0), 1);
}

static ssize_t receive_some(int fd)
{
	char byte;

	return recv(fd, &byte, 1, 0);
}

static ssize_t read_some(int fd)
{
	char byte;

	return read(fd, &byte, 1);
}

static ssize_t send_much(int fd)
{
	static const char much[1 << 20];

	while (send(fd, much, sizeof(much), 0) > 0)
		;
	return -1;
}

static const struct {
	ssize_t (*wait)(int fd);
	int option;
} limited[] = {
	{ receive_some, SO_RCVTIMEO },
	{ read_some, SO_RCVTIMEO },
	{ send_much, SO_SNDTIMEO },
};

TEST_BY_THREAD(a_limit_that_a_child_sets_is_kept)
{
	for (size_t i = 0; i < sizeof(limited) / sizeof(*limited); i++) {
		int fds[2];

		CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, fds), 0);
		use(fds[0], fds[1]);
		use(fds[1], fds[0]);
		limit_by_child(fds[0], limited[i].option);
		errno = 0;
		CHECK_EQ(limited[i].wait(fds[0]), -1);
		CHECK_EQ(errno, EAGAIN);
		close(fds[0]);
		close(fds[1]);
	}
}
