/* SPDX-License-Identifier: MIT */
/* Calls that wait, by user threads: results, time limits, what ends them. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/sendfile.h>
#include <sys/timerfd.h>
#include <sys/uio.h>
#include <sys/wait.h>

#include "lib/base/syscall.h"
#include "threads.h"

static int pair[2];

static void *write_later(void *arg)
{
	settle();
	CHECK_EQ(write(*(int *)arg, "x", 1), 1);
	return NULL;
}

static void *wait_in_every_way(void *arg)
{
	int epoll = epoll_create1(0), fd = *(int *)arg;
	struct epoll_event event = { .events = EPOLLIN };
	struct pollfd polled = { fd, POLLIN, 0 };
	struct timespec minute = { 60, 0 };
	struct timeval long_time = { 60, 0 };
	fd_set set;
	char byte;

	CHECK_EQ(epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event), 0);
	CHECK_EQ(poll(&polled, 1, -1), 1);
	CHECK_EQ(polled.revents, POLLIN);
	CHECK_EQ(read(fd, &byte, 1), 1);
	CHECK_EQ(poll(&polled, 1, 60000), 1);
	CHECK_EQ(read(fd, &byte, 1), 1);
	CHECK_EQ(ppoll(&polled, 1, &minute, NULL), 1);
	CHECK_EQ(minute.tv_sec, 60);
	CHECK_EQ(read(fd, &byte, 1), 1);
	CHECK_EQ(epoll_wait(epoll, &event, 1, -1), 1);
	CHECK_EQ(read(fd, &byte, 1), 1);
	CHECK_EQ(epoll_wait(epoll, &event, 1, 60000), 1);
	CHECK_EQ(read(fd, &byte, 1), 1);
	FD_ZERO(&set);
	FD_SET(fd, &set);
	CHECK_EQ(select(fd + 1, &set, NULL, NULL, &long_time), 1);
	CHECK(FD_ISSET(fd, &set));
	CHECK_EQ(recv(fd, &byte, 1, 0), 1);
	close(epoll);
	return NULL;
}

TEST(every_poll_sees_what_arrives)
{
	pthread_t waiter;

	CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
	waiter = start(wait_in_every_way, &pair[0]);
	for (int i = 0; i < 6; i++)
		join(start(write_later, &pair[1]));
	join(waiter);
}

static void *expect_eagain(void *arg)
{
	int fds[2], one = 1, flags;
	char byte;

	CHECK_EQ(pipe2(fds, O_NONBLOCK), 0);
	CHECK_EQ(read(fds[0], &byte, 1), -1);
	CHECK_EQ(errno, EAGAIN);
	close(fds[0]);
	close(fds[1]);
	/* The same numbers, perhaps; the flag comes later, and goes. */
	CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, fds), 0);
	CHECK_EQ(write(fds[1], "x", 1), 1);
	CHECK_EQ(read(fds[0], &byte, 1), 1);
	CHECK_EQ(recv(fds[0], &byte, 1, MSG_DONTWAIT), -1);
	CHECK_EQ(errno, EAGAIN);
	flags = fcntl(fds[0], F_GETFL);
	CHECK_EQ(fcntl(fds[0], F_SETFL, flags | O_NONBLOCK), 0);
	CHECK_EQ(read(fds[0], &byte, 1), -1);
	CHECK_EQ(errno, EAGAIN);
	CHECK_EQ(fcntl(fds[0], F_SETFL, flags), 0);
	CHECK_EQ(ioctl(fds[0], FIONBIO, &one), 0);
	CHECK_EQ(recv(fds[0], &byte, 1, 0), -1);
	CHECK_EQ(errno, EAGAIN);
	CHECK_EQ(dup2(fds[1], 100), 100);
	CHECK_EQ(dup2(fds[0], 100), 100);
	CHECK_EQ(read(100, &byte, 1), -1);
	CHECK_EQ(errno, EAGAIN);
	close(100);
	close(fds[0]);
	close(fds[1]);
	return arg;
}

TEST(a_non_blocking_descriptor_blocks_nobody)
{
	for (int i = 0; i < 5; i++)
		join(start(expect_eagain, NULL));
}

static int number_of(int fd)
{
	FILE *file = fdopen(fd, "r");
	char byte;

	CHECK_EQ(read(fd, &byte, 1), 1);
	CHECK_EQ(fclose(file), 0);
	return fd;
}

/* libc closes it for itself; what was known of its number doesn't hold on. */
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

static int owner_of(int fd)
{
	CHECK_EQ(fcntl(fd, F_SETOWN, -getpgrp()), 0);
	return fcntl(fd, F_GETOWN);
}

