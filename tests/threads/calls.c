/* SPDX-License-Identifier: MIT */
/* Calls that wait, by user threads: results, time limits, what ends them. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <sched.h>
#include <semaphore.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/select.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/timerfd.h>
#include <sys/uio.h>
#include <sys/un.h>
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

static void *time_out(void *arg)
{
	int epoll = epoll_create1(0), fd = *(int *)arg;
	struct epoll_event event = { .events = EPOLLIN };
	struct pollfd polled[2] = { { fd, POLLIN, 0 }, { fd, POLLPRI, 0 } };
	struct timespec soon = { 0, 30000000 };
	struct timeval soon_too = { 0, 30000 };
	uint64_t begin = now_ns();
	fd_set set;

	CHECK_EQ(epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event), 0);
	CHECK_EQ(poll(polled, 1, 0), 0);
	CHECK_EQ(poll(polled, 1, 30), 0);
	CHECK(now_ns() - begin >= 30 * MS);
	CHECK_EQ(poll(polled, 2, 30), 0);
	CHECK_EQ(ppoll(polled, 1, &soon, NULL), 0);
	CHECK_EQ(epoll_wait(epoll, &event, 1, 30), 0);
	FD_ZERO(&set);
	FD_SET(fd, &set);
	CHECK_EQ(select(fd + 1, &set, NULL, NULL, &soon_too), 0);
	CHECK(now_ns() - begin >= 150 * MS);
	CHECK(now_ns() - begin < 5 * SECOND);
	close(epoll);
	return NULL;
}

TEST(polls_time_out)
{
	pthread_t threads[4];

	CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
	for (int i = 0; i < 4; i++)
		threads[i] = start(time_out, &pair[0]);
	for (int i = 0; i < 4; i++)
		join(threads[i]);
}

static void *expect_eagain(void *arg)
{
	uint64_t begin = now_ns();
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
	CHECK(now_ns() - begin < SECOND);
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
	CHECK(now_ns() - begin >= 45 * MS && now_ns() - begin < 5 * SECOND);
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
	socklen_t length = sizeof(address);

	listener = socket(AF_INET, SOCK_STREAM, 0);
	address = (struct sockaddr_in){
		.sin_family = AF_INET,
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK),
	};
	CHECK_EQ(bind(listener, (struct sockaddr *)&address, length), 0);
	CHECK_EQ(listen(listener, 64), 0);
	CHECK_EQ(getsockname(listener, (struct sockaddr *)&address, &length),
		 0);
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

static void *use_event(void *arg)
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
	return arg;
}

TEST(events_and_timers_are_read)
{
	join(start(use_event, NULL));
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
	pthread_t threads[8];

	enter_scratch();
	for (int i = 0; i < 8; i++)
		threads[i] = start(use_files, NULL);
	for (int i = 0; i < 8; i++)
		join(threads[i]);
	leave_scratch();
}

static atomic_int begun;

static void *blocked(void *arg)
{
	char byte;

	begun++;
	return (void *)recv(*(int *)arg, &byte, 1, 0);
}

TEST(a_shutdown_ends_a_receive)
{
	pthread_t thread;

	CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
	thread = start(blocked, &pair[0]);
	settle();
	CHECK_EQ(shutdown(pair[0], SHUT_RDWR), 0);
	CHECK(join(thread) == NULL);
}

TEST(a_closed_descriptor_s_call_goes_on)
{
	pthread_t thread;

	CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
	thread = start(blocked, &pair[0]);
	settle();
	CHECK_EQ(close(pair[0]), 0);
	settle();
	CHECK_EQ(write(pair[1], "x", 1), 1);
	CHECK(join(thread) == (void *)1L);
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
		for (int i = 0; i < 3; i++)
			readers[i] = start(blocked, &fd);
		writer = start(send_all, &fd);
		while (begun < 4 * (how + 1))
			usleep(1000);
		settle();
		settle();
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

TEST(a_child_s_descriptors_are_its_own)
{
	pthread_t thread;
	int pid;

	begun = 0;
	CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
	thread = start(blocked, &pair[0]);
	while (!begun)
		usleep(1000);
	settle();
	pid = vfork();
	if (!pid) {
		close(pair[0]);
		_exit(0);
	}
	test_reap(pid);
	CHECK_EQ(write(pair[1], "x", 1), 1);
	CHECK(join(thread) == (void *)1L);
}

static void *wait_for_child(void *arg)
{
	int status;

	CHECK_EQ(waitpid((pid_t)(long)arg, &status, 0), (pid_t)(long)arg);
	return (void *)(long)WEXITSTATUS(status);
}

TEST(a_thread_waits_for_a_child)
{
	int pid = fork();
	pthread_t thread;

	CHECK(pid >= 0);
	if (!pid) {
		usleep(50000);
		_exit(9);
	}
	thread = start(wait_for_child, (void *)(long)pid);
	CHECK(join(thread) == (void *)9L);
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
	CHECK_EQ(fds[0], 3);
	CHECK_EQ(fds[1], 4);
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

static atomic_bool stop;
static atomic_long spins;

static void *spin(void *arg)
{
	while (!stop)
		spins++;
	return arg;
}

TEST(a_thread_that_computes_stops_nobody)
{
	pthread_t threads[8];
	uint64_t begin;

	for (int i = 0; i < 8; i++)
		threads[i] = start(spin, NULL);
	begin = now_ns();
	for (int i = 0; i < 10; i++)
		usleep(1000);
	CHECK(now_ns() - begin < 5 * SECOND);
	stop = true;
	for (int i = 0; i < 8; i++)
		join(threads[i]);
}

static void *open_fifo(void *arg)
{
	int fd = open(arg, O_RDONLY);
	char byte;

	CHECK(fd >= 0);
	CHECK_EQ(read(fd, &byte, 1), 1);
	close(fd);
	return NULL;
}

TEST(a_call_that_waits_unexpectedly_stops_nobody)
{
	pthread_t threads[4];
	int fd;

	enter_scratch();
	CHECK_EQ(mkfifo("fifo", 0600), 0);
	for (int i = 0; i < 4; i++)
		threads[i] = start(open_fifo, (void *)"fifo");
	for (int i = 0; i < 10; i++)
		usleep(1000);
	fd = open("fifo", O_WRONLY);
	CHECK_EQ(write(fd, "xxxx", 4), 4);
	for (int i = 0; i < 4; i++)
		join(threads[i]);
	close(fd);
	leave_scratch();
}

/* Of <threads.h>, which isn't found beside ours. */
int thrd_sleep(const struct timespec *time, struct timespec *rest);

