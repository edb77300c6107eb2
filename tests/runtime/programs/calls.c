/* SPDX-License-Identifier: MIT */
/* Calls that close descriptors, and waits for children. tests/lib/pairs has the rest. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/sockios.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "threads.h"

static int pair[2];

static void *write_later(void *arg)
{
	settle();
	CHECK_EQ(write(*(int *)arg, "x", 1), 1);
	return NULL;
}

static int number_of(int fd)
{
	FILE *file = fdopen(fd, "r");
	char byte;

	CHECK_EQ(read(fd, &byte, 1), 1);
	CHECK_EQ(fclose(file), 0);
	return fd;
}

/*
 * fclose() in libc closes the number without the runtime. The runtime must not apply
 * its facts about the number to the next file.
 */
static void *use_number_again(void *arg)
{
	int closed[2], open_ones[2], fd;
	char name[64], byte;

	CHECK_EQ(pipe(closed), 0);
	CHECK_EQ(pipe(open_ones), 0);
	CHECK_EQ(write(closed[1], "x", 1), 1);
	fd = number_of(closed[0]);
	snprintf(name, sizeof(name), "/proc/self/fd/%d", open_ones[0]);
	CHECK_EQ(open(name, O_RDONLY | O_NONBLOCK), fd);
	CHECK_EQ(read(fd, &byte, 1), -1);
	CHECK_EQ(errno, EAGAIN);
	close(fd);
	close(closed[1]);
	close(open_ones[0]);
	close(open_ones[1]);
	return arg;
}

TEST(a_stream_s_number_can_be_used_again)
{
	for (int i = 0; i < 5; i++)
		join(start(use_number_again, NULL));
}

static atomic_int begun;

static void *blocked(void *arg)
{
	char byte;

	begun++;
	return (void *)recv(*(int *)arg, &byte, 1, 0);
}

/* Waits until this many threads have begun, and wait. */
static void await_begun(int n)
{
	while (begun < n)
		usleep(1000);
	await_quiet();
}

static atomic_bool cleared;

static void *clear_flags(void *arg)
{
	while (!cleared)
		CHECK_EQ(fcntl(*(int *)arg, F_SETFL, 0), 0);
	return arg;
}

/* The flags that the runtime caches are those that the last call has set. */
TEST(flags_that_threads_set_at_once_are_the_kernels)
{
	int on = 1;
	char byte;

	for (unsigned int round = 0; round < 300; round++) {
		pthread_t thread;

		cleared = false;
		CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
		thread = start(clear_flags, &pair[0]);
		CHECK_EQ(ioctl(pair[0], FIONBIO, &on), 0);
		cleared = true;
		CHECK_EQ(join(thread), &pair[0]);
		if (fcntl(pair[0], F_GETFL) & O_NONBLOCK)
			CHECK_EQ(read(pair[0], &byte, 1), -1);
		close(pair[0]);
		close(pair[1]);
	}
}

#define UNUSED_FROM	256U	/* the program's own descriptors are below */
#define TRANSFERS	400U

static int pipes[3][2];
static uint64_t writes_until;	/* on a busy machine: fewer transfers */

static void *write_long(void *arg)
{
	static const char much[256U << 10];

	for (unsigned int i = 0; i < TRANSFERS && now_ns() < writes_until; i++)
		CHECK_EQ(write(pipes[(uintptr_t)arg][1], much, sizeof(much)),
			 sizeof(much));
	close(pipes[(uintptr_t)arg][1]);
	return NULL;
}

static void *read_to_the_end(void *arg)
{
	static char much[3][256U << 10];

	while (read(pipes[(uintptr_t)arg][0], much[(uintptr_t)arg],
		    sizeof(much[0])) > 0)
		;
	begun++;
	return NULL;
}

/*
 * Closes numbers that the program doesn't use. The runtime may use them, for example
 * for the duplicate on which a write continues.
 */
static void *close_unused(void *arg)
{
	/* The kernel ignores the arguments' upper halves. */
	const unsigned long more = 1UL << 32;

	while (begun < 3) {
		CHECK_EQ(close_range(UNUSED_FROM, ~0U, 0), 0);
		CHECK_EQ(syscall(SYS_close_range, more | UNUSED_FROM, ~0U, more), 0);
	}
	return arg;
}

TEST(closing_a_range_keeps_the_runtime_s_descriptors)
{
	pthread_t threads[8];

	writes_until = now_ns() + 10 * SECOND;
	for (uintptr_t i = 0; i < 3; i++) {
		CHECK_EQ(pipe(pipes[i]), 0);
		threads[2 * i] = start(write_long, (void *)i);
		threads[2 * i + 1] = start(read_to_the_end, (void *)i);
	}
	start_all(threads + 6, 2, close_unused, NULL);
	join_all(threads, 8);
}

