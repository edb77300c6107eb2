/* SPDX-License-Identifier: MIT */
/*
 * Chains: the second call waits for the first, may take its result, and does
 * not run if the first failed.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "../harness.h"

static struct flexsc_loop *loop;

static void chain(unsigned int flags)
{
	CHECK_EQ(flexsc_loop_chain(loop, flags), 0);
}

static bool exists(const char *path)
{
	struct stat st;

	return stat(path, &st) == 0;
}

static void finish(void)
{
	CHECK_EQ(flexsc_loop_run(loop), 0);
	CHECK_EQ(stats_of(loop).outstanding, 0);
	CHECK_EQ(flexsc_loop_destroy(loop), 0);
}

/* Appends to a file; without a chain the order would be open. */
TEST(a_chain_of_a_thousand_runs_in_order)
{
	static struct call calls[1000];
	static char text[1000][5], got[4001];
	int fd;

	loop = test_loop();
	enter_scratch();
	fd = open("f", O_CREAT | O_RDWR | O_APPEND | O_CLOEXEC, 0600);
	for (unsigned int i = 0; i < 1000; i++) {
		calls[i].cb.callback = call_done;
		text[i][0] = (char)('0' + i / 100);
		text[i][1] = (char)('0' + i / 10 % 10);
		text[i][2] = (char)('0' + i % 10);
		text[i][3] = ' ';
		if (i)
			chain(0);
		POST(loop, &calls[i], SYS_write, fd, text[i], 4);
	}
	CHECK_EQ(flexsc_loop_run(loop), 0);
	CHECK_EQ(pread(fd, got, sizeof(got), 0), 4000);
	for (unsigned int i = 0; i < 1000; i++) {
		CHECK_EQ(calls[i].runs, 1);
		CHECK_EQ(calls[i].cb.ret, 4);
		CHECK_EQ(memcmp(got + 4 * (size_t)i, text[i], 4), 0);
	}
	leave_scratch();
	finish();
}

TEST(a_result_becomes_an_argument)
{
	struct call open_call = CALL_INIT, read_call = CALL_INIT;
	struct call write_call = CALL_INIT;
	char buf[64] = "", got[64] = "";
	int p[2];

	loop = test_loop();
	CHECK_EQ(pipe2(p, O_CLOEXEC), 0);
	POST(loop, &open_call, SYS_openat, AT_FDCWD, "/proc/self/comm", O_RDONLY,
	     0);
	chain(FLEXSC_CHAIN_ARG(0));
	POST(loop, &read_call, SYS_read, -1, buf, sizeof(buf));
	chain(FLEXSC_CHAIN_ARG(2));
	POST(loop, &write_call, SYS_write, p[1], buf, 0);
	CHECK_EQ(flexsc_loop_run(loop), 0);
	CHECK(open_call.cb.ret >= 0);
	CHECK(read_call.cb.ret > 0);
	CHECK_EQ(write_call.cb.ret, read_call.cb.ret);
	CHECK_EQ(read(p[0], got, sizeof(got)), read_call.cb.ret);
	CHECK_EQ(strcmp(got, buf), 0);
	CHECK_EQ(close((int)open_call.cb.ret), 0);
	finish();
}

/* What a call returns when its argument n is replaced by value. */
static int64_t with_argument(int fd, unsigned int n, int64_t value,
			     unsigned int nr, uint64_t a, uint64_t b,
			     uint64_t c, uint64_t d, uint64_t e, uint64_t f)
{
	struct call first = CALL_INIT, next = CALL_INIT;

	POST(loop, &first, SYS_lseek, fd, value, SEEK_SET);
	chain(FLEXSC_CHAIN_ARG(n));
	CHECK_EQ(flexsc_loop_call(loop, &next.cb, nr, a, b, c, d, e, f), 0);
	await_call(loop, &next);
	CHECK_EQ(first.cb.ret, value);
	return next.cb.ret;
}

#define WITH(n, value, ...)	with_argument(fd, n, value, ARGS(__VA_ARGS__))

