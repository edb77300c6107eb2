/* SPDX-License-Identifier: MIT */
/*
 * Chains: the second call waits for the first, can take its result as an argument,
 * and doesn't run if the first failed.
 */
#include "tests/harness/harness.h"

static bool exists(const char *path)
{
	struct stat st;

	return stat(path, &st) == 0;
}

/* Appends to a file. Without the chain, their order would be undefined. */
LOOP_TEST(a_chain_of_a_thousand_runs_in_order)
{
	static struct call calls[1000];
	static char text[1000][5], got[4001];
	int fd;

	enter_scratch();
	fd = open("f", O_CREAT | O_RDWR | O_APPEND | O_CLOEXEC, 0600);
	for (unsigned int i = 0; i < 1000; i++) {
		calls[i].cb.callback = call_done;
		text[i][0] = (char)('0' + i / 100);
		text[i][1] = (char)('0' + i / 10 % 10);
		text[i][2] = (char)('0' + i % 10);
		text[i][3] = ' ';
		POST_AFTER(loop, i ? &calls[i - 1] : NULL, 0, &calls[i],
			   SYS_write, fd, text[i], 4);
	}
	CHECK_EQ(flexsc_loop_run(loop), 0);
	CHECK_EQ(pread(fd, got, sizeof(got), 0), 4000);
	for (unsigned int i = 0; i < 1000; i++) {
		CHECK_EQ(calls[i].runs, 1);
		CHECK_EQ(calls[i].cb.ret, 4);
		CHECK_EQ(memcmp(got + 4 * (size_t)i, text[i], 4), 0);
	}
}

/* An echo of as many bytes as have arrived. */
LOOP_TEST(a_send_follows_its_receive)
{
	struct call receive = CALL_INIT, echo = CALL_INIT, again = CALL_INIT;
	char bytes[16] = "", got[16] = "";
	int sv[2];

	CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sv), 0);
	CHECK_EQ(send(sv[1], "first", 5, 0), 5);
	CHECK_EQ(flexsc_loop_recv(loop, &receive.cb, sv[0], bytes, sizeof(bytes), 0), 0);
	CHECK_EQ(flexsc_loop_send_after(loop, &echo.cb, &receive.cb, FLEXSC_CHAIN_ARG(2),
					sv[0], bytes, 0, MSG_NOSIGNAL), 0);
	CHECK_EQ(flexsc_loop_recv_after(loop, &again.cb, &echo.cb, 0, sv[1], got,
					sizeof(got), 0), 0);
	CHECK_EQ(flexsc_loop_run(loop), 0);
	CHECK_EQ(receive.cb.ret, 5);
	CHECK_EQ(echo.cb.ret, 5);
	CHECK_EQ(again.cb.ret, 5);
	CHECK(!memcmp(got, "first", 5));
	close(sv[0]);
	close(sv[1]);
}

LOOP_TEST(a_result_becomes_an_argument)
{
	struct call open_call = CALL_INIT, read_call = CALL_INIT;
	struct call write_call = CALL_INIT;
	char buf[64] = "", got[64] = "";
	int p[2];

	CHECK_EQ(pipe2(p, O_CLOEXEC), 0);
	POST(loop, &open_call, SYS_openat, AT_FDCWD, "/proc/self/comm", O_RDONLY,
	     0);
	POST_AFTER(loop, &open_call, FLEXSC_CHAIN_ARG(0), &read_call,
		   SYS_read, -1, buf, sizeof(buf));
	POST_AFTER(loop, &read_call, FLEXSC_CHAIN_ARG(2), &write_call,
		   SYS_write, p[1], buf, 0);
	CHECK_EQ(flexsc_loop_run(loop), 0);
	CHECK(open_call.cb.ret >= 0);
	CHECK(read_call.cb.ret > 0);
	CHECK_EQ(write_call.cb.ret, read_call.cb.ret);
	CHECK_EQ(read(p[0], got, sizeof(got)), read_call.cb.ret);
	CHECK_EQ(strcmp(got, buf), 0);
	CHECK_EQ(close((int)open_call.cb.ret), 0);
}

