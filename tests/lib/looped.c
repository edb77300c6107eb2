/* SPDX-License-Identifier: MIT */
/* Looped multi-calls: looped.h. */
#include "looped.h"

#include <sys/un.h>

#define LENGTH	1000U

LOOPED(many_files_are_opened_read_and_closed)
{
	static struct file_read files[100];
	unsigned int fds = count_fds();

	for (unsigned int i = 0; i < 100; i++)
		post_read(&files[i]);
	CHECK_EQ(flexsc_loop_run(loop), 0);
	for (unsigned int i = 0; i < 100; i++)
		check_read(&files[i]);
	CHECK_EQ(count_fds(), fds);
}

/* Returns in how many batches the owner submits the calls of one chain. */
static uint64_t batches_of_a_read(void)
{
	struct file_read file;
	uint64_t before;

	/* The first call of a loop may need further calls. */
	post_read(&file);
	CHECK_EQ(flexsc_loop_run(loop), 0);
	before = stats_of(loop).batches;
	memset(&file, 0, sizeof(file));
	post_read(&file);
	CHECK_EQ(flexsc_loop_run(loop), 0);
	check_read(&file);
	return stats_of(loop).batches - before;
}

/*
 * With threads, the owner submits the chain as one batch. A callback, or an engine that
 * doesn't continue chains, makes it three.
 */
TEST(a_chain_without_callbacks_is_one_batch)
{
	loop = test_loop();
	if (!strcmp(test_engine(), "threads")) {
		quiet = true;
		CHECK_EQ(batches_of_a_read(), 1);
	}
	quiet = false;
	CHECK_EQ(batches_of_a_read(), 3);
}

/* Also a call in the middle may have a callback, and share its argument. */
TEST(calls_behind_a_callback_get_the_same_argument)
{
	struct call calls[5], *last = &calls[4];
	unsigned int fds;

	loop = test_loop();
	fds = count_fds();
	quiet = true;
	for (unsigned int with = 0; with < 5; with++) {
		for (unsigned int i = 0; i < 5; i++)
			calls[i] = i == with ? (struct call)CALL_INIT : quiet_call();
		POST(loop, &calls[0], SYS_openat, AT_FDCWD, "/", O_RDONLY | O_CLOEXEC, 0);
		POST_AFTER(loop, &calls[0], FLEXSC_CHAIN_ARG(0), &calls[1], SYS_fsync, -1);
		POST_AFTER(loop, &calls[1], SAME | FLEXSC_CHAIN_ALWAYS, &calls[2],
			   SYS_fsync, -1);
		POST_AFTER(loop, &calls[2], SAME | FLEXSC_CHAIN_ALWAYS, &calls[3],
			   SYS_lseek, -1, 0, SEEK_CUR);
		POST_AFTER(loop, &calls[3], SAME | FLEXSC_CHAIN_ALWAYS, last, SYS_close, -1);
		CHECK_EQ(flexsc_loop_run(loop), 0);
		CHECK(calls[0].cb.ret > 0);
		CHECK_EQ(calls[3].cb.ret, 0);
		CHECK_EQ(last->cb.ret, 0);
		CHECK_EQ(calls[with].runs, 1);
		CHECK_EQ(count_fds(), fds);
	}
}

LOOPED(a_long_chain_runs_in_order)
{
	static struct call calls[LENGTH];
	static char bytes[LENGTH], got[LENGTH + 1];
	int fd;

	enter_scratch();
	fd = open("f", O_CREAT | O_RDWR | O_APPEND | O_CLOEXEC, 0600);
	for (unsigned int i = 0; i < LENGTH; i++) {
		calls[i] = quiet_call();
		bytes[i] = (char)('!' + i % 90);
		POST_AFTER(loop, i ? &calls[i - 1] : NULL, FLEXSC_CHAIN_FULL,
			   &calls[i], SYS_write, fd, &bytes[i], 1);
	}
	CHECK_EQ(flexsc_loop_run(loop), 0);
	CHECK_EQ(pread(fd, got, sizeof(got), 0), LENGTH);
	CHECK_EQ(memcmp(got, bytes, LENGTH), 0);
	for (unsigned int i = 0; i < LENGTH; i++)
		CHECK_EQ(calls[i].cb.ret, 1);
}

