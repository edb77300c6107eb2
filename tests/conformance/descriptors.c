/* SPDX-License-Identifier: MIT */
/*
 * What the library is told of descriptors that no call of a loop made or closed.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "../harness.h"

static uint64_t switches(struct flexsc_loop *loop)
{
	struct flexsc_stats stats;

	CHECK_EQ(flexsc_loop_stats(loop, &stats, sizeof(stats)), 0);
	return stats.mode_switches;
}

/* The number of a socket that was used becomes another socket's. */
TEST(a_number_that_was_forgotten_is_looked_at_again)
{
	struct flexsc_loop *loop = test_loop();
	int pair[2], other[2];
	char byte;

	CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
	CHECK_EQ(write(pair[1], "a", 1), 1);
	CHECK_EQ(DO(loop, SYS_recvfrom, pair[0], &byte, 1, 0, NULL, NULL), 1);
	CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, other), 0);
	/* Not by a call of the loop. */
	CHECK_EQ(dup2(other[0], pair[0]), pair[0]);
	flexsc_fd_forget(pair[0]);
	CHECK_EQ(DO(loop, SYS_recvfrom, pair[0], &byte, 1, 0, NULL, NULL),
		 -EAGAIN);
	CHECK_EQ(flexsc_loop_destroy(loop), 0);
}

TEST(numbers_that_are_no_descriptors_can_be_forgotten)
{
	flexsc_fd_forget(-1);
	flexsc_fd_forget(1000000000);
	flexsc_fd_forget(999);
}

static void use_pipe(struct flexsc_loop *loop, const int pipe[2])
{
	char byte;

	CHECK_EQ(DO(loop, SYS_write, pipe[1], "a", 1), 1);
	CHECK_EQ(DO(loop, SYS_read, pipe[0], &byte, 1), 1);
}

/* A hint makes the first use as cheap as the second, with io_uring. */
TEST(what_was_said_is_not_asked)
{
	struct flexsc_loop *loop = test_loop();
	uint64_t first, second, before;
	int pipes[2][2];

	for (int i = 0; i < 2; i++)
		CHECK_EQ(pipe(pipes[i]), 0);
	for (int end = 0; end < 2; end++)
		CHECK_EQ(flexsc_fd_hint(pipes[1][end], FLEXSC_FD_STREAM |
					FLEXSC_FD_BLOCKING), 0);
	before = switches(loop);
	use_pipe(loop, pipes[0]);
	first = switches(loop) - before;
	before = switches(loop);
	use_pipe(loop, pipes[1]);
	second = switches(loop) - before;
	if (!strcmp(test_engine(), "uring"))
		CHECK(second < first);
	CHECK_EQ(flexsc_loop_destroy(loop), 0);
}

TEST(a_file_that_is_said_to_be_regular_is_one)
{
	char name[] = "/tmp/flexsc-descriptors-XXXXXX", bytes[4];
	struct flexsc_loop *loop = test_loop();
	int fd = mkstemp(name);

	CHECK(fd >= 0);
	unlink(name);
	CHECK_EQ(flexsc_fd_hint(fd, FLEXSC_FD_REGULAR | FLEXSC_FD_BLOCKING), 0);
	CHECK_EQ(DO(loop, SYS_write, fd, "abcd", 4), 4);
	CHECK_EQ(DO(loop, SYS_pread64, fd, bytes, 4, 1), 3);
	CHECK_EQ(DO(loop, SYS_read, fd, bytes, 4), 0);
	CHECK(!memcmp(bytes, "bcd", 3));
	CHECK_EQ(flexsc_loop_destroy(loop), 0);
}

TEST(hints_that_contradict_themselves_are_refused)
{
	struct flexsc_loop *loop = test_loop();

	/* The library's own. */
	CHECK_EQ(flexsc_fd_hint(flexsc_loop_fd(loop), FLEXSC_FD_STREAM),
		 -EINVAL);
	CHECK_EQ(flexsc_loop_destroy(loop), 0);
	CHECK_EQ(flexsc_fd_hint(0, FLEXSC_FD_REGULAR | FLEXSC_FD_STREAM),
		 -EINVAL);
	CHECK_EQ(flexsc_fd_hint(0, FLEXSC_FD_BLOCKING | FLEXSC_FD_NONBLOCK),
		 -EINVAL);
	CHECK_EQ(flexsc_fd_hint(0, 16), -EINVAL);
	CHECK_EQ(flexsc_fd_hint(0, 0), 0);
}