/* Returns the result of a call whose argument n is replaced by the value. */
static int64_t with_argument(int fd, unsigned int n, int64_t value,
			     unsigned int nr, uint64_t a, uint64_t b,
			     uint64_t c, uint64_t d, uint64_t e, uint64_t f)
{
	struct call first = CALL_INIT, next = CALL_INIT;

	POST(loop, &first, SYS_lseek, fd, value, SEEK_SET);
	CHECK_EQ(post_after(loop, &first, FLEXSC_CHAIN_ARG(n), &next, nr, a, b, c,
			    d, e, f), 0);
	await_call(loop, &next);
	CHECK_EQ(first.cb.ret, value);
	return next.cb.ret;
}

#define WITH(n, value, ...)	with_argument(fd, n, value, ARGS(__VA_ARGS__))

/* Without the replacement, each of the six calls would fail. */
LOOP_TEST(any_argument_can_be_a_result)
{
	int fd = (int)PLAIN(SYS_memfd_create, "chain", 0);
	uint64_t no = UINT64_MAX;
	int64_t map;

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
}

static char message[8];
static unsigned int steps;

static void fill_message(struct flexsc_cb *cb)
{
	steps++;
	strcpy(message, "filled");
	call_done(cb);
}

LOOP_TEST(the_first_callback_runs_before_the_second_call)
{
	struct call first = { .cb = { .callback = fill_message } };
	struct call second = CALL_INIT;
	char got[8] = "";
	int p[2];

	CHECK_EQ(pipe2(p, O_CLOEXEC), 0);
	POST(loop, &first, SYS_getppid);
	POST_AFTER(loop, &first, 0, &second, SYS_write, p[1], message, 7);
	CHECK_EQ(await_call(loop, &second), 7);
	CHECK_EQ(steps, 1);
	CHECK_EQ(read(p[0], got, sizeof(got)), 7);
	CHECK_EQ(strcmp(got, "filled"), 0);
}

LOOP_TEST(a_failure_cancels_the_rest_of_the_chain)
{
	struct call calls[5];

	enter_scratch();
	for (unsigned int i = 0; i < 5; i++) {
		const char *path = i == 1 ? "none/d" : &"abcde"[i];

		calls[i] = (struct call)CALL_INIT;
		POST_AFTER(loop, i ? &calls[i - 1] : NULL, 0, &calls[i],
			   SYS_mkdirat, AT_FDCWD, path, 0700);
	}
	CHECK_EQ(flexsc_loop_run(loop), 0);
	CHECK_EQ(calls[0].cb.ret, 0);
	CHECK_EQ(calls[1].cb.ret, -ENOENT);
	for (unsigned int i = 2; i < 5; i++) {
		CHECK_EQ(calls[i].cb.ret, -ECANCELED);
		CHECK_EQ(calls[i].runs, 1);
		CHECK(!exists(&"abcde"[i]));
	}
}

/* With both flags, the next call gets the error as its argument. */
LOOP_TEST(an_error_can_be_an_argument)
{
	struct call first = CALL_INIT, second = CALL_INIT;

	POST(loop, &first, SYS_close, -1);
	POST_AFTER(loop, &first, FLEXSC_CHAIN_ARG(0) | FLEXSC_CHAIN_ALWAYS, &second,
		   SYS_close, 0);
	CHECK_EQ(flexsc_loop_run(loop), 0);
	CHECK_EQ(first.cb.ret, -EBADF);
	CHECK_EQ(second.cb.ret, -EBADF);
	CHECK(fcntl(0, F_GETFD) >= 0);
}

WAITING_TEST(a_blocked_chain_delays_nothing_else)
{
	struct call first = CALL_INIT, second = CALL_INIT;
	char c;
	int p[2];

	CHECK_EQ(pipe2(p, O_CLOEXEC), 0);
	POST(loop, &first, SYS_read, p[0], &c, 1);
	POST_AFTER(loop, &first, 0, &second, SYS_getppid);
	for (unsigned int i = 0; i < 10; i++)
		CHECK_EQ(DO(loop, SYS_getppid), getppid());
	run_for(loop, 20);
	CHECK_EQ(first.runs + second.runs, 0);
	CHECK_EQ(write(p[1], "x", 1), 1);
	CHECK_EQ(await_call(loop, &first), 1);
	CHECK_EQ(await_call(loop, &second), getppid());
}