/* A chain takes no entry that another call needs. */
LOOPED(chains_leave_entries_to_other_calls, .max_entries = 64)
{
	static struct call calls[100], fed;
	char c;
	int p[2];

	NEEDS_WAITING_ENGINE();
	CHECK_EQ(pipe2(p, O_CLOEXEC), 0);
	for (unsigned int i = 0; i < 100; i++) {
		calls[i] = quiet_call();
		POST_AFTER(loop, i ? &calls[i - 1] : NULL, 0, &calls[i],
			   i ? SYS_getppid : SYS_read, p[0], &c, 1);
	}
	run_for(loop, 5);
	fed = (struct call)CALL_INIT;
	POST(loop, &fed, SYS_write, p[1], "x", 1);
	CHECK_EQ(await_call(loop, &fed), 1);
	CHECK_EQ(flexsc_loop_run(loop), 0);
	for (unsigned int i = 1; i < 100; i++)
		CHECK_EQ(calls[i].cb.ret, getppid());
}

LOOPED(a_failure_ends_the_chain)
{
	struct call calls[5] = { quiet_call() };

	enter_scratch();
	CHECK_EQ(mkdir("c", 0700), 0);
	POST(loop, &calls[0], SYS_getppid);
	post_directories(calls, 5);
	CHECK_EQ(flexsc_loop_run(loop), 0);
	CHECK_EQ(calls[1].cb.ret, 0);
	CHECK_EQ(calls[2].cb.ret, -EEXIST);
	CHECK_EQ(calls[3].cb.ret, -ECANCELED);
	CHECK_EQ(calls[4].cb.ret, -ECANCELED);
	CHECK_EQ(calls[4].runs, 1);
	CHECK(!exists(3) && !exists(4));
	CHECK_EQ(stats_of(loop).cancelled, 2);
}

LOOPED(a_chain_goes_on_after_a_failure_if_wanted)
{
	struct call calls[5];

	for (unsigned int i = 0; i < 5; i++) {
		calls[i] = quiet_call();
		POST_AFTER(loop, i ? &calls[i - 1] : NULL,
			   i == 3 ? 0 : FLEXSC_CHAIN_ALWAYS, &calls[i],
			   i % 2 ? SYS_getppid : SYS_close, -1);
	}
	CHECK_EQ(flexsc_loop_run(loop), 0);
	CHECK_EQ(calls[0].cb.ret, -EBADF);
	CHECK_EQ(calls[1].cb.ret, getppid());
	CHECK_EQ(calls[2].cb.ret, -EBADF);
	CHECK_EQ(calls[3].cb.ret, -ECANCELED);
	CHECK_EQ(calls[4].cb.ret, -EBADF);
}

LOOPED(a_short_transfer_ends_the_chain)
{
	struct call first = quiet_call(), next = quiet_call();
	char buf[16];
	int fd = (int)PLAIN(SYS_memfd_create, "short", 0);

	CHECK_EQ(write(fd, "1234", 4), 4);
	POST(loop, &first, SYS_pread64, fd, buf, 5, 0);
	POST_AFTER(loop, &first, FLEXSC_CHAIN_FULL, &next, SYS_getppid);
	CHECK_EQ(flexsc_loop_run(loop), 0);
	CHECK_EQ(first.cb.ret, 4);
	CHECK_EQ(next.cb.ret, -ECANCELED);
}

