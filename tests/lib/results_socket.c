/* SPDX-License-Identifier: MIT */
/*
 * Results and errors of calls on sockets, pipes and descriptors that can be waited
 * for, compared with the plain calls. See trial.h. Every call here completes without
 * the help of another thread. Calls that wait are in blocking.c.
 */
#include "trial.h"

#include <netinet/tcp.h>
#include <sys/timerfd.h>

static const struct sockaddr_in any_port = { .sin_family = AF_INET };

/*
 * A socket that is bound to a free port of the loopback address. The trial notes the
 * port.
 */
static int bound_socket(struct trial *t, int type, struct sockaddr_in *addr)
{
	int fd = FD(SYS_socket, AF_INET, type | SOCK_CLOEXEC, 0);
	uint32_t size = sizeof(*addr);

	*addr = any_port;
	addr->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	RET(SYS_bind, fd, addr, sizeof(*addr));
	RET(SYS_getsockname, fd, addr, &size);
	trial_note(t, __LINE__, "address size", size);
	return fd;
}

/* Creates the two ends of a stream connection. */
static void stream_pair(struct trial *t, int pair[2])
{
	RET(SYS_socketpair, AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair);
}

TRIAL(a_tcp_connection_carries_data)
{
	struct sockaddr_in addr, peer;
	uint32_t size = sizeof(peer);
	int server, client, conn;
	char buf[32] = "";

	server = bound_socket(t, SOCK_STREAM, &addr);
	RET(SYS_listen, server, 5);
	client = FD(SYS_socket, AF_INET, SOCK_STREAM, 0);
	RET(SYS_connect, client, &addr, sizeof(addr));
	conn = FD(SYS_accept4, server, &peer, &size, SOCK_CLOEXEC);
	trial_note(t, __LINE__, "peer size", size);
	trial_note(t, __LINE__, "peer family", peer.sin_family);
	RET(SYS_fcntl, conn, F_GETFD, 0);
	RET(SYS_sendto, client, "hello", 5, 0, NULL, 0);
	RET(SYS_recvfrom, conn, buf, 3, MSG_PEEK, NULL, NULL);
	RET(SYS_recvfrom, conn, buf, sizeof(buf), 0, NULL, NULL);
	DATA(buf, sizeof(buf));
	RET(SYS_connect, client, &addr, sizeof(addr));
	RET(SYS_shutdown, client, SHUT_WR);
	RET(SYS_sendto, client, "x", 1, MSG_NOSIGNAL, NULL, 0);
	RET(SYS_read, conn, buf, sizeof(buf));
	RET(SYS_shutdown, conn, 99);
	RET(SYS_close, client);
	RET(SYS_close, conn);
	RET(SYS_close, server);
	client = FD(SYS_socket, AF_INET, SOCK_STREAM, 0);
	RET(SYS_connect, client, &addr, sizeof(addr));
	RET(SYS_close, client);
}

TRIAL(socket_calls_report_their_errors)
{
	struct sockaddr_in addr;
	int fd, udp = bound_socket(t, SOCK_DGRAM, &addr);
	char buf[8];

	FD(SYS_socket, 99, SOCK_STREAM, 0);
	FD(SYS_socket, AF_INET, 99, 0);
	RET(SYS_socketpair, AF_INET, SOCK_STREAM, 0, buf);
	fd = FD(SYS_socket, AF_INET, SOCK_STREAM, 0);
	RET(SYS_bind, fd, &addr, 3);
	RET(SYS_bind, fd, NULL, sizeof(addr));
	RET(SYS_connect, fd, &addr, 1);
	RET(SYS_connect, fd, NULL, sizeof(addr));
	RET(SYS_accept4, fd, NULL, NULL, 0);
	RET(SYS_accept4, fd, NULL, NULL, 0x7f000000);
	RET(SYS_recvfrom, fd, buf, 8, 0, NULL, NULL);
	RET(SYS_sendto, fd, buf, 8, MSG_NOSIGNAL, NULL, 0);
	RET(SYS_sendto, udp, buf, 8, 0, NULL, 0);
	RET(SYS_listen, udp, 5);
	RET(SYS_shutdown, fd, SHUT_RDWR);
	RET(SYS_getsockopt, fd, 99, 99, buf, buf);
	RET(SYS_setsockopt, fd, IPPROTO_TCP, TCP_NODELAY, NULL, 4);
	RET(SYS_getpeername, fd, buf, NULL);
}