/* Posts a chain whose first call waits, and cancels one of its calls. */
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
		if (i == 0)
			POST(loop, &calls[i], SYS_read, p[0], &c, 1);
		else
			POST_AFTER(loop, &calls[i - 1], 0, &calls[i],
				   SYS_mkdirat, AT_FDCWD, &"abcd"[i], 0700);
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
}

TEST(cancelling_the_first_call_cancels_the_chain)
{
	NEEDS_WAITING_ENGINE();
	cancel_in_chain(0);
}

TEST(cancelling_a_middle_call_cancels_the_later_calls)
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
		POST_AFTER(loop, i ? &inner[i - 1] : NULL, 0, &inner[i],
			   SYS_getppid);
	}
	chained_runs++;
}

LOOP_TEST(a_callback_may_post_a_chain)
{
	struct call call = { .cb = { .callback = post_chain } };

	POST(loop, &call, SYS_getppid);
	CHECK_EQ(flexsc_loop_run(loop), 0);
	CHECK_EQ(chained_runs, 1);
	CHECK_EQ(steps, 3);
}

WAITING_TEST(chains_run_in_order_when_entries_are_short, .max_entries = 64)
{
	static struct call blocked[64], calls[100];
	char bytes[100], got[101] = "", c[64];
	int p[64][2], out[2];

	CHECK_EQ(pipe2(out, O_CLOEXEC), 0);
	for (unsigned int i = 0; i < 64; i++) {
		CHECK_EQ(pipe2(p[i], O_CLOEXEC), 0);
		blocked[i].cb.callback = call_done;
		POST(loop, &blocked[i], SYS_read, p[i][0], &c[i], 1);
	}
	run_for(loop, 10);
	for (unsigned int i = 0; i < 100; i++) {
		bytes[i] = (char)('!' + i % 90);
		calls[i].cb.callback = call_done;
		POST_AFTER(loop, i ? &calls[i - 1] : NULL, 0, &calls[i],
			   SYS_write, out[1], &bytes[i], 1);
	}
	run_for(loop, 20);
	CHECK_EQ(calls[0].runs, 0);
	for (unsigned int i = 0; i < 64; i++)
		CHECK_EQ(write(p[i][1], "x", 1), 1);
	CHECK_EQ(await_call(loop, &calls[99]), 1);
	CHECK_EQ(read(out[0], got, sizeof(got)), 100);
	CHECK_EQ(memcmp(got, bytes, 100), 0);
}

/* Short transfers. */

/* Makes a call whose result is its length or less, and another call chained to it. */
static void transfer(int64_t want, bool full, unsigned int nr, uint64_t a,
		     uint64_t b, uint64_t c, uint64_t d, uint64_t e, uint64_t f)
{
	struct call first = CALL_INIT, next = CALL_INIT;

	CHECK_EQ(flexsc_loop_call(loop, &first.cb, nr, a, b, c, d, e, f), 0);
	POST_AFTER(loop, &first, FLEXSC_CHAIN_FULL, &next, SYS_getppid);
	CHECK_EQ(flexsc_loop_run(loop), 0);
	if (first.cb.ret != want || next.cb.ret != (full ? getppid() : -ECANCELED))
		test_fail(__FILE__, __LINE__, "call %u: %lld, then %lld", nr,
			  (long long)first.cb.ret, (long long)next.cb.ret);
	CHECK_EQ(first.runs, 1);
	CHECK_EQ(next.runs, 1);
}

#define FULL(want, ...)		transfer(want, true, ARGS(__VA_ARGS__))
#define SHORT(want, ...)	transfer(want, false, ARGS(__VA_ARGS__))

static char text[] = "0123456789", more[64];
static struct iovec two[2] = { { text, 4 }, { text + 4, 6 } };
static struct iovec room[2] = { { more, 6 }, { more + 6, 10 } };

/* An emulator may lack preadv2(). */
static bool has_flagged_calls(void)
{
	return PLAIN(SYS_preadv2, -1, two, 1, 0, 0, 0) != -ENOSYS;
}