/* Without the replacement each of the six calls would fail. */
TEST(any_argument_can_be_a_result)
{
	int fd = (int)PLAIN(SYS_memfd_create, "chain", 0);
	uint64_t no = UINT64_MAX;
	int64_t map;

	loop = test_loop();
	CHECK_EQ(ftruncate(fd, 3 * 4096), 0);
	CHECK_EQ(pwrite(fd, "second page", 11, 4096), 11);
	CHECK_EQ(WITH(0, fd, SYS_lseek, no, 7, SEEK_SET), 7);
	CHECK_EQ(WITH(1, 4096, SYS_lseek, fd, no, SEEK_SET), 4096);
	CHECK_EQ(WITH(2, 200, SYS_fcntl, fd, F_DUPFD, no), 200);
	CHECK_EQ(WITH(3, 100, SYS_pwrite64, fd, "abc", 3, no), 3);
	map = WITH(4, fd, SYS_mmap, NULL, 4096, PROT_READ, MAP_SHARED, no, 0);
	CHECK(map > 0);
	CHECK_EQ(memcmp((char *)map + 100, "abc", 3), 0);
	map = WITH(5, 4096, SYS_mmap, NULL, 4096, PROT_READ, MAP_SHARED, fd, no);
	CHECK(map > 0);
	CHECK_EQ(memcmp((char *)map, "second", 6), 0);
	finish();
}

static char message[8];
static unsigned int steps;

static void fill_message(struct flexsc_cb *cb)
{
	steps++;
	strcpy(message, "filled");
	call_done(cb);
}

TEST(the_first_callback_runs_before_the_second_call)
{
	struct call first = { .cb = { .callback = fill_message } };
	struct call second = CALL_INIT;
	char got[8] = "";
	int p[2];

	loop = test_loop();
	CHECK_EQ(pipe2(p, O_CLOEXEC), 0);
	POST(loop, &first, SYS_getppid);
	chain(0);
	POST(loop, &second, SYS_write, p[1], message, 7);
	CHECK_EQ(await_call(loop, &second), 7);
	CHECK_EQ(steps, 1);
	CHECK_EQ(read(p[0], got, sizeof(got)), 7);
	CHECK_EQ(strcmp(got, "filled"), 0);
	finish();
}

TEST(a_failure_cancels_the_rest_of_the_chain)
{
	struct call calls[5];

	loop = test_loop();
	enter_scratch();
	for (unsigned int i = 0; i < 5; i++) {
		const char *path = i == 1 ? "none/d" : &"abcde"[i];

		calls[i] = (struct call)CALL_INIT;
		if (i)
			chain(0);
		POST(loop, &calls[i], SYS_mkdirat, AT_FDCWD, path, 0700);
	}
	CHECK_EQ(flexsc_loop_run(loop), 0);
	CHECK_EQ(calls[0].cb.ret, 0);
	CHECK_EQ(calls[1].cb.ret, -ENOENT);
	for (unsigned int i = 2; i < 5; i++) {
		CHECK_EQ(calls[i].cb.ret, -ECANCELED);
		CHECK_EQ(calls[i].runs, 1);
		CHECK(!exists(&"abcde"[i]));
	}
	leave_scratch();
	finish();
}

TEST(a_chain_may_go_on_after_a_failure)
{
	struct call calls[5];

	loop = test_loop();
	for (unsigned int i = 0; i < 5; i++) {
		calls[i] = (struct call)CALL_INIT;
		if (i)
			chain(i == 3 ? 0 : FLEXSC_CHAIN_ALWAYS);
		POST(loop, &calls[i], i % 2 ? SYS_getppid : SYS_close, -1);
	}
	CHECK_EQ(flexsc_loop_run(loop), 0);
	CHECK_EQ(calls[0].cb.ret, -EBADF);
	CHECK_EQ(calls[1].cb.ret, getppid());
	CHECK_EQ(calls[2].cb.ret, -EBADF);
	CHECK_EQ(calls[3].cb.ret, -ECANCELED);
	CHECK_EQ(calls[4].cb.ret, -EBADF);
	finish();
}