TRIAL(datagrams_keep_their_borders_and_addresses)
{
	struct sockaddr_in a, b, from;
	uint32_t size = sizeof(from);
	int one = bound_socket(t, SOCK_DGRAM, &a);
	int two = bound_socket(t, SOCK_DGRAM, &b);
	char buf[32] = "";

	RET(SYS_sendto, one, "first", 5, 0, &b, sizeof(b));
	RET(SYS_sendto, one, "second", 6, 0, &b, sizeof(b));
	memset(&from, 0, sizeof(from));
	RET(SYS_recvfrom, two, buf, sizeof(buf), 0, &from, &size);
	trial_note(t, __LINE__, "size", size);
	trial_note(t, __LINE__, "port", from.sin_port == a.sin_port);
	RET(SYS_recvfrom, two, buf, 3, MSG_TRUNC, NULL, NULL);
	DATA(buf, sizeof(buf));
	RET(SYS_recvfrom, two, buf, 3, MSG_DONTWAIT, NULL, NULL);
	RET(SYS_sendto, one, buf, 70000, 0, &b, sizeof(b));
	RET(SYS_connect, one, &b, sizeof(b));
	RET(SYS_write, one, "third", 5);
	RET(SYS_read, two, buf, sizeof(buf));
	DATA(buf, sizeof(buf));
}

TRIAL(messages_carry_addresses_and_descriptors)
{
	char buf[32] = "", control[64];
	struct iovec v = { (void *)"data", 4 }, in = { buf, sizeof(buf) };
	struct msghdr msg = { .msg_iov = &v, .msg_iovlen = 1 };
	struct cmsghdr *c = (struct cmsghdr *)control;
	int pair[2], copy;

	stream_pair(t, pair);
	memset(control, 0, sizeof(control));
	msg.msg_control = control;
	msg.msg_controllen = CMSG_SPACE(sizeof(int));
	*c = (struct cmsghdr){ .cmsg_len = CMSG_LEN(sizeof(int)),
			       .cmsg_level = SOL_SOCKET,
			       .cmsg_type = SCM_RIGHTS };
	memcpy(CMSG_DATA(c), pair, sizeof(int));
	RET(SYS_sendmsg, pair[0], &msg, 0);
	memset(control, 0, sizeof(control));
	msg.msg_iov = &in;
	msg.msg_controllen = sizeof(control);
	RET(SYS_recvmsg, pair[1], &msg, MSG_CMSG_CLOEXEC);
	DATA(buf, sizeof(buf));
	trial_note(t, __LINE__, "control", (int64_t)msg.msg_controllen);
	trial_note(t, __LINE__, "flags", msg.msg_flags);
	RET(SYS_recvmsg, pair[1], NULL, 0);
	RET(SYS_sendmsg, pair[1], NULL, 0);
	RET(SYS_recvmsg, pair[1], &msg, MSG_DONTWAIT);
	memcpy(&copy, CMSG_DATA(c), sizeof(copy));
	RET(SYS_close, copy);
	RET(SYS_close, pair[0]);
	RET(SYS_recvmsg, pair[1], &msg, 0);
}

TRIAL(many_messages_go_in_one_call)
{
	char buf[2][8] = { "one", "two" }, in[2][8] = { "", "" };
	struct iovec v[2] = { { buf[0], 3 }, { buf[1], 3 } };
	struct iovec w[2] = { { in[0], 8 }, { in[1], 8 } };
	struct mmsghdr msg[2] = {
		{ .msg_hdr = { .msg_iov = &v[0], .msg_iovlen = 1 } },
		{ .msg_hdr = { .msg_iov = &v[1], .msg_iovlen = 1 } },
	};
	int pair[2];

	RET(SYS_socketpair, AF_UNIX, SOCK_DGRAM, 0, pair);
	RET(SYS_sendmmsg, pair[0], msg, 2, 0);
	msg[0].msg_hdr.msg_iov = &w[0];
	msg[1].msg_hdr.msg_iov = &w[1];
	RET(SYS_recvmmsg, pair[1], msg, 2, 0, NULL);
	DATA(in, sizeof(in));
	RET(SYS_recvmmsg, pair[1], msg, 2, MSG_DONTWAIT, NULL);
}