/* Calls that the kernel doesn't begin again after a handler. */
static void *wait_unexpectedly(void *arg)
{
	const struct timeval limit = { .tv_usec = 100000 };
	const struct timespec time = { .tv_nsec = 100000000 };
	uint64_t begin = now_ns();
	FILE *stream;
	int fds[2];

	usleep(100);
	CHECK_EQ(raw_syscall(SYS_nanosleep, PTR(&time), 0, 0, 0, 0, 0), 0);
	CHECK(now_ns() - begin >= 100 * MS);
	usleep(100);
	CHECK_EQ(raw_syscall(SYS_poll, 0, 0, 100, 0, 0, 0), 0);
	CHECK(now_ns() - begin >= 200 * MS);
	CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, fds), 0);
	CHECK_EQ(setsockopt(fds[0], SOL_SOCKET, SO_RCVTIMEO, &limit,
			    sizeof(limit)), 0);
	stream = fdopen(fds[0], "r");
	usleep(100);
	CHECK_EQ(fgetc(stream), EOF);
	CHECK_EQ(errno, EAGAIN);
	fclose(stream);
	close(fds[1]);
	CHECK_EQ(thrd_sleep(&time, NULL), 0);
	CHECK(now_ns() - begin < 10 * SECOND);
	return arg;
}

TEST(a_call_that_waits_unexpectedly_ends_as_it_should)
{
	pthread_t threads[4];

	for (int i = 0; i < 4; i++)
		threads[i] = start(wait_unexpectedly, NULL);
	for (int i = 0; i < 4; i++)
		join(threads[i]);
}

