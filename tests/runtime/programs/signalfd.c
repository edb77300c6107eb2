/* SPDX-License-Identifier: MIT */
/* A signalfd returns the signals of the thread that reads it. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include "threads.h"

static atomic_int stage;
static sigset_t set;
static int fds[2];

static int signal_fd(int flags)
{
	return signalfd(-1, &set, flags | SFD_CLOEXEC);
}

static void take_one(int fd)
{
	struct signalfd_siginfo info;

	CHECK_EQ(read(fd, &info, sizeof(info)), (ssize_t)sizeof(info));
	CHECK_EQ(info.ssi_signo, SIGUSR2);
}

static void send_oneself(void)
{
	CHECK_EQ(pthread_kill(pthread_self(), SIGUSR2), 0);
	/* A wait moves the thread away from its host. */
	usleep(100);
}

static void see_one(int fd)
{
	struct pollfd two[2] = { { fd, POLLIN, 0 }, { fds[0], POLLIN, 0 } };
	struct signalfd_siginfo info;
	struct iovec part = { &info, sizeof(info) };

	send_oneself();
	take_one(fd);
	CHECK_EQ(poll(two, 1, 0), 0);
	send_oneself();
	CHECK_EQ(poll(two, 1, 0), 1);
	usleep(100);
	CHECK_EQ(poll(two, 1, -1), 1);
	usleep(100);
	CHECK_EQ(poll(two, 2, -1), 1);
	CHECK_EQ(two[0].revents, POLLIN);
	usleep(100);
	CHECK_EQ(readv(fd, &part, 1), (ssize_t)sizeof(info));
	CHECK_EQ(info.ssi_signo, SIGUSR2);
}

static void see_one_in_a_set(int fd)
{
	struct epoll_event event = { .events = EPOLLIN };
	int epoll = epoll_create1(EPOLL_CLOEXEC);

	CHECK_EQ(epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event), 0);
	CHECK_EQ(epoll_wait(epoll, &event, 1, 0), 0);
	send_oneself();
	CHECK_EQ(epoll_wait(epoll, &event, 1, 0), 1);
	usleep(100);
	CHECK_EQ(epoll_wait(epoll, &event, 1, -1), 1);
	take_one(fd);
	close(epoll);
}

static void *see_all(void *arg)
{
	int fd = *(int *)arg;
	int copies[] = { fd, dup(fd), dup2(fd, 100), dup3(fd, 101, 0),
			 fcntl(fd, F_DUPFD, 102), fcntl(fd, F_DUPFD_CLOEXEC, 3) };

	for (unsigned int i = 0; i < sizeof(copies) / sizeof(*copies); i++) {
		CHECK(copies[i] >= 0);
		see_one(copies[i]);
		see_one_in_a_set(copies[i]);
	}
	CHECK_EQ(fcntl(fd, F_SETFL, 0), 0);
	stage++;
	take_one(fd);
	return NULL;
}

static void others_see_theirs(int fd)
{
	pthread_t threads[2];

	stage = 0;
	start_all(threads, 2, see_all, &fd);
	while (stage < 2)
		usleep(1000);
	settle();
	/* Each thread gets its own signal. */
	CHECK_EQ(pthread_kill(threads[1], SIGUSR2), 0);
	join(threads[1]);
	CHECK_EQ(pthread_kill(threads[0], SIGUSR2), 0);
	join(threads[0]);
}

TEST(a_signalfd_returns_its_reader_s_own_signals)
{
	int first, second, pid;

	sigemptyset(&set);
	sigaddset(&set, SIGUSR2);
	CHECK_EQ(pthread_sigmask(SIG_BLOCK, &set, NULL), 0);
	CHECK_EQ(pipe(fds), 0);
	first = signal_fd(0);
	others_see_theirs(first);
	second = signal_fd(SFD_NONBLOCK);
	others_see_theirs(second);
	see_one(first);
	pid = test_fork();
	if (!pid) {
		see_one(first);
		others_see_theirs(second);
		test_leave();
	}
	test_reap(pid);
	/* The closed number then refers to an ordinary file. */
	close(first);
	CHECK_EQ(dup2(fds[0], first), first);
	CHECK_EQ(write(fds[1], "x", 1), 1);
	CHECK_EQ(read(first, &pid, 1), 1);
}