TRIAL(pipes_carry_data_and_end)
{
	char buf[16] = "";
	int p[2], n = 0;

	RET(SYS_pipe2, p, O_CLOEXEC);
	RET(SYS_write, p[1], "abc", 3);
	RET(SYS_ioctl, p[0], FIONREAD, &n);
	trial_note(t, __LINE__, "FIONREAD", n);
	RET(SYS_ioctl, p[0], TIOCGWINSZ, buf);
	RET(SYS_read, p[0], buf, sizeof(buf));
	DATA(buf, sizeof(buf));
	RET(SYS_lseek, p[0], 0, SEEK_SET);
	RET(SYS_pread64, p[0], buf, 1, 0);
	RET(SYS_pwrite64, p[1], buf, 1, 0);
	RET(SYS_read, p[1], buf, 1);
	RET(SYS_write, p[0], buf, 1);
	RET(SYS_fsync, p[0]);
	RET(SYS_close, p[1]);
	RET(SYS_read, p[0], buf, 1);
	RET(SYS_close, p[0]);
	RET(SYS_pipe2, p, 0x7f000000);
}

static void wait_in_vain(struct trial *t, int fd)
{
	static char much[1 << 20];

	RET(SYS_recvfrom, fd, much, 1, 0, NULL, NULL);
	RET(SYS_read, fd, much, 1);
	trial_note(t, __LINE__, "some is sent",
		   SYS(SYS_sendto, fd, much, sizeof(much), 0, NULL, 0) > 0);
	RET(SYS_sendto, fd, much, sizeof(much), 0, NULL, 0);
	RET(SYS_close, fd);
}

/* The call has to end. For how long it waits depends on the kernel's clock. */
TRIAL(a_sockets_own_time_limit_ends_a_call)
{
	struct timeval soon = { 0, 20000 };
	int pair[2];

	stream_pair(t, pair);
	RET(SYS_setsockopt, pair[0], SOL_SOCKET, SO_RCVTIMEO, &soon,
	    sizeof(soon));
	RET(SYS_setsockopt, pair[0], SOL_SOCKET, SO_SNDTIMEO, &soon,
	    sizeof(soon));
	wait_in_vain(t, pair[0]);
	RET(SYS_close, pair[1]);
	/* A limit that was set before the loop has seen the socket. */
	CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
	setsockopt(pair[0], SOL_SOCKET, SO_RCVTIMEO, &soon, sizeof(soon));
	setsockopt(pair[0], SOL_SOCKET, SO_SNDTIMEO, &soon, sizeof(soon));
	wait_in_vain(t, pair[0]);
}

/*
 * A plain write sends SIGPIPE to its thread. If that is ignored, the write fails
 * with EPIPE.
 */
TRIAL(writing_without_a_reader_is_epipe)
{
	int p[2], pair[2];

	signal(SIGPIPE, SIG_IGN);
	RET(SYS_pipe2, p, O_CLOEXEC);
	stream_pair(t, pair);
	RET(SYS_close, p[0]);
	RET(SYS_close, pair[0]);
	RET(SYS_write, p[1], "x", 1);
	RET(SYS_write, pair[1], "x", 1);
	RET(SYS_sendto, pair[1], "x", 1, 0, NULL, 0);
	signal(SIGPIPE, SIG_DFL);
	RET(SYS_sendto, pair[1], "x", 1, MSG_NOSIGNAL, NULL, 0);
}

