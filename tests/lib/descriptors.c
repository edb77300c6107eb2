/* SPDX-License-Identifier: MIT */
/*
 * Calls by which a program informs the library about descriptors that no call of a
 * loop created or closed.
 */
#include "tests/harness/harness.h"

#ifndef SO_RCVTIMEO_NEW
#define SO_RCVTIMEO_NEW	66
#endif

static uint64_t switches(void)
{
	struct flexsc_stats stats;

	CHECK_EQ(flexsc_loop_stats(loop, &stats, sizeof(stats)), 0);
	return stats.mode_switches;
}

/* The number of a used socket becomes the number of another one. */
LOOP_TEST(a_forgotten_number_is_queried_again)
{
	int pair[2], other[2];
	char byte;

	CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
	CHECK_EQ(write(pair[1], "a", 1), 1);
	CHECK_EQ(DO(loop, SYS_recvfrom, pair[0], &byte, 1, 0, NULL, NULL), 1);
	CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, other), 0);
	/* A plain call, which the loop doesn't see. */
	CHECK_EQ(dup2(other[0], pair[0]), pair[0]);
	flexsc_fd_forget(pair[0]);
	CHECK_EQ(DO(loop, SYS_recvfrom, pair[0], &byte, 1, 0, NULL, NULL),
		 -EAGAIN);
}

static int receive(int fd)
{
	char byte;

	return (int)DO(loop, SYS_recvfrom, fd, &byte, 1, 0, NULL, NULL);
}

/*
 * Creates a socket about which the loop caches that its receives block, and a
 * duplicate of it.
 */
static void make_known(int pair[2], int *copy)
{
	CHECK_EQ(DO(loop, SYS_socketpair, AF_UNIX, SOCK_STREAM, 0, pair), 0);
	CHECK_EQ(write(pair[1], "a", 1), 1);
	CHECK_EQ(receive(pair[0]), 1);
	*copy = (int)DO(loop, SYS_dup, pair[0]);
	CHECK(*copy >= 0);
	/* From here on the library caches facts of both descriptors. */
	CHECK_EQ(write(pair[1], "bc", 2), 2);
	CHECK_EQ(receive(pair[0]), 1);
	CHECK_EQ(receive(*copy), 1);
}

static void close_all(const int pair[2], int copy)
{
	CHECK_EQ(DO(loop, SYS_close, pair[0]), 0);
	CHECK_EQ(DO(loop, SYS_close, pair[1]), 0);
	CHECK_EQ(DO(loop, SYS_close, copy), 0);
}

/* An option belongs to the socket, so it changes for all of the socket's descriptors. */
LOOP_TEST(an_option_that_a_duplicate_sets_is_noticed)
{
	static const int names[] = { SO_RCVTIMEO, SO_RCVTIMEO_NEW };
	const int64_t soon[2] = { 0, 20000 };
	int pair[2], copy;

	for (unsigned int i = 0; i < 2; i++) {
		make_known(pair, &copy);
		CHECK_EQ(DO(loop, SYS_setsockopt, copy, SOL_SOCKET, names[i],
			    soon, sizeof(soon)), 0);
		CHECK_EQ(receive(copy), -EAGAIN);
		CHECK_EQ(receive(pair[0]), -EAGAIN);
		close_all(pair, copy);
	}
	make_known(pair, &copy);
	CHECK_EQ(DO(loop, SYS_fcntl, copy, F_SETFL, O_NONBLOCK), 0);
	CHECK_EQ(receive(pair[0]), -EAGAIN);
	CHECK_EQ(DO(loop, SYS_ioctl, copy, FIONBIO, &(int){ 0 }), 0);
	CHECK_EQ(DO(loop, SYS_ioctl, pair[0], FIONBIO, &(int){ 1 }), 0);
	CHECK_EQ(receive(copy), -EAGAIN);
	close_all(pair, copy);
}

WAITING_TEST(a_low_water_mark_that_a_duplicate_sets_is_noticed)
{
	struct call call = CALL_INIT;
	const int four = 4;
	int pair[2], copy;
	char bytes[8];

	make_known(pair, &copy);
	CHECK_EQ(DO(loop, SYS_setsockopt, copy, SOL_SOCKET, SO_RCVLOWAT, &four,
		    sizeof(four)), 0);
	CHECK_EQ(write(pair[1], "ab", 2), 2);
	POST(loop, &call, SYS_recvfrom, pair[0], bytes, 8, 0, NULL, NULL);
	run_for(loop, 10);
	CHECK_EQ(call.runs, 0);
	CHECK_EQ(write(pair[1], "cd", 2), 2);
	CHECK_EQ(await_call(loop, &call), 4);
	close_all(pair, copy);
}

TEST(numbers_that_are_no_descriptors_can_be_forgotten)
{
	flexsc_fd_forget(-1);
	flexsc_fd_forget(1000000000);
	flexsc_fd_forget(999);
}

static void use_pipe(const int pipe[2])
{
	char byte;

	CHECK_EQ(DO(loop, SYS_write, pipe[1], "a", 1), 1);
	CHECK_EQ(DO(loop, SYS_read, pipe[0], &byte, 1), 1);
}

/* With io_uring, a hint makes the first use as cheap as the second one. */
LOOP_TEST(a_hinted_fact_is_not_queried)
{
	uint64_t first, second, before;
	int pipes[2][2];

	for (int i = 0; i < 2; i++)
		CHECK_EQ(pipe(pipes[i]), 0);
	for (int end = 0; end < 2; end++)
		CHECK_EQ(flexsc_fd_hint(pipes[1][end], FLEXSC_FD_STREAM |
					FLEXSC_FD_BLOCKING), 0);
	before = switches();
	use_pipe(pipes[0]);
	first = switches() - before;
	before = switches();
	use_pipe(pipes[1]);
	second = switches() - before;
	if (!strcmp(test_engine(), "uring"))
		CHECK(second < first);
}

LOOP_TEST(a_hint_of_a_regular_file_is_verified)
{
	char name[] = "/tmp/flexsc-descriptors-XXXXXX", bytes[4];
	int fd = mkstemp(name);

	CHECK(fd >= 0);
	unlink(name);
	CHECK_EQ(flexsc_fd_hint(fd, FLEXSC_FD_REGULAR | FLEXSC_FD_BLOCKING), 0);
	CHECK_EQ(DO(loop, SYS_write, fd, "abcd", 4), 4);
	CHECK_EQ(DO(loop, SYS_pread64, fd, bytes, 4, 1), 3);
	CHECK_EQ(DO(loop, SYS_read, fd, bytes, 4), 0);
	CHECK(!memcmp(bytes, "bcd", 3));
}

LOOP_TEST(hints_that_contradict_themselves_are_refused)
{
	/* The library's own descriptor. */
	CHECK_EQ(flexsc_fd_hint(flexsc_loop_fd(loop), FLEXSC_FD_STREAM),
		 -EINVAL);
	test_end_loop();
	CHECK_EQ(flexsc_fd_hint(0, FLEXSC_FD_REGULAR | FLEXSC_FD_STREAM),
		 -EINVAL);
	CHECK_EQ(flexsc_fd_hint(0, FLEXSC_FD_BLOCKING | FLEXSC_FD_NONBLOCK),
		 -EINVAL);
	CHECK_EQ(flexsc_fd_hint(0, 16), -EINVAL);
	CHECK_EQ(flexsc_fd_hint(0, 0), 0);
}