static void *control(void *arg)
{
	struct flock lock = { .l_type = F_WRLCK, .l_whence = SEEK_SET };
	FILE *file = tmpfile();
	int fd = fileno(file), copy = fcntl(fd, F_DUPFD_CLOEXEC, 50);

	CHECK(copy >= 50);
	CHECK_EQ(fcntl(copy, F_GETFD), FD_CLOEXEC);
	CHECK_EQ(fcntl(fd, F_SETLKW, &lock), 0);
	CHECK_EQ(fcntl(-1, F_GETFL), -1);
	CHECK_EQ(errno, EBADF);
	CHECK_EQ(owner_of(pair[0]), -getpgrp());
	close(copy);
	fclose(file);
	return arg;
}

TEST(descriptors_are_controlled)
{
	CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
	join(start(control, NULL));
}

static void *limited_read(void *arg)
{
	struct timeval limit = { 0, 50000 };
	uint64_t begin;
	char byte;

	CHECK_EQ(setsockopt(pair[0], SOL_SOCKET, SO_RCVTIMEO, &limit,
			    sizeof(limit)), 0);
	begin = now_ns();
	CHECK_EQ(read(pair[0], &byte, 1), -1);
	CHECK_EQ(errno, EAGAIN);
	CHECK(now_ns() - begin >= 45 * MS);
	return arg;
}

TEST(a_socket_s_time_limit_holds)
{
	CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
	join(start(limited_read, NULL));
}

static int listener;
static struct sockaddr_in address;

static void *serve_one(void *arg)
{
	char buf[1000];
	int fd = accept(listener, NULL, NULL);
	ssize_t n;

	CHECK(fd >= 0);
	while ((n = recv(fd, buf, sizeof(buf), 0)) > 0)
		CHECK_EQ(send(fd, buf, (size_t)n, 0), n);
	CHECK_EQ(n, 0);
	close(fd);
	return arg;
}

static void *be_client(void *arg)
{
	int fd = socket(AF_INET, SOCK_STREAM, 0);
	char out[1000], in[1000];

	CHECK_EQ(connect(fd, (struct sockaddr *)&address, sizeof(address)), 0);
	for (int i = 0; i < 200; i++) {
		memset(out, i + (int)(long)arg, sizeof(out));
		CHECK_EQ(write(fd, out, sizeof(out)), sizeof(out));
		CHECK_EQ(recv(fd, in, sizeof(in), MSG_WAITALL), sizeof(in));
		CHECK_EQ(memcmp(in, out, sizeof(in)), 0);
	}
	close(fd);
	return NULL;
}

TEST(servers_and_clients_in_one_process)
{
	pthread_t servers[32], clients[32];

	listener = listening_socket(&address, 0, 64);
	for (long i = 0; i < 32; i++) {
		servers[i] = start(serve_one, NULL);
		clients[i] = start(be_client, (void *)i);
	}
	for (int i = 0; i < 32; i++) {
		join(clients[i]);
		join(servers[i]);
	}
}

#define BULK	(8 << 20)

static void *pour(void *arg)
{
	static char block[1 << 16];
	size_t left = BULK;

	memset(block, 'b', sizeof(block));
	while (left) {
		ssize_t n = write(*(int *)arg, block,
				  left < sizeof(block) ? left : sizeof(block));

		CHECK(n > 0);
		left -= (size_t)n;
	}
	close(*(int *)arg);
	return NULL;
}

static void *drain(void *arg)
{
	size_t sum = 0;
	char buf[10000];
	ssize_t n;

	while ((n = read(*(int *)arg, buf, sizeof(buf))) > 0)
		sum += (size_t)n;
	CHECK_EQ(sum, BULK);
	return NULL;
}

TEST(a_pipe_carries_more_than_it_holds)
{
	pthread_t a, b;

	CHECK_EQ(pipe(pair), 0);
	a = start(pour, &pair[1]);
	b = start(drain, &pair[0]);
	join(a);
	join(b);
}

TEST_BY_THREAD(events_and_timers_are_read)
{
	int event = eventfd(0, 0), timer = timerfd_create(CLOCK_MONOTONIC, 0);
	struct itimerspec soon = { .it_value = { 0, 20000000 } };
	uint64_t value = 3;

	CHECK_EQ(write(event, &value, 8), 8);
	CHECK_EQ(read(event, &value, 8), 8);
	CHECK_EQ(value, 3);
	CHECK_EQ(timerfd_settime(timer, 0, &soon, NULL), 0);
	CHECK_EQ(read(timer, &value, 8), 8);
	CHECK_EQ(value, 1);
	close(event);
	close(timer);
}