static int ten_bytes(void)
{
	int fd = (int)PLAIN(SYS_memfd_create, "ten", 0);

	CHECK_EQ(write(fd, text, 10), 10);
	CHECK_EQ(lseek(fd, 0, SEEK_SET), 0);
	return fd;
}

LOOP_TEST(a_short_read_ends_a_full_chain)
{
	int fd;

	fd = ten_bytes();
	FULL(10, SYS_read, fd, more, 10);
	SHORT(0, SYS_read, fd, more, 10);
	FULL(0, SYS_read, fd, more, 0);
	FULL(4, SYS_pread64, fd, more, 4, 0);
	SHORT(4, SYS_pread64, fd, more, 5, 6);
	CHECK_EQ(lseek(fd, 0, SEEK_SET), 0);
	FULL(10, SYS_readv, fd, two, 2);
	FULL(10, SYS_preadv, fd, two, 2, 0, 0);
	if (has_flagged_calls())
		FULL(4, SYS_preadv2, fd, two, 1, 6, 0, 0);
	SHORT(10, SYS_preadv, fd, room, 2, 0, 0);
	if (has_flagged_calls())
		SHORT(10, SYS_preadv2, fd, room, 2, 0, 0, 0);
	CHECK_EQ(lseek(fd, 0, SEEK_SET), 0);
	SHORT(10, SYS_readv, fd, room, 2);
}

/* The limit on a file's size is 16 bytes. */
LOOP_TEST(a_short_write_ends_a_full_chain)
{
	const struct rlimit limit = { 16, RLIM_INFINITY };
	int fd;

	enter_scratch();
	fd = open("f", O_CREAT | O_RDWR | O_CLOEXEC, 0600);
	CHECK_EQ(setrlimit(RLIMIT_FSIZE, &limit), 0);
	FULL(10, SYS_write, fd, text, 10);
	SHORT(6, SYS_write, fd, text, 10);
	CHECK_EQ(lseek(fd, 6, SEEK_SET), 6);
	FULL(10, SYS_writev, fd, two, 2);
	CHECK_EQ(lseek(fd, 10, SEEK_SET), 10);
	SHORT(6, SYS_writev, fd, two, 2);
	FULL(10, SYS_pwrite64, fd, text, 10, 6);
	SHORT(9, SYS_pwrite64, fd, text, 10, 7);
	FULL(10, SYS_pwritev, fd, two, 2, 6, 0);
	SHORT(1, SYS_pwritev, fd, two, 2, 15, 0);
	if (has_flagged_calls())
		FULL(10, SYS_pwritev2, fd, two, 2, 6, 0, 0);
	if (has_flagged_calls())
		SHORT(2, SYS_pwritev2, fd, two, 2, 14, 0, 0);
}

LOOP_TEST(a_short_message_ends_a_full_chain)
{
	struct msghdr whole = { .msg_iov = two, .msg_iovlen = 2 };
	struct msghdr large = { .msg_iov = room, .msg_iovlen = 2 };
	int s[2];

	CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, s), 0);
	FULL(10, SYS_sendto, s[0], text, 10, 0, NULL, 0);
	FULL(4, SYS_recvfrom, s[1], more, 4, 0, NULL, NULL);
	SHORT(6, SYS_recvfrom, s[1], more, 10, 0, NULL, NULL);
	FULL(10, SYS_sendmsg, s[0], &whole, 0);
	SHORT(10, SYS_recvmsg, s[1], &large, 0);
	CHECK_EQ(write(s[0], text, 10), 10);
	FULL(10, SYS_recvmsg, s[1], &whole, 0);
}