/* The chain waits in the middle, and its last call gets a length from there. */
LOOPED(a_waiting_chain_delays_nothing_else)
{
	struct call calls[3] = { quiet_call(), quiet_call(), CALL_INIT };
	char buf[16], got[16];
	int p[2], q[2];

	NEEDS_WAITING_ENGINE();
	CHECK_EQ(pipe2(p, O_CLOEXEC), 0);
	CHECK_EQ(pipe2(q, O_CLOEXEC), 0);
	POST(loop, &calls[0], SYS_getppid);
	POST_AFTER(loop, &calls[0], 0, &calls[1], SYS_read, p[0], buf, sizeof(buf));
	POST_AFTER(loop, &calls[1], FLEXSC_CHAIN_ARG(2), &calls[2], SYS_write,
		   q[1], buf, 0);
	for (unsigned int i = 0; i < 10; i++)
		CHECK_EQ(DO(loop, SYS_getppid), getppid());
	CHECK_EQ(calls[2].runs, 0);
	CHECK_EQ(write(p[1], "twelve bytes", 12), 12);
	CHECK_EQ(await_call(loop, &calls[2]), 12);
	CHECK_EQ(read(q[0], got, sizeof(got)), 12);
	CHECK_EQ(memcmp(got, "twelve bytes", 12), 0);
}

/* FLEXSC_CHAIN_SAME. */

/* Returns a listening socket, and the address that it got. */
static int listener(struct sockaddr_un *at)
{
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	socklen_t size = sizeof(*at);

	*at = (struct sockaddr_un){ .sun_family = AF_UNIX };
	CHECK_EQ(bind(fd, (struct sockaddr *)at, sizeof(at->sun_family)), 0);
	CHECK_EQ(listen(fd, 8), 0);
	CHECK_EQ(getsockname(fd, (struct sockaddr *)at, &size), 0);
	return fd;
}

/*
 * A chain accepts a connection, receives and closes it. The receive is cancelled before
 * there is a connection ("early"), or when it waits for data.
 */
static void receive_cancelled(bool early)
{
	struct call accepted = quiet_call(), received = quiet_call();
	struct call closed = CALL_INIT;
	struct sockaddr_un at;
	int s, fd;
	char c;

	NEEDS_WAITING_ENGINE();
	s = listener(&at);
	POST(loop, &accepted, SYS_accept4, s, NULL, NULL, SOCK_CLOEXEC);
	POST_AFTER(loop, &accepted, FLEXSC_CHAIN_ARG(0), &received, SYS_recvfrom,
		   -1, &c, 1, 0, NULL, NULL);
	POST_AFTER(loop, &received, SAME | FLEXSC_CHAIN_ALWAYS, &closed, SYS_close,
		   -1);
	run_for(loop, 5);
	if (early)
		CHECK_EQ(flexsc_loop_cancel(loop, &received.cb), 0);
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	CHECK_EQ(connect(fd, (struct sockaddr *)&at,
			 sizeof(at.sun_family) + 6), 0);
	if (!early) {
		run_for(loop, 5);
		CHECK_EQ(closed.runs, 0);
		CHECK_EQ(flexsc_loop_cancel(loop, &received.cb), 0);
	}
	CHECK_EQ(await_call(loop, &closed), 0);
	CHECK(accepted.cb.ret >= 0);
	CHECK(is_cancelled(received.cb.ret));
	CHECK_EQ(fcntl((int)accepted.cb.ret, F_GETFD), -1);
	CHECK_EQ(recv(fd, &c, 1, 0), 0);
}

static void receive_cancelled_early(void)
{
	receive_cancelled(true);
}

static void receive_cancelled_late(void)
{
	receive_cancelled(false);
}

LOOPED_(a_close_gets_what_a_cancelled_call_was_to_get, receive_cancelled_early)
LOOPED_(a_close_gets_what_a_cancelled_call_got, receive_cancelled_late)