static void *use_files(void *arg)
{
	char in[64] = "";
	struct iovec parts[2] = { { (void *)"ab", 2 }, { (void *)"cd", 2 } };
	int fd = open(".", O_TMPFILE | O_RDWR, 0600), fds[2];

	CHECK(fd >= 0);
	CHECK_EQ(pwrite(fd, "0123456789", 10, 0), 10);
	CHECK_EQ(lseek(fd, 10, SEEK_SET), 10);
	CHECK_EQ(writev(fd, parts, 2), 4);
	CHECK_EQ(pread(fd, in, 20, 8), 6);
	CHECK_EQ(memcmp(in, "89abcd", 6), 0);
	CHECK_EQ(fsync(fd), 0);
	CHECK_EQ(fdatasync(fd), 0);
	CHECK_EQ(pipe(fds), 0);
	CHECK_EQ(sendfile(fds[1], fd, &(off_t){ 0 }, 14), 14);
	CHECK_EQ(read(fds[0], in, sizeof(in)), 14);
	CHECK_EQ(splice(fd, &(off_t){ 4 }, fds[1], NULL, 5, 0), 5);
	CHECK_EQ(read(fds[0], in, sizeof(in)), 5);
	CHECK_EQ(memcmp(in, "45678", 5), 0);
	CHECK_EQ(read(fd, in, sizeof(in)), 0);
	close(fds[0]);
	close(fds[1]);
	close(fd);
	return arg;
}

TEST(files_are_read_and_written)
{
	enter_scratch();
	run_all(8, use_files, NULL);
	leave_scratch();
}

static atomic_int begun;

static void *blocked(void *arg)
{
	char byte;

	begun++;
	return (void *)recv(*(int *)arg, &byte, 1, 0);
}

/* Waits until so many threads have begun, and wait. */
static void await_begun(int n)
{
	while (begun < n)
		usleep(1000);
	await_quiet();
}

TEST(a_shutdown_ends_a_receive)
{
	pthread_t thread;

	CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
	thread = start(blocked, &pair[0]);
	await_begun(1);
	CHECK_EQ(shutdown(pair[0], SHUT_RDWR), 0);
	CHECK(join(thread) == NULL);
}

static void *send_all(void *arg)
{
	static const char much[1 << 20];

	begun++;
	return (void *)send(*(int *)arg, much, sizeof(much), MSG_NOSIGNAL);
}

/* Close it, or have another file in its place, or one of many. */
static void close_somehow(int fd, int how, int other)
{
	if (how == 0)
		CHECK_EQ(close(fd), 0);
	else if (how == 1)
		CHECK_EQ(dup2(other, fd), fd);
	else if (how == 2)
		CHECK_EQ(dup3(other, fd, O_CLOEXEC), fd);
	else
		CHECK_EQ(close_range((unsigned int)fd, (unsigned int)fd, 0), 0);
	if (how == 0 || how == 3)
		CHECK_EQ(fcntl(other, F_DUPFD, fd), fd);
}

TEST(a_closed_descriptor_s_calls_keep_its_file)
{
	char buf[4096];
	int other[2];

	CHECK_EQ(pipe(other), 0);
	CHECK_EQ(write(other[1], "another's", 9), 9);
	for (int how = 0; how < 4; how++) {
		pthread_t readers[3], writer;
		int fd;

		CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
		fd = pair[0];
		start_all(readers, 3, blocked, &fd);
		writer = start(send_all, &fd);
		await_begun(4 * (how + 1));
		close_somehow(fd, how, other[0]);
		settle();
		CHECK_EQ(write(pair[1], "xyz", 3), 3);
		for (int i = 0; i < 3; i++)
			CHECK(join(readers[i]) == (void *)1L);
		/* It ends with the last of them. */
		while (read(pair[1], buf, sizeof(buf)) > 0)
			;
		CHECK(join(writer) == (void *)(1L << 20));
		CHECK_EQ(close(pair[1]), 0);
		CHECK_EQ(close(fd), 0);
	}
	CHECK_EQ(read(other[0], buf, sizeof(buf)), 9);
}

#define UNUSED_FROM	256U	/* the program's own descriptors are below */
#define TRANSFERS	400U

static int pipes[3][2];

static void *write_long(void *arg)
{
	static const char much[256U << 10];

	for (unsigned int i = 0; i < TRANSFERS; i++)
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

/* What the program doesn't have, such as a copy that a write goes on with. */
static void *close_unused(void *arg)
{
	while (begun < 3)
		CHECK_EQ(close_range(UNUSED_FROM, ~0U, 0), 0);
	return arg;
}

TEST(a_range_that_is_closed_leaves_out_what_the_program_did_not_open)
{
	pthread_t threads[8];

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

/* Who waits for its own children only has to be who made them. */
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
	/* Its children are another thread's now. */
	CHECK_EQ(waitpid(child, &status, 0), child);
	CHECK_EQ(WEXITSTATUS(status), 3);
}

static void *close_all(void *arg)
{
	int fds[2];
	char byte;

	closefrom(3);
	/* The lowest numbers are the program's. */
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