LOOP_TEST(a_short_copy_ends_a_full_chain)
{
	int p[2], q[2], fd, to;

	CHECK_EQ(pipe2(p, O_CLOEXEC), 0);
	CHECK_EQ(pipe2(q, O_CLOEXEC), 0);
	enter_scratch();
	fd = open("from", O_CREAT | O_RDWR | O_CLOEXEC, 0600);
	to = open("to", O_CREAT | O_RDWR | O_CLOEXEC, 0600);
	CHECK_EQ(write(fd, text, 10), 10);
	CHECK_EQ(lseek(fd, 0, SEEK_SET), 0);
	FULL(4, SYS_copy_file_range, fd, NULL, to, NULL, 4, 0);
	SHORT(6, SYS_copy_file_range, fd, NULL, to, NULL, 7, 0);
	CHECK_EQ(lseek(fd, 0, SEEK_SET), 0);
	FULL(4, SYS_sendfile, p[1], fd, NULL, 4);
	SHORT(6, SYS_sendfile, p[1], fd, NULL, 7);
	SHORT(10, SYS_tee, p[0], q[1], 64, 0);
	FULL(10, SYS_tee, p[0], q[1], 10, 0);
	FULL(10, SYS_splice, q[0], NULL, to, NULL, 10, 0);
	SHORT(10, SYS_splice, q[0], NULL, to, NULL, 11, 0);
	FULL(10, SYS_vmsplice, q[1], two, 2, 0);
}

LOOP_TEST(calls_without_a_length_are_full)
{
	FULL(getppid(), SYS_getppid);
	FULL(0, SYS_fcntl, 0, F_SETFD, 0);
	SHORT(-EBADF, SYS_read, -1, more, 1);
	SHORT(-EBADF, SYS_fcntl, -1, F_GETFD);
}

LOOP_TEST(a_replaced_length_is_the_requested_length)
{
	struct call calls[4] = { CALL_INIT, CALL_INIT, CALL_INIT, CALL_INIT };
	int p[2], fd;

	CHECK_EQ(pipe2(p, O_CLOEXEC), 0);
	fd = ten_bytes();
	POST(loop, &calls[0], SYS_read, fd, more, sizeof(more));
	POST_AFTER(loop, &calls[0], FLEXSC_CHAIN_ARG(2), &calls[1],
		   SYS_write, p[1], more, 1000);
	POST_AFTER(loop, &calls[1], FLEXSC_CHAIN_FULL, &calls[2],
		   SYS_read, p[0], more, 20);
	POST_AFTER(loop, &calls[2], FLEXSC_CHAIN_FULL, &calls[3], SYS_getppid);
	CHECK_EQ(flexsc_loop_run(loop), 0);
	CHECK_EQ(calls[0].cb.ret, 10);
	CHECK_EQ(calls[1].cb.ret, 10);
	CHECK_EQ(calls[2].cb.ret, 10);
	CHECK_EQ(calls[3].cb.ret, -ECANCELED);
}

/* Some engines make a write that is larger than the pipe in several parts. */
#define LARGE	(1U << 20)

static char large[LARGE];
static int drained[2];
static size_t drain_most;

static void *drain(void *arg)
{
	static char buf[5000];
	size_t n = 0;

	while (n < drain_most)
		n += (size_t)read(drained[0], buf, sizeof(buf));
	if (drain_most < LARGE)
		close(drained[0]);
	return arg;
}

static void in_parts(size_t most, unsigned int nr, uint64_t b, uint64_t c,
		     uint64_t d)
{
	struct call first = CALL_INIT, next = CALL_INIT;
	pthread_t thread;

	NEEDS_WAITING_ENGINE();
	loop = test_loop();
	if (nr == SYS_sendmsg || nr == SYS_sendfile)
		CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0,
				    drained), 0);
	else
		CHECK_EQ(pipe2(drained, O_CLOEXEC), 0);
	drain_most = most;
	POST(loop, &first, nr, drained[1], b, c, d);
	run_for(loop, 5);
	POST_AFTER(loop, &first, FLEXSC_CHAIN_FULL, &next, SYS_getppid);
	thread = test_thread(drain, NULL);
	CHECK_EQ(flexsc_loop_run(loop), 0);
	pthread_join(thread, NULL);
	if (most == LARGE) {
		CHECK_EQ(first.cb.ret, LARGE);
		CHECK_EQ(next.cb.ret, getppid());
	} else {
		CHECK(first.cb.ret > 0 && first.cb.ret < LARGE);
		CHECK_EQ(next.cb.ret, -ECANCELED);
	}
}

static struct iovec parts[3] = { { large, 1000 }, { large, 100000 },
				 { large, LARGE - 101000 } };

