/* SPDX-License-Identifier: MIT */
/*
 * Calls that have to wait although poll(2) reports their descriptor as ready: it is
 * ready for another operation. The wait uses no processor time, and ends when the
 * event occurs for which the call waits.
 */
#include "tests/harness/harness.h"

#include <linux/net_tstamp.h>

static unsigned int finished;

static void done(struct flexsc_cb *cb)
{
	(void)cb;
	finished++;
}

/* The call waits without using processor time, at least in one of several looks. */
static void check_idle(void)
{
	uint64_t used;

	run_for(loop, 100);
	do {
		used = cpu_ns();
		run_for(loop, 100);
		sleep_ms(100);
		used = cpu_ns() - used;
		CHECK_EQ(finished, 0);
	} while (used >= 10 * MS * (SANITIZED ? 4 : 1));
}

/* The error queue holds the time at which a datagram was sent. */
WAITING_TEST(an_error_queue_is_nothing_to_receive)
{
	const int when = SOF_TIMESTAMPING_TX_SOFTWARE |
			 SOF_TIMESTAMPING_SOFTWARE;
	struct call call = { .cb.callback = done };
	struct sockaddr_in one, other;
	int fd = datagram_socket(&one), peer = datagram_socket(&other);
	char c = 0;

	CHECK_EQ(setsockopt(fd, SOL_SOCKET, SO_TIMESTAMPING, &when,
			    sizeof(when)), 0);
	CHECK_EQ(sendto(fd, "x", 1, 0, (struct sockaddr *)&other,
			sizeof(other)), 1);
	POST(loop, &call, SYS_recvfrom, fd, &c, 1);
	check_idle();
	CHECK_EQ(sendto(peer, "y", 1, 0, (struct sockaddr *)&one,
			sizeof(one)), 1);
	CHECK(run_until(loop, &finished, 1, 5000));
	CHECK_EQ(call.cb.ret, 1);
	CHECK_EQ(c, 'y');
}

/* A call that peeks behind "abc", so that it waits for more. */
struct peek {
	int pair[2];
	char text[4];
	_Atomic pid_t tid;
	ssize_t ret;
};

static void peek_begin(struct peek *peek)
{
	const int at = 3;

	CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, peek->pair),
		 0);
	CHECK_EQ(setsockopt(peek->pair[0], SOL_SOCKET, SO_PEEK_OFF, &at,
			    sizeof(at)), 0);
	CHECK_EQ(write(peek->pair[1], "abc", 3), 3);
}

static void peek_end(const struct peek *peek)
{
	close(peek->pair[0]);
	close(peek->pair[1]);
}

static void *peek_plainly(void *arg)
{
	struct peek *peek = arg;

	atomic_store(&peek->tid, gettid());
	peek->ret = recv(peek->pair[0], peek->text, 3, MSG_PEEK);
	return NULL;
}