/* As libc makes calls: the number is set just before. */
#define PLAIN_CALL(number, a, b, c)					\
	({								\
		long ret;						\
									\
		asm volatile("mov %[nr], %%eax\n\tsyscall"		\
			     : "=&a" (ret)				\
			     : [nr] "i" (number), "D" (a), "S" (b), "d" (c)	\
			     : "rcx", "r11", "memory");			\
		ret;							\
	})

static atomic_bool moved_enough;

/*
 * It mostly computes when it is found to keep its carrier, and is about to
 * wait when it is called home for that.
 */
static void *compute_then_wait(void *arg)
{
	const struct timespec moment = { .tv_nsec = 3000000 };
	uint64_t until;

	while (!moved_enough) {
		usleep(100);
		until = now_ns() + 8 * MS + test_random() % (15 * MS);
		while (now_ns() < until)
			;
		CHECK_EQ(PLAIN_CALL(SYS_nanosleep, &moment, 0L, 0L), 0);
		CHECK_EQ(PLAIN_CALL(SYS_poll, 0L, 0L, 3L), 0);
	}
	return arg;
}

TEST(a_call_that_begins_as_its_thread_is_moved_isn_t_interrupted)
{
	uint64_t end = now_ns() + 3 * SECOND;
	pthread_t threads[4];

	for (int i = 0; i < 4; i++)
		threads[i] = start(compute_then_wait, NULL);
	while (now_ns() < end)
		usleep(10000);
	moved_enough = true;
	for (int i = 0; i < 4; i++)
		join(threads[i]);
}

static atomic_int interrupted;

static void handle(int signo)
{
	(void)signo;
}

static void *poll_unexpectedly(void *arg)
{
	for (int i = 0; i < 10; i++) {
		usleep(100);
		CHECK_EQ(raw_syscall(SYS_poll, 0, 0, -1U, 0, 0, 0), -EINTR);
		interrupted++;
	}
	return arg;
}

/* It may come while the call is on its way home. */
TEST(a_signal_ends_a_call_that_waits_unexpectedly)
{
	struct sigaction action = { .sa_handler = handle };
	pthread_t thread;

	CHECK_EQ(sigaction(SIGUSR1, &action, NULL), 0);
	thread = start(poll_unexpectedly, NULL);
	for (int i = 0; interrupted < 10; i++) {
		usleep((useconds_t)(i % 23 * 1000));
		/* That it has ended is seen after that. */
		if (interrupted < 10)
			pthread_kill(thread, SIGUSR1);
	}
	join(thread);
}

static void *use_every_number(void *arg)
{
	for (int fd = 3; fd < 1024; fd++) {
		int copy = dup2(0, fd);

		if (copy == fd)
			close(fd);
		*(long *)arg += copy == fd;
	}
	return NULL;
}

TEST(a_child_may_use_its_parent_s_numbers)
{
	struct rlimit limit = { 1024, 1024 };
	long n = 0;
	int pid;

	CHECK_EQ(setrlimit(RLIMIT_NOFILE, &limit), 0);
	join(start(use_every_number, &n));
	pid = test_fork();
	if (!pid) {
		/* It has fewer of the runtime's. */
		setenv("FLEXSC_CARRIERS", "1", 1);
		n = 0;
		join(start(use_every_number, &n));
		CHECK(n >= 1021 - 7);
		test_leave();
	}
	test_reap(pid);
}

/*
 * As vfork() does, but from a place that nobody intercepts: until the child
 * ends no signal gets the caller out of the kernel. It runs beside it, on a
 * stack of its own.
 */
static long wait_like_vfork(void (*child)(void), char *stack)
{
	register uint64_t tls __asm__("r8") = 0, tid __asm__("r10") = 0;
	long ret;

	__asm__ volatile("syscall\n\t"
			 "test %%rax, %%rax\n\t"
			 "jnz 1f\n\t"
			 "call *%[child]\n"
			 "1:"
			 : "=a"(ret)
			 : "a"(SYS_clone), "S"(stack), "d"(0), "r"(tid),
			   "r"(tls), [child] "b"(child),
			   "D"(CLONE_VM | CLONE_VFORK | SIGCHLD)
			 : "rcx", "r11", "memory");
	return ret;
}