/* A message with room for a descriptor. */
struct passing {
	struct msghdr msg;
	struct iovec iov;
	char byte;
	union {
		struct cmsghdr header;
		char room[CMSG_SPACE(sizeof(int))];
	} control;
};

static struct msghdr *passing_begin(struct passing *passing)
{
	memset(passing, 0, sizeof(*passing));
	passing->iov = (struct iovec){ &passing->byte, 1 };
	passing->msg.msg_iov = &passing->iov;
	passing->msg.msg_iovlen = 1;
	passing->msg.msg_control = &passing->control;
	passing->msg.msg_controllen = sizeof(passing->control);
	return &passing->msg;
}

static void pass(int to, int fd)
{
	struct passing passing;
	struct msghdr *msg = passing_begin(&passing);

	passing.control.header = (struct cmsghdr){
		.cmsg_len = CMSG_LEN(sizeof(fd)),
		.cmsg_level = SOL_SOCKET,
		.cmsg_type = SCM_RIGHTS,
	};
	memcpy(CMSG_DATA(&passing.control.header), &fd, sizeof(fd));
	CHECK_EQ(sendmsg(to, msg, 0), 1);
}

static int take(int from)
{
	struct passing passing;
	int fd;

	CHECK_EQ(recvmsg(from, passing_begin(&passing), 0), 1);
	memcpy(&fd, CMSG_DATA(&passing.control.header), sizeof(fd));
	return fd;
}

static void *see_received(void *arg)
{
	int from = *(int *)arg;

	see_one_in_a_set(take(from));
	see_one(take(from));
	stage = 1;
	take_one(take(from));
	return NULL;
}

/*
 * The runtime has seen no call that created this signalfd, nor any other one of the
 * process.
 */
TEST(a_received_signalfd_returns_its_reader_s_signals)
{
	pthread_t thread;
	int pair[2], pid;

	sigemptyset(&set);
	sigaddset(&set, SIGUSR2);
	CHECK_EQ(pthread_sigmask(SIG_BLOCK, &set, NULL), 0);
	CHECK_EQ(pipe(fds), 0);
	CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
	pid = test_fork();
	if (!pid) {
		for (int i = 0; i < 3; i++)
			pass(pair[1], signal_fd(0));
		test_leave();
	}
	test_reap(pid);
	thread = start(see_received, &pair[0]);
	while (!stage)
		usleep(1000);
	settle();
	CHECK_EQ(pthread_kill(thread, SIGUSR2), 0);
	join(thread);
}

static void *lend_memory(void *arg)
{
	char *const argv[] = { "true", NULL };
	posix_spawn_file_actions_t actions;
	int fd = *(int *)arg, pid;

	posix_spawn_file_actions_init(&actions);
	CHECK_EQ(posix_spawn_file_actions_addclose(&actions, fd), 0);
	CHECK_EQ(posix_spawnp(&pid, "true", &actions, NULL, argv, NULL), 0);
	test_reap(pid);
	see_one(fd);
	pid = vfork();
	if (!pid) {
		close(fd);
		_exit(0);
	}
	test_reap(pid);
	see_one(fd);
	posix_spawn_file_actions_destroy(&actions);
	return arg;
}

TEST(a_descriptor_that_a_vfork_child_closes_stays_open)
{
	int fd;

	sigemptyset(&set);
	sigaddset(&set, SIGUSR2);
	CHECK_EQ(pthread_sigmask(SIG_BLOCK, &set, NULL), 0);
	CHECK_EQ(pipe(fds), 0);
	fd = signal_fd(0);
	join(start(lend_memory, &fd));
}