TRIAL(a_descriptor_may_become_nonblocking)
{
	int event = FD(SYS_eventfd2, 0, EFD_NONBLOCK);
	char buf[8];

	RET(SYS_read, event, buf, 8);
	RET(SYS_fcntl, event, F_SETFL, 0);
	RET(SYS_write, event, &(uint64_t){ 3 }, 8);
	RET(SYS_read, event, buf, 8);
	DATA(buf, 8);
	RET(SYS_fcntl, event, F_SETFL, O_NONBLOCK);
	RET(SYS_read, event, buf, 8);
}

TRIAL(eventfds_count)
{
	int fd = FD(SYS_eventfd2, 2, EFD_SEMAPHORE);
	uint64_t v = 0;

	RET(SYS_read, fd, &v, 8);
	DATA(&v, 8);
	RET(SYS_read, fd, &v, 4);
	RET(SYS_write, fd, &(uint64_t){ UINT64_MAX }, 8);
	RET(SYS_read, fd, &v, 8);
	RET(SYS_close, fd);
	FD(SYS_eventfd2, 0, 0x7f000000);
}

TRIAL(descriptors_are_duplicated)
{
	int fd = FD(SYS_eventfd2, 5, 0), copy;
	uint64_t v;

	copy = FD(SYS_dup, fd);
	RET(SYS_read, copy, &v, 8);
	DATA(&v, 8);
	RET(SYS_dup3, fd, 500, O_CLOEXEC);
	RET(SYS_fcntl, 500, F_GETFD, 0);
	RET(SYS_dup3, fd, fd, 0);
	RET(SYS_fcntl, fd, F_DUPFD_CLOEXEC, 600);
	RET(SYS_fcntl, fd, F_GETFL, 0);
	RET(SYS_fcntl, fd, 9999, 0);
	RET(SYS_close_range, 500, 600, 0);
	RET(SYS_fcntl, 500, F_GETFD, 0);
}

TRIAL(splice_and_tee_move_pages)
{
	char buf[16] = "";
	struct iovec v = { buf, 4 };
	int a[2], b[2];

	RET(SYS_pipe2, a, 0);
	RET(SYS_pipe2, b, 0);
	RET(SYS_write, a[1], "abcdef", 6);
	RET(SYS_tee, a[0], b[1], 2, 0);
	RET(SYS_splice, a[0], NULL, b[1], NULL, 3, 0);
	RET(SYS_read, b[0], buf, sizeof(buf));
	DATA(buf, sizeof(buf));
	RET(SYS_splice, a[0], NULL, a[1], NULL, 3, 0);
	RET(SYS_splice, a[0], NULL, b[1], NULL, 0, 0);
	RET(SYS_splice, a[0], buf, b[1], NULL, 1, 0);
	RET(SYS_vmsplice, b[1], &v, 1, 0);
	RET(SYS_read, b[0], buf + 8, 8);
	DATA(buf, sizeof(buf));
	RET(SYS_tee, a[0], a[1], 1, 0);
	RET(SYS_close, a[1]);
	RET(SYS_splice, a[0], NULL, b[1], NULL, 9, 0);
	RET(SYS_splice, a[0], NULL, b[1], NULL, 9, 0);
}

TRIAL(epoll_tells_what_is_ready)
{
	struct epoll_event ev = { .events = EPOLLIN, .data.u64 = 7 };
	struct epoll_event out[2] = { { .events = 0 }, { .events = 0 } };
	int ep = FD(SYS_epoll_create1, EPOLL_CLOEXEC);
	int fd = FD(SYS_eventfd2, 0, 0);

	RET(SYS_epoll_ctl, ep, EPOLL_CTL_ADD, fd, &ev);
	RET(SYS_epoll_ctl, ep, EPOLL_CTL_ADD, fd, &ev);
	RET(SYS_epoll_ctl, ep, EPOLL_CTL_ADD, ep, &ev);
	RET(SYS_epoll_ctl, ep, EPOLL_CTL_MOD, 999, &ev);
	RET(SYS_epoll_pwait, ep, out, 2, 0, NULL, 8);
	RET(SYS_epoll_pwait, ep, out, 2, 10, NULL, 8);
	RET(SYS_write, fd, &(uint64_t){ 1 }, 8);
	RET(SYS_epoll_pwait, ep, out, 2, -1, NULL, 8);
	DATA(out, sizeof(out[0]));
	RET(SYS_epoll_pwait, ep, out, 0, 0, NULL, 8);
	RET(SYS_epoll_pwait, ep, NULL, 2, 0, NULL, 8);
	RET(SYS_epoll_ctl, ep, EPOLL_CTL_DEL, fd, NULL);
	RET(SYS_epoll_ctl, ep, EPOLL_CTL_DEL, fd, NULL);
	RET(SYS_epoll_ctl, ep, 99, fd, &ev);
	RET(SYS_epoll_ctl, ep, EPOLL_CTL_ADD, fd, NULL);
}