/* With both flags the next call gets the error as its argument. */
TEST(an_error_can_be_an_argument)
{
	struct call first = CALL_INIT, second = CALL_INIT;

	loop = test_loop();
	POST(loop, &first, SYS_close, -1);
	chain(FLEXSC_CHAIN_ARG(0) | FLEXSC_CHAIN_ALWAYS);
	POST(loop, &second, SYS_close, 0);
	CHECK_EQ(flexsc_loop_run(loop), 0);
	CHECK_EQ(first.cb.ret, -EBADF);
	CHECK_EQ(second.cb.ret, -EBADF);
	CHECK(fcntl(0, F_GETFD) >= 0);
	finish();
}

TEST(a_blocked_chain_delays_nothing_else)
{
	struct call first = CALL_INIT, second = CALL_INIT;
	char c;
	int p[2];

	NEEDS_WAITING_ENGINE();
	loop = test_loop();
	CHECK_EQ(pipe2(p, O_CLOEXEC), 0);
	POST(loop, &first, SYS_read, p[0], &c, 1);
	chain(0);
	POST(loop, &second, SYS_getppid);
	for (unsigned int i = 0; i < 10; i++)
		CHECK_EQ(DO(loop, SYS_getppid), getppid());
	run_for(loop, 20);
	CHECK_EQ(first.runs + second.runs, 0);
	CHECK_EQ(write(p[1], "x", 1), 1);
	CHECK_EQ(await_call(loop, &first), 1);
	CHECK_EQ(await_call(loop, &second), getppid());
	finish();
}

/* A chain whose first call waits; cancel one of its calls. */
static void cancel_in_chain(unsigned int which)
{
	struct call calls[4];
	char c;
	int p[2];

	enter_scratch();
	loop = test_loop();
	CHECK_EQ(pipe2(p, O_CLOEXEC), 0);
	for (unsigned int i = 0; i < 4; i++) {
		calls[i] = (struct call)CALL_INIT;
		if (i == 0) {
			POST(loop, &calls[i], SYS_read, p[0], &c, 1);
			continue;
		}
		chain(0);
		POST(loop, &calls[i], SYS_mkdirat, AT_FDCWD, &"abcd"[i], 0700);
	}
	run_for(loop, 20);
	CHECK_EQ(flexsc_loop_cancel(loop, &calls[which].cb), 0);
	run_for(loop, 20);
	for (unsigned int i = which + 1; i < 4; i++)
		CHECK_EQ(await_call(loop, &calls[i]), -ECANCELED);
	CHECK(is_cancelled(await_call(loop, &calls[which])));
	if (which > 0) {
		CHECK_EQ(calls[0].runs, 0);
		CHECK_EQ(write(p[1], "x", 1), 1);
		CHECK_EQ(await_call(loop, &calls[0]), 1);
	}
	for (unsigned int i = 1; i < 4; i++) {
		await_call(loop, &calls[i]);
		CHECK_EQ(exists(&"abcd"[i]), i < which);
		CHECK_EQ(calls[i].cb.ret, i < which ? 0 : -ECANCELED);
	}
	leave_scratch();
	finish();
}

TEST(cancelling_the_first_call_cancels_the_chain)
{
	NEEDS_WAITING_ENGINE();
	cancel_in_chain(0);
}

TEST(cancelling_a_middle_call_cancels_what_follows)
{
	NEEDS_WAITING_ENGINE();
	cancel_in_chain(2);
}

TEST(cancelling_the_last_call_leaves_the_others)
{
	NEEDS_WAITING_ENGINE();
	cancel_in_chain(3);
}

static unsigned int chained_runs;

static void post_chain(struct flexsc_cb *cb)
{
	static struct call inner[3];

	call_done(cb);
	for (unsigned int i = 0; i < 3; i++) {
		inner[i] = (struct call){ .cb = { .callback = fill_message } };
		if (i)
			chain(0);
		POST(loop, &inner[i], SYS_getppid);
	}
	chained_runs++;
}

TEST(a_callback_may_post_a_chain)
{
	struct call call = { .cb = { .callback = post_chain } };

	loop = test_loop();
	POST(loop, &call, SYS_getppid);
	CHECK_EQ(flexsc_loop_run(loop), 0);
	CHECK_EQ(chained_runs, 1);
	CHECK_EQ(steps, 3);
	finish();
}