static char child_stack[16384] __attribute__((aligned(16)));
static sem_t behind;
static atomic_bool ran;

/* With nothing of libc's, whose thread it isn't. */
static void end_when_it_ran(void)
{
	const struct timespec moment = { 0, 1000000 };

	for (int i = 0; i < 5000 && !ran; i++)
		raw_syscall(SYS_nanosleep, PTR(&moment), 0, 0, 0, 0, 0);
	raw_syscall(SYS_exit, !ran, 0, 0, 0, 0, 0);
}

static void *run_behind(void *arg)
{
	CHECK_EQ(sem_wait(&behind), 0);
	ran = true;
	return arg;
}

/* Whom it has woken is queued where it runs itself. */
static void *wake_and_block(void *arg)
{
	CHECK_EQ(sem_post(&behind), 0);
	*(long *)arg = wait_like_vfork(end_when_it_ran,
				      child_stack + sizeof(child_stack));
	return NULL;
}

TEST(a_call_that_nothing_ends_stops_no_more_than_a_carrier)
{
	const char *carriers = getenv("FLEXSC_CARRIERS");
	pthread_t woken, blocked;
	int status;
	long pid;

	if (preloaded() && carriers && !strcmp(carriers, "1"))
		SKIP("there is but one");
	CHECK_EQ(sem_init(&behind, 0, 0), 0);
	for (int i = 0; i < 20; i++) {
		ran = false;
		woken = start(run_behind, NULL);
		settle();
		blocked = start(wake_and_block, &pid);
		join(blocked);
		join(woken);
		CHECK(pid > 0);
		CHECK_EQ(waitpid((pid_t)pid, &status, 0), pid);
		CHECK_EQ(status, 0);
	}
}

enum { HEAVY = 20, TRIPS = 100 };

static atomic_int heavy_runs;
static atomic_bool heavy_ends;
static int there[2], back[2];

/* Works for a while, then waits for what is ready already. */
static void *work_and_wait(void *arg)
{
	struct pollfd fd = { *(int *)arg, POLLOUT, 0 };

	while (!heavy_ends) {
		struct timespec until = in_ms(CLOCK_MONOTONIC, 0), now;

		until.tv_nsec += 200000;
		do
			clock_gettime(CLOCK_MONOTONIC, &now);
		while (now.tv_sec * 1000000000LL + now.tv_nsec <
		       until.tv_sec * 1000000000LL + until.tv_nsec);
		heavy_runs++;
		CHECK_EQ(poll(&fd, 1, 1000), 1);
	}
	return NULL;
}

static void *answer(void *arg)
{
	char byte;

	while (read(there[0], &byte, 1) == 1)
		CHECK_EQ(write(back[1], &byte, 1), 1);
	return arg;
}

static void *make_trips(void *arg)
{
	char byte = 'x';

	for (int i = 0; i < TRIPS; i++) {
		CHECK_EQ(write(there[1], &byte, 1), 1);
		CHECK_EQ(read(back[0], &byte, 1), 1);
	}
	close(there[1]);
	return arg;
}

/* Counted in runs, so it doesn't matter how fast the machine is. */
TEST(who_does_little_waits_for_few)
{
	const char *carriers = getenv("FLEXSC_CARRIERS");
	pthread_t heavy[HEAVY], other;
	int free_fds[2], runs;

	if (!preloaded() || !carriers || strcmp(carriers, "1"))
		SKIP("only one carrier runs one after the other");
	CHECK_EQ(pipe(free_fds) | pipe(there) | pipe(back), 0);
	for (int i = 0; i < HEAVY; i++)
		heavy[i] = start(work_and_wait, &free_fds[1]);
	while (heavy_runs < 5 * HEAVY)
		usleep(1000);
	other = start(answer, NULL);
	runs = heavy_runs;
	join(start(make_trips, NULL));
	runs = heavy_runs - runs;
	heavy_ends = true;
	join(other);
	for (int i = 0; i < HEAVY; i++)
		join(heavy[i]);
	/* In turn, all of them would run at least once in each trip. */
	CHECK(runs < HEAVY * TRIPS);
}