static bool sleeps(pid_t tid)
{
	char path[40], text[200] = "";
	const char *name_end;
	int fd;

	snprintf(path, sizeof(path), "/proc/self/task/%d/stat", tid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	CHECK(fd >= 0);
	CHECK(read(fd, text, sizeof(text) - 1) > 0);
	close(fd);
	name_end = strrchr(text, ')');
	CHECK(name_end);
	return name_end[2] == 'S';
}

/* The result of a plain call that waits: then Linux 6.1 begins at "abc" again. */
static ssize_t plain_result(void)
{
	struct peek peek = { 0 };
	pthread_t thread;

	peek_begin(&peek);
	thread = test_thread(peek_plainly, &peek);
	while (!atomic_load(&peek.tid) || !sleeps(peek.tid))
		sleep_ms(1);
	CHECK_EQ(write(peek.pair[1], "d", 1), 1);
	CHECK_EQ(pthread_join(thread, NULL), 0);
	peek_end(&peek);
	return peek.ret;
}

WAITING_TEST(peeked_data_ends_no_wait_for_more)
{
	struct call call = { .cb.callback = done };
	const ssize_t plainly = plain_result();
	struct peek peek = { 0 };

	peek_begin(&peek);
	POST(loop, &call, SYS_recvfrom, peek.pair[0], peek.text, 3, MSG_PEEK);
	check_idle();
	CHECK_EQ(write(peek.pair[1], "d", 1), 1);
	CHECK(run_until(loop, &finished, 1, 5000));
	/* With the module, the kernel may wait as in a plain call. */
	if (call.cb.ret != plainly)
		CHECK_EQ(call.cb.ret, 1);
	CHECK_EQ(peek.text[0], call.cb.ret == 1 ? 'd' : 'a');
	peek_end(&peek);
}

/* A socket to which the test sends until its queue is full. */
struct target {
	struct sockaddr_un address;
	socklen_t size;
	int fd;
};

static struct target target_make(void)
{
	struct target t = { .address.sun_family = AF_UNIX,
			    .size = sizeof(t.address) };

	t.fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	CHECK(t.fd >= 0);
	/* The kernel chooses the name. */
	CHECK_EQ(bind(t.fd, (struct sockaddr *)&t.address, sizeof(sa_family_t)),
		 0);
	CHECK_EQ(getsockname(t.fd, (struct sockaddr *)&t.address, &t.size), 0);
	return t;
}

static void take(const struct target *t)
{
	char c;

	CHECK_EQ(recv(t->fd, &c, 1, 0), 1);
}

static void fill(int fd, const struct target *t)
{
	while (sendto(fd, "x", 1, MSG_DONTWAIT, (struct sockaddr *)&t->address,
		      t->size) == 1)
		continue;
	CHECK_EQ(errno, EAGAIN);
}

/* A socket without a peer is always writable, because another peer might have room. */
WAITING_TEST(a_send_waits_for_room_at_its_peer)
{
	struct call calls[3] = {
		{ .cb.callback = done },
		{ .cb.callback = done },
		{ .cb.callback = done },
	};
	struct target targets[2] = { target_make(), target_make() };
	int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	fill(fd, &targets[0]);
	fill(fd, &targets[1]);
	for (unsigned int i = 0; i < 3; i++)
		POST(loop, &calls[i], SYS_sendto, fd, "y", 1, 0,
		     &targets[i / 2].address, targets[i / 2].size);
	check_idle();
	/* The last call doesn't wait behind the others, which send to another peer. */
	take(&targets[1]);
	CHECK(run_until(loop, &finished, 1, 5000));
	CHECK_EQ(calls[2].cb.ret, 1);
	while (finished < 3) {
		take(&targets[0]);
		run_for(loop, 10);
	}
	CHECK_EQ(calls[0].cb.ret, 1);
	CHECK_EQ(calls[1].cb.ret, 1);
}

static void check_whole(int fd, unsigned int nr)
{
	struct iovec iov = { "whole", 5 };
	struct msghdr message = { .msg_iov = &iov, .msg_iovlen = 1 };
	struct call call = { .cb.callback = done };
	struct target t = target_make();
	char text[8];
	int64_t n;

	CHECK_EQ(connect(fd, (struct sockaddr *)&t.address, t.size), 0);
	fill(fd, &t);
	finished = 0;
	if (nr == SYS_sendmsg)
		POST(loop, &call, SYS_sendmsg, fd, &message);
	else
		POST(loop, &call, nr, fd, "whole", 5);
	run_for(loop, 50);
	CHECK_EQ(finished, 0);
	do {
		n = recv(t.fd, text, sizeof(text), MSG_DONTWAIT);
		run_for(loop, 1);
	} while (n == 1 || (n == -1 && errno == EAGAIN));
	CHECK_EQ(n, 5);
	CHECK(run_until(loop, &finished, 1, 5000));
	CHECK_EQ(call.cb.ret, 5);
	CHECK_EQ(close(t.fd), 0);
	CHECK_EQ(close(fd), 0);
}

WAITING_TEST(a_datagram_that_waited_for_room_is_whole)
{
	const unsigned int calls[] = { SYS_sendto, SYS_sendmsg, SYS_write };
	const int type = SOCK_DGRAM | SOCK_CLOEXEC;

	for (unsigned int i = 0; i < 3; i++) {
		check_whole(socket(AF_UNIX, type, 0), calls[i]);
		check_whole((int)DO(loop, SYS_socket, AF_UNIX, type), calls[i]);
	}
}
