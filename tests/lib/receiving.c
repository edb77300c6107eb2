/* SPDX-License-Identifier: MIT */
/*
 * Receives that wait for several bytes, and calls that wait for all bytes, return as
 * many as they wait for, with and without enough threads for them.
 */
#include "tests/harness/harness.h"
#include "readers.h"

/* The three ways to receive, in the order in which the test uses them. */
static void post_receive(struct call *call, int fd, struct msghdr *msg, unsigned int way)
{
	*call = (struct call)CALL_INIT;
	switch (way) {
	case 0:
		POST(loop, call, SYS_recvfrom, fd, msg->msg_iov->iov_base,
		     msg->msg_iov->iov_len, 0, NULL, NULL);
		break;
	case 1:
		POST(loop, call, SYS_read, fd, msg->msg_iov->iov_base,
		     msg->msg_iov->iov_len);
		break;
	default:
		POST(loop, call, SYS_recvmsg, fd, msg, 0);
		break;
	}
}

/*
 * Two bytes aren't enough, sent before the call or after it. Four more are enough,
 * even on a TCP socket, which may return the first two and then wait for four.
 */
static void receive_six(int from, int to, bool early)
{
	char in[16];
	struct iovec iov = { in, sizeof(in) };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };
	struct call call;

	for (unsigned int way = 0; way < 3; way++) {
		if (early)
			CHECK_EQ(send(from, "ab", 2, 0), 2);
		post_receive(&call, to, &msg, way);
		run_for(loop, 5);
		if (!early)
			CHECK_EQ(send(from, "ab", 2, 0), 2);
		run_for(loop, 20);
		CHECK_EQ(call.runs, 0);
		CHECK_EQ(send(from, "cdef", 4, 0), 4);
		CHECK_EQ(await_call(loop, &call), 6);
	}
}

static void receive_so_rcvlowat_bytes(void)
{
	const int four = 4;
	struct call call = CALL_INIT;
	int pair[2];
	char byte;

	CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
	CHECK_EQ(setsockopt(pair[0], SOL_SOCKET, SO_RCVLOWAT, &four,
			    sizeof(four)), 0);
	receive_six(pair[1], pair[0], false);
	receive_six(pair[1], pair[0], true);
	/* The mark is set after the loop has cached that the other end has none. */
	POST(loop, &call, SYS_recvfrom, pair[1], &byte, 1, 0, NULL, NULL);
	run_for(loop, 5);
	CHECK_EQ(send(pair[0], "x", 1, 0), 1);
	CHECK_EQ(await_call(loop, &call), 1);
	CHECK_EQ(DO(loop, SYS_setsockopt, pair[1], SOL_SOCKET, SO_RCVLOWAT,
		    &four, sizeof(four)), 0);
	receive_six(pair[0], pair[1], true);
	CHECK_EQ(DO(loop, SYS_close, pair[0]), 0);
	CHECK_EQ(DO(loop, SYS_close, pair[1]), 0);
}

WAITING_TEST(a_receive_waits_for_so_rcvlowat_bytes)
{
	struct sockaddr_in addr;
	const int four = 4;
	int listener, client, server;

	receive_so_rcvlowat_bytes();
	/* The mark is inherited from the listener. */
	listener = listening_socket(&addr, 0, 1);
	CHECK_EQ(DO(loop, SYS_setsockopt, listener, SOL_SOCKET, SO_RCVLOWAT,
		    &four, sizeof(four)), 0);
	client = socket(AF_INET, SOCK_STREAM, 0);
	CHECK_EQ(connect(client, (struct sockaddr *)&addr, sizeof(addr)),
		 0);
	server = (int)DO(loop, SYS_accept4, listener, NULL, NULL, 0);
	CHECK(server >= 0);
	receive_six(client, server, false);
	receive_six(client, server, true);
}

WAITING_TEST(a_receive_waits_for_so_rcvlowat_bytes_with_few_threads,
		.max_threads = 4)
{
	post_reads(PIPES);
	receive_so_rcvlowat_bytes();
	test_end_loop();
}

enum { ALL = 1 << 20 };
static char all_out[ALL], all_in[ALL];

/* The other end transfers its part, n bytes. */
static void transfer(int fd, ssize_t n, bool sends)
{
	while (n) {
		ssize_t part = sends ? send(fd, all_out, (size_t)n,
					    MSG_DONTWAIT) :
				       recv(fd, all_in, (size_t)n,
					    MSG_DONTWAIT);

		if (part < 0)
			run_for(loop, 1);
		else
			n -= part;
	}
}

/* A part of the bytes doesn't end a call that waits for all. */
static void transfer_all(void)
{
	struct iovec in = { all_in, ALL }, out = { all_out, ALL };
	struct msghdr to = { .msg_iov = &in, .msg_iovlen = 1 };
	struct msghdr from = { .msg_iov = &out, .msg_iovlen = 1 };
	int pair[2];

	CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
	for (unsigned int way = 0; way < 3; way++) {
		struct call call = CALL_INIT;
		ssize_t part = way < 2 ? 2 : 0;

		transfer(pair[1], part, true);
		if (way == 0)
			POST(loop, &call, SYS_recvfrom, pair[0], all_in, ALL,
			     MSG_WAITALL, NULL, NULL);
		else if (way == 1)
			POST(loop, &call, SYS_recvmsg, pair[0], &to,
			     MSG_WAITALL);
		else
			POST(loop, &call, SYS_sendmsg, pair[0], &from, 0);
		run_for(loop, 20);
		CHECK_EQ(call.runs, 0);
		transfer(pair[1], ALL - part, way < 2);
		CHECK_EQ(await_call(loop, &call), ALL);
	}
	close(pair[0]);
	close(pair[1]);
}

WAITING_TEST(a_call_that_wants_all_gets_all)
{
	transfer_all();
}

WAITING_TEST(a_call_that_wants_all_gets_all_with_few_threads,
		.max_threads = 4)
{
	post_reads(PIPES);
	transfer_all();
	test_end_loop();
}

#define GREEDY	8
#define WANTED	6

/* More calls that wait for all bytes, and have got a part, than there are threads. */
WAITING_TEST(many_calls_that_want_all_get_all, .max_threads = 4)
{
	struct call calls[GREEDY];
	char in[GREEDY][WANTED];
	struct msghdr msg[GREEDY];
	struct iovec iov[GREEDY];
	int pair[GREEDY][2];

	for (unsigned int i = 0; i < GREEDY; i++) {
		iov[i] = (struct iovec){ in[i], WANTED };
		msg[i] = (struct msghdr){ .msg_iov = &iov[i], .msg_iovlen = 1 };
		calls[i] = (struct call)CALL_INIT;
		CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, pair[i]), 0);
		CHECK_EQ(send(pair[i][1], "ab", 2, 0), 2);
		if (i % 2)
			POST(loop, &calls[i], SYS_recvmsg, pair[i][0], &msg[i],
			     MSG_WAITALL);
		else
			POST(loop, &calls[i], SYS_recvfrom, pair[i][0], in[i],
			     WANTED, MSG_WAITALL, NULL, NULL);
	}
	run_for(loop, 50);
	for (unsigned int i = 0; i < GREEDY; i++) {
		CHECK_EQ(calls[i].runs, 0);
		CHECK_EQ(send(pair[i][1], "cdef", 4, 0), 4);
	}
	for (unsigned int i = 0; i < GREEDY; i++) {
		CHECK_EQ(await_call(loop, &calls[i]), WANTED);
		CHECK_EQ(memcmp(in[i], "abcdef", WANTED), 0);
		close(pair[i][0]);
		close(pair[i][1]);
	}
}