LOOPED(a_value_is_passed_along_the_chain)
{
	struct call calls[4] = { quiet_call(), quiet_call(), quiet_call(),
				 CALL_INIT };
	int fd = (int)PLAIN(SYS_memfd_create, "passed", 0);

	POST(loop, &calls[0], SYS_fcntl, fd, F_DUPFD_CLOEXEC, 100);
	POST_AFTER(loop, &calls[0], FLEXSC_CHAIN_ARG(0), &calls[1], SYS_ftruncate,
		   -1, 77);
	POST_AFTER(loop, &calls[1], SAME, &calls[2], SYS_lseek, -1, 5, SEEK_END);
	POST_AFTER(loop, &calls[2], SAME, &calls[3], SYS_close, -1);
	CHECK_EQ(flexsc_loop_run(loop), 0);
	CHECK(calls[0].cb.ret >= 100);
	CHECK_EQ(calls[1].cb.ret, 0);
	CHECK_EQ(calls[2].cb.ret, 82);
	CHECK_EQ(calls[3].cb.ret, 0);
	CHECK_EQ(fcntl((int)calls[0].cb.ret, F_GETFD), -1);
	CHECK(fcntl(fd, F_GETFD) >= 0);
}

LOOPED(a_close_is_harmless_after_a_failed_open)
{
	struct call calls[3] = { quiet_call(), quiet_call(), CALL_INIT };
	char c;

	POST(loop, &calls[0], SYS_openat, AT_FDCWD, "/none", O_RDONLY, 0);
	POST_AFTER(loop, &calls[0], FLEXSC_CHAIN_ARG(0), &calls[1], SYS_read, 0, &c,
		   1);
	POST_AFTER(loop, &calls[1], SAME | FLEXSC_CHAIN_ALWAYS, &calls[2],
		   SYS_close, 0);
	CHECK_EQ(flexsc_loop_run(loop), 0);
	CHECK_EQ(calls[0].cb.ret, -ENOENT);
	CHECK_EQ(calls[1].cb.ret, -ECANCELED);
	CHECK_EQ(calls[2].cb.ret, -EBADF);
	CHECK(fcntl(0, F_GETFD) >= 0);
}

/*
 * Seeks twice from position 1000, by what a failed openat() leaves. The first seek starts
 * only if "flags" let it. Returns the last position.
 */
static int64_t seek_by_failure(unsigned int flags, int64_t first)
{
	const unsigned int offset = FLEXSC_CHAIN_ARG(1);
	struct call calls[3] = { quiet_call(), quiet_call(), CALL_INIT };
	int fd = (int)PLAIN(SYS_memfd_create, "failed", 0);

	CHECK_EQ(lseek(fd, 1000, SEEK_SET), 1000);
	POST(loop, &calls[0], SYS_openat, AT_FDCWD, "/none", O_RDONLY, 0);
	POST_AFTER(loop, &calls[0], offset | flags, &calls[1], SYS_lseek, fd, 1,
		   SEEK_CUR);
	POST_AFTER(loop, &calls[1],
		   offset | FLEXSC_CHAIN_SAME | FLEXSC_CHAIN_ALWAYS, &calls[2],
		   SYS_lseek, fd, 1, SEEK_CUR);
	CHECK_EQ(flexsc_loop_run(loop), 0);
	CHECK_EQ(calls[0].cb.ret, -ENOENT);
	CHECK_EQ(calls[1].cb.ret, first);
	CHECK_EQ(close(fd), 0);
	return calls[2].cb.ret;
}

LOOPED(the_same_argument_can_be_a_failure)
{
	CHECK_EQ(seek_by_failure(0, -ECANCELED), 1000 - ECANCELED);
	CHECK_EQ(seek_by_failure(FLEXSC_CHAIN_ALWAYS, 1000 - ENOENT),
		 1000 - 2 * ENOENT);
}

LOOPED(a_value_that_does_not_exist_is_refused)
{
	struct call first = quiet_call(), next = quiet_call(), last = CALL_INIT;

	POST(loop, &first, SYS_getppid);
	CHECK_EQ(post_after(loop, &first, SAME, &next, ARGS(SYS_close)), -EINVAL);
	CHECK_EQ(post_after(loop, &first, FLEXSC_CHAIN_SAME, &next,
			    ARGS(SYS_close)), -EINVAL);
	POST_AFTER(loop, &first, 0, &next, SYS_getppid);
	CHECK_EQ(post_after(loop, &next, SAME, &last, ARGS(SYS_close)), -EINVAL);
	CHECK_EQ(flexsc_loop_run(loop), 0);
	CHECK_EQ(last.runs, 0);
}