TRIAL(poll_tells_what_is_ready)
{
	struct timespec soon = { 0, 5000000 };
	struct timeval brief = { 0, 1000 };
	struct pollfd fds[3] = {
		{ .events = POLLIN }, { .events = POLLOUT }, { .fd = 9999 },
	};
	int p[2];

	RET(SYS_pipe2, p, 0);
	fds[0].fd = p[0];
	fds[1].fd = p[1];
	(void)brief;
	RET(SYS_ppoll, fds, 1, &soon, NULL, 8);
	RET(SYS_ppoll, fds, 3, NULL, NULL, 8);
	trial_note(t, __LINE__, "revents", fds[1].revents);
	trial_note(t, __LINE__, "revents", fds[2].revents);
	RET(SYS_write, p[1], "x", 1);
	RET(SYS_ppoll, fds, 1, NULL, NULL, 8);
	trial_note(t, __LINE__, "revents", fds[0].revents);
	RET(SYS_ppoll, NULL, 1, NULL, NULL, 8);
	RET(SYS_ppoll, fds, 100000000, NULL, NULL, 8);
	soon.tv_sec = -1;
	RET(SYS_ppoll, fds, 1, &soon, NULL, 8);
#ifdef SYS_poll
	RET(SYS_poll, fds, 3, 5);
	RET(SYS_poll, NULL, 0, 1);
	RET(SYS_select, 0, NULL, NULL, NULL, &brief);
#endif
}

TRIAL(timerfds_expire)
{
	struct itimerspec when = { .it_value = { 0, 1000000 } };
	int fd = FD(SYS_timerfd_create, CLOCK_MONOTONIC, 0);
	uint64_t n = 0;

	FD(SYS_timerfd_create, 99, 0);
	RET(SYS_timerfd_settime, fd, 0, &when, NULL);
	RET(SYS_read, fd, &n, 8);
	DATA(&n, 8);
	RET(SYS_read, fd, &n, 7);
	RET(SYS_timerfd_settime, fd, 0, NULL, NULL);
}

/* Post both to the given loop, and to the default loop. */
LOOP_TEST(recv_and_send_need_no_address)
{
	struct call call = CALL_INIT;
	char text[4] = "";
	int s[2];

	CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, s), 0);
	CHECK_EQ(flexsc_loop_send(loop, &call.cb, s[0], "abc", 3, 0), 0);
	CHECK_EQ(await_call(loop, &call), 3);
	call.runs = 0;
	CHECK_EQ(flexsc_loop_recv(loop, &call.cb, s[1], text, 2, MSG_PEEK), 0);
	CHECK_EQ(await_call(loop, &call), 2);
	CHECK_EQ(strcmp(text, "ab"), 0);
	CHECK_EQ(flexsc_loop_set_default(loop), 0);
	call.runs = 0;
	CHECK_EQ(flexsc_recv(&call.cb, s[1], text, 3, 0), 0);
	CHECK_EQ(await_call(loop, &call), 3);
	CHECK_EQ(strcmp(text, "abc"), 0);
	close(s[1]);
	call.runs = 0;
	CHECK_EQ(flexsc_send(&call.cb, s[0], "x", 1, MSG_NOSIGNAL), 0);
	CHECK_EQ(await_call(loop, &call), -EPIPE);
}