TEST(a_child_s_descriptors_are_its_own)
{
	pthread_t thread;
	int pid;

	CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
	thread = start(blocked, &pair[0]);
	await_begun(1);
	pid = vfork();
	if (!pid) {
		close(pair[0]);
		_exit(0);
	}
	test_reap(pid);
	CHECK_EQ(write(pair[1], "x", 1), 1);
	CHECK(join(thread) == (void *)1L);
}

/* A wait with __WNOTHREAD succeeds in the thread that has created the child. */
static void *wait_for_own(void *arg)
{
	siginfo_t info;
	int others = test_fork(), status, pid;

	if (!others)
		_exit(3);
	*(int *)arg = others;
	pid = test_fork();
	if (!pid)
		_exit(4);
	usleep(1000);
	CHECK_EQ(waitpid(pid, &status, __WNOTHREAD), pid);
	CHECK_EQ(WEXITSTATUS(status), 4);
	usleep(1000);
	CHECK_EQ(waitid(P_PID, (id_t)others, &info,
			WEXITED | WNOWAIT | __WNOTHREAD), 0);
	return arg;
}

static void *wait_for_others(void *arg)
{
	usleep(1000);
	CHECK_EQ(waitpid(*(int *)arg, NULL, __WNOTHREAD), -1);
	CHECK_EQ(errno, ECHILD);
	return arg;
}

TEST(a_thread_waits_for_its_own_children)
{
	pthread_t thread;
	int pid = test_fork(), child, status;

	if (!pid)
		_exit(5);
	join(start(wait_for_others, &pid));
	CHECK_EQ(waitpid(pid, &status, __WNOTHREAD), pid);
	CHECK_EQ(WEXITSTATUS(status), 5);
	thread = start(wait_for_own, &child);
	join(thread);
	/* When a thread ends, its children become those of another thread. */
	CHECK_EQ(waitpid(child, &status, 0), child);
	CHECK_EQ(WEXITSTATUS(status), 3);
}

static void *close_all(void *arg)
{
	int fds[2];
	char byte;

	closefrom(3);
	/* After closefrom() the program gets the lowest numbers. */
	CHECK_EQ(pipe(fds), 0);
	CHECK(fds[0] == 3 && fds[1] == 4);
	join(start(write_later, &fds[1]));
	CHECK_EQ(read(fds[0], &byte, 1), 1);
	CHECK_EQ(close(fds[0]), 0);
	CHECK_EQ(close(fds[0]), -1);
	CHECK_EQ(errno, EBADF);
	return arg;
}

TEST(a_program_may_close_everything)
{
	for (int i = 0; i < 20; i++)
		join(start(close_all, NULL));
}

/* Other descriptors are closed while a write waits for room. */

#define MEGABYTE	(1 << 20)

static void *write_megabyte(void *arg)
{
	char *bytes = calloc(1, MEGABYTE);

	CHECK_EQ(write(*(int *)arg, bytes, MEGABYTE), MEGABYTE);
	free(bytes);
	return arg;
}

static void *take_megabyte(void *arg)
{
	char bytes[4096];
	ssize_t n;

	closefrom(1000);
	for (int left = MEGABYTE; left; left -= (int)n) {
		n = read(*(int *)arg, bytes, sizeof(bytes));
		CHECK(n > 0);
		CHECK_EQ(close_range(900, 910, 0), 0);
	}
	return arg;
}

TEST(a_write_goes_on_while_other_descriptors_are_closed)
{
	pthread_t writer, reader;
	int fds[2];

	for (int i = 0; i < 20; i++) {
		CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, fds), 0);
		writer = start(write_megabyte, &fds[1]);
		reader = start(take_megabyte, &fds[0]);
		join(reader);
		join(writer);
		close(fds[0]);
		close(fds[1]);
	}
}

/* A send that doesn't wait at first. */

struct sending {
	int pipe[2], pair[2];
};

static void *receive_megabyte(void *arg)
{
	char bytes[4096];
	ssize_t n;

	for (int left = MEGABYTE; left; left -= (int)n) {
		n = recv(*(int *)arg, bytes, sizeof(bytes), 0);
		CHECK(n > 0);
	}
	return arg;
}

/*
 * The read waits for a descriptor whose number was closed more often than the
 * socket's.
 */
static void *send_megabyte(void *arg)
{
	const struct sending *s = arg;
	char *bytes = calloc(1, MEGABYTE), byte;

	CHECK_EQ(read(s->pipe[0], &byte, 1), 1);
	CHECK_EQ(send(s->pair[0], bytes, MEGABYTE, 0), MEGABYTE);
	free(bytes);
	return arg;
}

TEST(a_send_is_whole_after_a_wait_for_a_number_that_was_closed)
{
	pthread_t sender, receiver;
	struct sending s;

	CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, s.pair), 0);
	for (int i = 0; i < 20; i++) {
		CHECK_EQ(pipe(s.pipe), 0);
		sender = start(send_megabyte, &s);
		receiver = start(receive_megabyte, &s.pair[1]);
		settle();
		CHECK_EQ(write(s.pipe[1], "x", 1), 1);
		join(sender);
		join(receiver);
		close(s.pipe[0]);
		close(s.pipe[1]);
	}
}

