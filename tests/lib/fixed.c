/* SPDX-License-Identifier: MIT */
/*
 * Fixed descriptors change nothing but the speed, as long as the program closes them
 * by the loop or unfixes them first.
 */
#include "tests/harness/harness.h"

static void pair(int p[2])
{
	CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, p), 0);
}

/* In other engines, and in a ring that a kernel thread polls, fixing does nothing. */
static bool is_fixing(void)
{
	return !strcmp(test_engine(), "uring") && !getenv("FLEXSC_TEST_SQPOLL");
}

LOOP_TEST(calls_work_as_before)
{
	char in[8] = "";
	int p[2], fd;

	pair(p);
	CHECK_EQ(flexsc_loop_fix_fd(loop, p[0]), 0);
	CHECK_EQ(flexsc_loop_fix_fd(loop, p[0]), 0);
	for (unsigned int i = 0; i < 3; i++) {
		CHECK_EQ(send(p[1], "abc", 3, 0), 3);
		CHECK_EQ(DO(loop, SYS_read, p[0], in, 8), 3);
		CHECK(!memcmp(in, "abc", 3));
		CHECK_EQ(DO(loop, SYS_sendto, p[0], "de", 2, 0, 0, 0), 2);
		CHECK_EQ(recv(p[1], in, 8, 0), 2);
	}
	enter_scratch();
	fd = open("file", O_CREAT | O_RDWR | O_CLOEXEC, 0600);
	CHECK_EQ(flexsc_loop_fix_fd(loop, fd), 0);
	CHECK_EQ(DO(loop, SYS_pwrite64, fd, "hello", 5, 3), 5);
	CHECK_EQ(DO(loop, SYS_fsync, fd), 0);
	CHECK_EQ(DO(loop, SYS_pread64, fd, in, 8, 4), 4);
	CHECK(!memcmp(in, "ello", 4));
	CHECK_EQ(DO(loop, SYS_write, fd, "xy", 2), 2);
	CHECK_EQ(DO(loop, SYS_openat, fd, "nothing", 0, 0), -ENOTDIR);
	CHECK_EQ(flexsc_loop_unfix_fd(loop, p[0]), 0);
	CHECK_EQ(flexsc_loop_unfix_fd(loop, p[0]), 0);
	CHECK_EQ(DO(loop, SYS_sendto, p[0], "f", 1, 0, 0, 0), 1);
}

/* The other end sees the close at once, without any other event that wakes the loop. */
WAITING_TEST(a_posted_close_closes)
{
	struct call calls[3] = { CALL_INIT, CALL_INIT, CALL_INIT };
	int p[2], q[2];
	char in[8];

	pair(q);
	for (unsigned int i = 0; i < 50; i++) {
		pair(p);
		CHECK_EQ(flexsc_loop_fix_fd(loop, p[0]), 0);
		CHECK_EQ(send(p[1], "abc", 3, 0), 3);
		for (unsigned int j = 0; j < 3; j++)
			calls[j] = (struct call)CALL_INIT;
		POST(loop, &calls[0], SYS_read, p[0], in, 3);
		POST(loop, &calls[1], SYS_close, p[0]);
		POST(loop, &calls[2], SYS_read, p[1], in + 4, 1);
		if (i % 2)
			CHECK_EQ(flexsc_loop_submit(loop), 0);
		CHECK(run_until(loop, &calls[2].runs, 1, 5000));
		/* Unread data makes the close a reset. */
		CHECK(calls[2].cb.ret == 0 || calls[2].cb.ret == -ECONNRESET);
		CHECK_EQ(await_call(loop, &calls[1]), 0);
		CHECK(calls[0].runs);
		close(p[1]);
		/* The number now refers to another file. */
		pair(p);
		CHECK_EQ(send(p[1], "new", 3, 0), 3);
		CHECK_EQ(DO(loop, SYS_read, p[0], in, 8), 3);
		close(p[0]);
		close(p[1]);
		flexsc_fd_forget(p[0]);
		flexsc_fd_forget(p[1]);
	}
}