static struct msghdr three = { .msg_iov = parts, .msg_iovlen = 3 };

static int large_file(void)
{
	int fd = (int)PLAIN(SYS_memfd_create, "large", 0);

	CHECK_EQ(ftruncate(fd, LARGE), 0);
	return fd;
}

#define IN_PARTS(id, most, ...)						\
	TEST(id)							\
	{								\
		signal(SIGPIPE, SIG_IGN);				\
		in_parts(most, __VA_ARGS__);				\
	}

IN_PARTS(a_write_in_parts_is_full_in_the_end, LARGE, SYS_write,
	 (uintptr_t)large, LARGE, 0)
IN_PARTS(a_vector_in_parts_is_full_in_the_end, LARGE, SYS_writev,
	 (uintptr_t)parts, 3, 0)
IN_PARTS(a_message_in_parts_is_full_in_the_end, LARGE, SYS_sendmsg,
	 (uintptr_t)&three, 0, 0)
IN_PARTS(a_file_sent_in_parts_is_full_in_the_end, LARGE, SYS_sendfile,
	 (uint64_t)large_file(), 0, LARGE)
/* SIGPIPE is ignored, so the result is short. */
IN_PARTS(a_write_that_ends_in_parts_is_short, 300000, SYS_write,
	 (uintptr_t)large, LARGE, 0)
IN_PARTS(a_vector_that_ends_in_parts_is_short, 300000, SYS_writev,
	 (uintptr_t)parts, 3, 0)
IN_PARTS(a_message_that_ends_in_parts_is_short, 300000, SYS_sendmsg,
	 (uintptr_t)&three, 0, 0)
IN_PARTS(a_file_that_ends_in_parts_is_short, 300000, SYS_sendfile,
	 (uint64_t)large_file(), 0, LARGE)

/* Any pending call can be the predecessor. */

#define AFTER(call, before, flags, ...)					\
	post_after(loop, before, flags, call, ARGS(__VA_ARGS__))

LOOP_TEST(a_call_may_follow_any_pending_call)
{
	struct call opened = CALL_INIT, other = CALL_INIT, got = CALL_INIT;
	struct call closed = CALL_INIT;

	POST(loop, &opened, SYS_openat, AT_FDCWD, "/proc/self/comm", O_RDONLY, 0);
	POST(loop, &other, SYS_close, -1);
	CHECK_EQ(AFTER(&got, &opened, FLEXSC_CHAIN_ARG(0), SYS_read, -1, more,
		       sizeof(more)), 0);
	/* "got" has no entry yet. */
	CHECK_EQ(AFTER(&closed, &got, FLEXSC_CHAIN_ALWAYS, SYS_getppid), 0);
	CHECK_EQ(flexsc_loop_run(loop), 0);
	CHECK(opened.cb.ret >= 0);
	CHECK_EQ(other.cb.ret, -EBADF);
	CHECK(got.cb.ret > 0);
	CHECK_EQ(closed.cb.ret, getppid());
}

LOOP_TEST(a_call_without_cb_may_follow)
{
	struct call first = CALL_INIT;

	enter_scratch();
	POST(loop, &first, SYS_mkdirat, AT_FDCWD, "a", 0700);
	CHECK_EQ(flexsc_loop_mkdirat_after(loop, NULL, &first.cb, 0, AT_FDCWD,
					   "a/b", 0700), 0);
	CHECK_EQ(flexsc_loop_run(loop), 0);
	CHECK(exists("a/b"));
}

LOOP_TEST(a_short_read_ends_the_call_that_names_it)
{
	struct call first = CALL_INIT, next = CALL_INIT, last = CALL_INIT;

	POST(loop, &first, SYS_pread64, ten_bytes(), more, 11, 0);
	CHECK_EQ(AFTER(&next, &first, FLEXSC_CHAIN_FULL, SYS_getppid), 0);
	CHECK_EQ(AFTER(&last, &next, 0, SYS_getppid), 0);
	CHECK_EQ(flexsc_loop_run(loop), 0);
	CHECK_EQ(next.cb.ret, -ECANCELED);
	CHECK_EQ(last.cb.ret, -ECANCELED);
}

