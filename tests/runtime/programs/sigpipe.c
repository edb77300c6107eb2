/* SPDX-License-Identifier: MIT */
/*
 * Writes to pipes and sockets without a reader, and the signal SIGPIPE that they
 * raise.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include "handled.h"

static int pipe_without_reader(int flags)
{
	int fds[2];

	CHECK_EQ(pipe2(fds, flags), 0);
	close(fds[0]);
	return fds[1];
}

static int socket_without_reader(int flags)
{
	int pair[2];

	CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM | flags, 0, pair), 0);
	close(pair[0]);
	return pair[1];
}

/* libc makes this write itself, not through the runtime. */
static long print(FILE *stream)
{
	fputs("x", stream);
	return fflush(stream);
}

/* If there is a handler, it has run in the thread that made the call. */
static void expect_broken(long ret, int times)
{
	CHECK_EQ(ret, -1);
	CHECK_EQ(errno, EPIPE);
	CHECK_EQ(handled, times);
	if (times)
		CHECK_EQ(where, 5);
}

/* The call fails at once, or in the engine that it is posted to. */
static void *write_and_handle(void *arg)
{
	const bool waits = !arg;
	int fd;

	mine = 5;
	handled = 0;
	expect_broken(write(pipe_without_reader(waits ? 0 : O_NONBLOCK), "x", 1), 1);
	fd = socket_without_reader(waits ? 0 : SOCK_NONBLOCK);
	expect_broken(send(fd, "x", 1, 0), 2);
	expect_broken(send(fd, "x", 1, MSG_NOSIGNAL), 2);
	return NULL;
}

TEST(writing_without_a_reader_raises_sigpipe)
{
	install(SIGPIPE, 0);
	join(start(write_and_handle, NULL));
	join(start(write_and_handle, &stage));
}

static void *write_unprepared(void *arg)
{
	usleep(100);
	expect_broken(write(pipe_without_reader(0), "x", 1), 0);
	return arg;
}

static void *print_unprepared(void *arg)
{
	usleep(100);
	expect_broken(print(fdopen(pipe_without_reader(0), "w")), 0);
	return arg;
}

TEST(writing_without_a_reader_ends_the_process)
{
	signal(SIGPIPE, SIG_DFL);
	CHECK_EQ(ends_by(stay, write_unprepared, NULL), SIGPIPE);
	signal(SIGPIPE, SIG_IGN);
	join(start(write_unprepared, NULL));
}

static void *print_and_handle(void *arg)
{
	FILE *stream = fdopen(pipe_without_reader(0), "w");

	mine = 5;
	expect_broken(print(stream), 1);
	/* Print from a carrier, too. */
	usleep(100);
	expect_broken(print(stream), 2);
	return arg;
}

TEST(printing_without_a_reader_raises_sigpipe)
{
	signal(SIGPIPE, SIG_DFL);
	CHECK_EQ(ends_by(stay, print_unprepared, NULL), SIGPIPE);
	install(SIGPIPE, 0);
	join(start(print_and_handle, NULL));
	handled = 0;
	signal(SIGPIPE, SIG_IGN);
	join(start(print_unprepared, NULL));
}

/* The pipe takes a part of the bytes, and then loses its reader. */
static void *write_a_part(void *arg)
{
	static const char bytes[1 << 20];
	const int *fds = arg;

	mine = 5;
	CHECK_EQ(write(fds[1], bytes, sizeof(bytes)), 1 << 16);
	CHECK_EQ(handled, 1);
	CHECK_EQ(where, 5);
	return arg;
}

TEST(a_reader_that_leaves_during_a_write_raises_sigpipe)
{
	pthread_t writer;
	int fds[2], filled = 0;

	install(SIGPIPE, 0);
	CHECK_EQ(pipe(fds), 0);
	CHECK_EQ(fcntl(fds[1], F_SETPIPE_SZ, 1 << 16), 1 << 16);
	writer = start(write_a_part, fds);
	while (filled < 1 << 16)
		CHECK_EQ(ioctl(fds[0], FIONREAD, &filled), 0);
	settle();
	close(fds[0]);
	join(writer);
	close(fds[1]);
}

static const struct timespec never;

static sigset_t only_pipe(void)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGPIPE);
	return set;
}

static void *print_with_it_blocked(void *arg)
{
	const sigset_t set = only_pipe();
	const int before = handled;

	block(SIG_BLOCK, SIGPIPE);
	usleep(100);
	expect_broken(print(fdopen(pipe_without_reader(0), "w")), before);
	CHECK_EQ(sigtimedwait(&set, NULL, &never), SIGPIPE);
	CHECK_EQ(sigtimedwait(&set, NULL, &never), -1);
	return arg;
}

/*
 * sigaction(2) returns the program's action, even if the runtime handles the signal
 * itself.
 */
TEST(sigpipe_s_action_is_the_program_s)
{
	struct sigaction was;

	mine = 5;
	signal(SIGPIPE, SIG_DFL);
	join(start(print_with_it_blocked, NULL));
	CHECK_EQ(sigaction(SIGPIPE, NULL, &was), 0);
	CHECK(was.sa_handler == SIG_DFL);
	install(SIGPIPE, (int)SA_RESETHAND);
	CHECK_EQ(raise(SIGPIPE), 0);
	CHECK_EQ(handled, 1);
	CHECK_EQ(sigaction(SIGPIPE, NULL, &was), 0);
	CHECK(was.sa_handler == SIG_DFL);
	join(start(print_with_it_blocked, NULL));
}

/*
 * The kinds: a posted call, a call that completes at once, a call of libc's, and one
 * on the host.
 */
static void break_pipe(int kind)
{
	switch (kind) {
	case 0:
		expect_broken(write(pipe_without_reader(0), "x", 1), 0);
		break;
	case 1:
		expect_broken(write(pipe_without_reader(O_NONBLOCK), "x", 1), 0);
		break;
	case 2:
		expect_broken(send(socket_without_reader(0), "x", 1, 0), 0);
		break;
	default:
		expect_broken(print(fdopen(pipe_without_reader(0), "w")), 0);
	}
}

static void break_pipes_in_handler(int signo)
{
	const sigset_t set = only_pipe();

	(void)signo;
	for (int kind = 0; kind < 4; kind++) {
		break_pipe(kind);
		CHECK_EQ(sigtimedwait(&set, NULL, &never), SIGPIPE);
		CHECK_EQ(sigtimedwait(&set, NULL, &never), -1);
	}
	break_pipe(0);
}

static void *break_pipes(void *arg)
{
	const sigset_t set = only_pipe();

	for (int i = 0; i < 40; i++) {
		usleep(50);
		break_pipe(i % 4);
		CHECK_EQ(sigtimedwait(&set, NULL, &never), SIGPIPE);
		CHECK_EQ(sigtimedwait(&set, NULL, &never), -1);
	}
	CHECK_EQ(raise(SIGUSR1), 0);
	usleep(100);
	CHECK_EQ(sigtimedwait(&set, NULL, &never), SIGPIPE);
	CHECK_EQ(sigtimedwait(&set, NULL, &never), -1);
	return arg;
}

TEST(a_blocked_sigpipe_stays_with_its_thread)
{
	struct sigaction action = { .sa_handler = break_pipes_in_handler };

	CHECK_EQ(sigaction(SIGUSR1, &action, NULL), 0);
	block(SIG_BLOCK, SIGPIPE);
	run_all(4, break_pipes, NULL);
}