#define MESSAGES	16

static void *send_messages(void *arg)
{
	static char bytes[MEGABYTE / MESSAGES];
	struct iovec part = { bytes, sizeof(bytes) };
	struct mmsghdr messages[MESSAGES];

	for (int i = 0; i < MESSAGES; i++)
		messages[i] = (struct mmsghdr){
			.msg_hdr = { .msg_iov = &part, .msg_iovlen = 1 },
		};
	usleep(1000);
	CHECK_EQ(sendmmsg(*(int *)arg, messages, MESSAGES, 0), MESSAGES);
	for (int i = 0; i < MESSAGES; i++)
		CHECK_EQ(messages[i].msg_len, sizeof(bytes));
	return arg;
}

TEST(all_messages_are_sent)
{
	pthread_t sender;
	int fds[2];

	CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, fds), 0);
	sender = start(send_messages, &fds[0]);
	settle();
	join(start(receive_megabyte, &fds[1]));
	join(sender);
}

/* A connection is reset while a call waits. The next call gets the error. */

#define FEW		1000

static char flood[32 * MEGABYTE];

static void connect_pair(int fds[2])
{
	struct sockaddr_in address = { .sin_family = AF_INET };
	const int listener = socket(AF_INET, SOCK_STREAM, 0);
	socklen_t size = sizeof(address);

	address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	CHECK_EQ(bind(listener, (void *)&address, size), 0);
	CHECK_EQ(listen(listener, 1), 0);
	CHECK_EQ(getsockname(listener, (void *)&address, &size), 0);
	fds[0] = socket(AF_INET, SOCK_STREAM, 0);
	CHECK_EQ(connect(fds[0], (void *)&address, size), 0);
	fds[1] = accept(listener, NULL, NULL);
	CHECK(fds[1] >= 0);
	close(listener);
}

/* Wait until bytes have arrived at fd, so the sender has begun to send. */
static void await_bytes(int fd)
{
	struct pollfd readable = { .fd = fd, .events = POLLIN };

	CHECK_EQ(poll(&readable, 1, -1), 1);
}

/* Wait until the thread that receives from "to" has received all that "from" sent. */
static void await_taken(int from, int to)
{
	int unsent, unread;

	do {
		usleep(1000);
		CHECK_EQ(ioctl(from, SIOCOUTQ, &unsent), 0);
		CHECK_EQ(ioctl(to, SIOCINQ, &unread), 0);
	} while (unsent || unread);
}

static void reset(int fd)
{
	const struct linger at_once = { 1, 0 };

	CHECK_EQ(setsockopt(fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof(at_once)), 0);
	CHECK_EQ(close(fd), 0);
}

static int way_to_send;

static ssize_t send_somehow(int fd, size_t size)
{
	struct iovec part = { flood, size };
	const struct msghdr message = { .msg_iov = &part, .msg_iovlen = 1 };

	switch (way_to_send % 3) {
	case 0:
		return send(fd, flood, size, 0);
	case 1:
		return write(fd, flood, size);
	default:
		return sendmsg(fd, &message, 0);
	}
}

static void *send_twice(void *arg)
{
	ssize_t n;

	usleep(1000);
	n = send_somehow(*(int *)arg, sizeof(flood));
	CHECK(n > 0 && n < (ssize_t)sizeof(flood));
	CHECK_EQ(send_somehow(*(int *)arg, 1), -1);
	CHECK_EQ(errno, ECONNRESET);
	return arg;
}

static void *receive_twice(void *arg)
{
	char bytes[2 * FEW];

	CHECK_EQ(recv(*(int *)arg, bytes, sizeof(bytes), MSG_WAITALL), FEW);
	CHECK_EQ(recv(*(int *)arg, bytes, sizeof(bytes), MSG_WAITALL), -1);
	CHECK_EQ(errno, ECONNRESET);
	return arg;
}

/* A SIGPIPE would end the test. */
TEST(the_send_after_a_reset_fails)
{
	pthread_t thread;
	int fds[2];

	for (way_to_send = 0; way_to_send < 6; way_to_send++) {
		connect_pair(fds);
		thread = start(send_twice, &fds[0]);
		await_bytes(fds[1]);
		settle();
		reset(fds[1]);
		join(thread);
		close(fds[0]);
	}
}

TEST(the_receive_after_a_reset_fails)
{
	char bytes[FEW] = { 0 };
	pthread_t thread;
	int fds[2];

	for (int i = 0; i < 5; i++) {
		connect_pair(fds);
		thread = start(receive_twice, &fds[0]);
		CHECK_EQ(send(fds[1], bytes, FEW, 0), FEW);
		await_taken(fds[1], fds[0]);
		settle();
		reset(fds[1]);
		join(thread);
		close(fds[0]);
	}
}