TEST(calls_without_cb_can_be_chained)
{
	struct call last = CALL_INIT;

	loop = test_loop();
	enter_scratch();
	for (unsigned int i = 0; i < 100; i++) {
		if (i)
			chain(0);
		CHECK_EQ(flexsc_loop_call(loop, NULL, ARGS(SYS_mkdirat, AT_FDCWD,
							   "d", 0700)), 0);
		chain(0);
		CHECK_EQ(flexsc_loop_call(loop, NULL, ARGS(SYS_unlinkat, AT_FDCWD,
							   "d", AT_REMOVEDIR)), 0);
	}
	chain(0);
	POST(loop, &last, SYS_getppid);
	CHECK_EQ(await_call(loop, &last), getppid());
	CHECK(!exists("d"));
	leave_scratch();
	finish();
}

TEST(misused_chains_are_refused)
{
	struct call call = CALL_INIT, next = CALL_INIT;

	loop = test_loop();
	CHECK_EQ(flexsc_loop_chain(loop, 0), -ESRCH);
	POST(loop, &call, SYS_getppid);
	CHECK_EQ(flexsc_loop_chain(loop, FLEXSC_CHAIN_ARG(6)), -EINVAL);
	CHECK_EQ(flexsc_loop_chain(loop, 8), -EINVAL);
	CHECK_EQ(flexsc_loop_chain(loop, 0x20), -EINVAL);
	CHECK_EQ(flexsc_loop_chain(loop, 0x80000000U), -EINVAL);
	CHECK_EQ(await_call(loop, &call), getppid());
	CHECK_EQ(flexsc_loop_chain(loop, 0), -ESRCH);
	/* None of the refused ones held the next call back. */
	POST(loop, &next, SYS_getppid);
	CHECK_EQ(await_call(loop, &next), getppid());
	finish();
}

/* A refused post doesn't break the chain that the next one continues. */
TEST(a_refused_post_runs_nothing_of_the_chain)
{
	struct call first = CALL_INIT, next = CALL_INIT;

	loop = test_loop();
	POST(loop, &first, SYS_close, -1);
	chain(0);
	CHECK_EQ(flexsc_loop_call(loop, &next.cb, ARGS(SYS_execve)), -EOPNOTSUPP);
	CHECK_EQ(await_call(loop, &first), -EBADF);
	run_for(loop, 10);
	CHECK_EQ(next.runs, 0);
	finish();
}

/* Chained to a call that completed meanwhile: it may run, and ends once. */
TEST(a_call_chained_too_late_completes)
{
	struct call first = CALL_INIT, next = CALL_INIT;

	loop = test_loop();
	POST(loop, &first, SYS_getppid);
	chain(FLEXSC_CHAIN_ALWAYS);
	CHECK_EQ(await_call(loop, &first), getppid());
	POST(loop, &next, SYS_getppid);
	await_call(loop, &next);
	CHECK(next.cb.ret == getppid() || next.cb.ret == -ECANCELED);
	finish();
}

TEST(chains_run_in_order_when_entries_are_short)
{
	static struct call blocked[64], calls[100];
	char text[100], got[101] = "", c[64];
	int p[64][2], out[2];

	NEEDS_WAITING_ENGINE();
	loop = NEW_LOOP(.max_entries = 64);
	CHECK_EQ(pipe2(out, O_CLOEXEC), 0);
	for (unsigned int i = 0; i < 64; i++) {
		CHECK_EQ(pipe2(p[i], O_CLOEXEC), 0);
		blocked[i].cb.callback = call_done;
		POST(loop, &blocked[i], SYS_read, p[i][0], &c[i], 1);
	}
	run_for(loop, 10);
	for (unsigned int i = 0; i < 100; i++) {
		text[i] = (char)('!' + i % 90);
		calls[i].cb.callback = call_done;
		if (i)
			chain(0);
		POST(loop, &calls[i], SYS_write, out[1], &text[i], 1);
	}
	run_for(loop, 20);
	CHECK_EQ(calls[0].runs, 0);
	for (unsigned int i = 0; i < 64; i++)
		CHECK_EQ(write(p[i][1], "x", 1), 1);
	CHECK_EQ(await_call(loop, &calls[99]), 1);
	CHECK_EQ(read(out[0], got, sizeof(got)), 100);
	CHECK_EQ(memcmp(got, text, 100), 0);
	finish();
}