/* A close in a batch of more requests than the ring has room for. */
WAITING_TEST(a_close_among_many_closes)
{
	static struct call calls[3000];
	int p[2];
	char in;

	pair(p);
	CHECK_EQ(flexsc_loop_fix_fd(loop, p[0]), 0);
	for (unsigned int i = 0; i < 3000; i++) {
		calls[i] = (struct call)CALL_INIT;
		if (i == 100)
			POST(loop, &calls[i], SYS_close, p[0]);
		else
			POST(loop, &calls[i], SYS_fsync, p[1]);
	}
	CHECK_EQ(DO(loop, SYS_read, p[1], &in, 1), 0);
	for (unsigned int i = 0; i < 3000; i++)
		CHECK_EQ(await_call(loop, &calls[i]), i == 100 ? 0 : -EINVAL);
}

WAITING_TEST(an_unfixed_descriptor_is_closed_plainly)
{
	struct call waiting = CALL_INIT;
	int p[2];
	char in;

	for (unsigned int i = 0; i < 20; i++) {
		pair(p);
		CHECK_EQ(flexsc_loop_fix_fd(loop, p[0]), 0);
		waiting = (struct call)CALL_INIT;
		POST(loop, &waiting, SYS_read, p[0], &in, 1);
		if (i % 2)
			run_for(loop, 1);
		CHECK_EQ(flexsc_loop_cancel_fd(loop, p[0]), 1);
		CHECK(is_cancelled(await_call(loop, &waiting)));
		CHECK_EQ(flexsc_loop_unfix_fd(loop, p[0]), 0);
		flexsc_fd_forget(p[0]);
		CHECK_EQ(close(p[0]), 0);
		CHECK_EQ(recv(p[1], &in, 1, 0), 0);
		close(p[1]);
	}
}

LOOP_TEST(a_descriptor_that_cannot_be_fixed_is_refused)
{
	const int fd = open("/dev/null", O_RDWR | O_CLOEXEC);
	int copy, err = 0;

	CHECK_EQ(flexsc_loop_fix_fd(NULL, fd), -ENXIO);
	CHECK_EQ(flexsc_loop_unfix_fd(NULL, fd), -ENXIO);
	CHECK_EQ(flexsc_loop_fix_fd(loop, -1), -EBADF);
	CHECK_EQ(flexsc_loop_unfix_fd(loop, -1), 0);
	CHECK_EQ(flexsc_loop_unfix_fd(loop, 100000), 0);
	if (!raise_fd_limit(2000))
		SKIP("needs 2000 descriptors");
	for (unsigned int i = 0; !err && i < 1500; i++) {
		copy = dup(fd);
		CHECK(copy >= 0);
		err = flexsc_loop_fix_fd(loop, copy);
	}
	CHECK_EQ(err, is_fixing() ? -ENOSPC : 0);
	if (err) {
		CHECK_EQ(flexsc_loop_unfix_fd(loop, copy - 1), 0);
		CHECK_EQ(flexsc_loop_fix_fd(loop, copy), 0);
		CHECK_EQ(DO(loop, SYS_write, copy, "x", 1), 1);
	}
}

/* The benefit of fixing: the ring itself holds the file. */
LOOP_TEST(the_engine_keeps_hold_of_the_file)
{
	int p[2];
	char in[4];

	if (strcmp(test_engine(), "uring") != 0)
		SKIP("only io_uring has fixed files");
	pair(p);
	CHECK_EQ(flexsc_loop_fix_fd(loop, p[0]), 0);
	CHECK_EQ(send(p[1], "abc", 3, 0), 3);
	CHECK_EQ(DO(loop, SYS_read, p[0], in, 1), 1);
	CHECK_EQ(close(p[0]), 0);
	CHECK_EQ(DO(loop, SYS_read, p[0], in, 1), is_fixing() ? 1 : -EBADF);
}