LOOP_TEST(a_call_has_one_successor)
{
	struct call first = CALL_INIT, next = CALL_INIT, other = CALL_INIT;

	POST(loop, &first, SYS_getppid);
	CHECK_EQ(AFTER(&next, &first, 0, SYS_getppid), 0);
	CHECK_EQ(AFTER(&other, &first, 0, SYS_getppid), -EBUSY);
	/* After the cancellation another call may follow. */
	CHECK_EQ(flexsc_loop_cancel(loop, &next.cb), 0);
	CHECK_EQ(AFTER(&other, &first, 0, SYS_getppid), 0);
	CHECK_EQ(flexsc_loop_run(loop), 0);
	CHECK_EQ(next.cb.ret, -ECANCELED);
	CHECK_EQ(other.cb.ret, getppid());
}

LOOP_TEST(misused_predecessors_are_refused)
{
	static const unsigned int unknown[] = { FLEXSC_CHAIN_ARG(6), 8, 0x40, 0x80,
						0x80000000U };
	struct call timer = CALL_INIT, first = CALL_INIT, next = CALL_INIT;
	const uint64_t args[6] = { 0 };

	CHECK_EQ(AFTER(&next, &first, 0, SYS_getppid), -ENOENT);
	CHECK_EQ(flexsc_loop_timer(loop, &timer.cb, MS), 0);
	CHECK_EQ(AFTER(&next, &timer, 0, SYS_getppid), -ENOENT);
	POST(loop, &first, SYS_getppid);
	CHECK_EQ(flexsc_loop_call_after(loop, &next.cb, NULL, 0, SYS_getppid,
					args), -EINVAL);
	CHECK_EQ(AFTER(&next, &next, 0, SYS_getppid), -EINVAL);
	for (unsigned int i = 0; i < 5; i++)
		CHECK_EQ(AFTER(&next, &first, unknown[i], SYS_getppid), -EINVAL);
	CHECK_EQ(AFTER(&next, &first, FLEXSC_CHAIN_FULL | FLEXSC_CHAIN_ALWAYS,
		       SYS_getppid), -EINVAL);
	CHECK_EQ(AFTER(&next, &first, 0, SYS_execve), -EOPNOTSUPP);
	CHECK_EQ(AFTER(&next, &first, 0, 60000), -ENOSYS);
	CHECK_EQ(flexsc_loop_call_after(loop, &next.cb, &first.cb, 0, SYS_getppid,
					NULL), -EINVAL);
	CHECK_EQ(flexsc_loop_call_after(NULL, &next.cb, &first.cb, 0, SYS_getppid,
					args), -ENXIO);
	CHECK_EQ(flexsc_loop_run(loop), 0);
	CHECK_EQ(first.cb.ret, getppid());
	CHECK_EQ(next.runs, 0);
	CHECK_EQ(AFTER(&next, &first, 0, SYS_getppid), -ENOENT);
}

/* A chain that is posted among other calls, and then extended at its end. */
LOOP_TEST(several_chains_grow_at_the_same_time)
{
	static struct call calls[4][100];
	static char written[4][101];
	int p[4][2];

	for (unsigned int i = 0; i < 4; i++)
		CHECK_EQ(pipe2(p[i], O_CLOEXEC), 0);
	for (unsigned int k = 0; k < 100; k++)
		for (unsigned int i = 0; i < 4; i++) {
			calls[i][k].cb.callback = call_done;
			written[i][k] = (char)('!' + (i + k) % 90);
			if (!k)
				POST(loop, &calls[i][k], SYS_write, p[i][1],
				     &written[i][k], 1);
			else
				CHECK_EQ(AFTER(&calls[i][k], &calls[i][k - 1],
					       FLEXSC_CHAIN_FULL, SYS_write,
					       p[i][1], &written[i][k], 1), 0);
		}
	CHECK_EQ(flexsc_loop_run(loop), 0);
	for (unsigned int i = 0; i < 4; i++) {
		char got[101] = "";

		CHECK_EQ(read(p[i][0], got, 101), 100);
		CHECK_EQ(strcmp(got, written[i]), 0);
	}
}
