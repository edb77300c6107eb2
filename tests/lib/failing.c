/* SPDX-License-Identifier: MIT */
/*
 * A system call that an engine needs fails permanently while its loop has calls: for
 * example, a program enters a sandbox that forbids io_uring. No call is lost or
 * completes twice, and the loop can be destroyed.
 */
#include "tests/harness/harness.h"

static bool is_engine(const char *name)
{
	return !strcmp(test_engine(), name);
}

/*
 * Does the ring stop working once its owner can't enter the kernel? A ring that a
 * kernel thread polls continues with the calls that it has.
 */
static bool ring_dies(void)
{
	return is_engine("uring") && !getenv("FLEXSC_TEST_SQPOLL");
}

static void forbid_ring(bool register_too, int error)
{
	const int calls[] = { SYS_io_uring_enter, SYS_io_uring_register };

	forbid(calls, register_too ? 2 : 1, error);
}

/* Calls that wait, each on its own socket or pipe. */
struct waiting {
	struct call recv, read, accept, sleep, many_recv, many_accept;
	struct flexsc_buffers *buffers;
	int pair[2], pipe[2], many[2], listeners[2];
	struct timespec long_time;
	char bytes[8];
};

static int listener(void)
{
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	const struct sockaddr_un any = { .sun_family = AF_UNIX };

	CHECK_EQ(bind(fd, (const struct sockaddr *)&any, sizeof(sa_family_t)),
		 0);
	CHECK_EQ(listen(fd, 5), 0);
	return fd;
}

static void post_waiting(struct flexsc_loop *loop, struct waiting *w)
{
	const struct call call = CALL_INIT;

	*w = (struct waiting){ .recv = call, .read = call, .accept = call,
			       .sleep = call, .many_recv = call,
			       .many_accept = call, .long_time = { 1000, 0 } };
	CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, w->pair), 0);
	CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, w->many), 0);
	CHECK_EQ(pipe(w->pipe), 0);
	w->listeners[0] = listener();
	w->listeners[1] = listener();
	CHECK_EQ(flexsc_buffers_create(loop, &w->buffers, 4, 64), 0);
	POST(loop, &w->recv, SYS_recvfrom, w->pair[0], w->bytes, 8, 0);
	POST(loop, &w->read, SYS_read, w->pipe[0], w->bytes, 8);
	POST(loop, &w->accept, SYS_accept4, w->listeners[0]);
	POST(loop, &w->sleep, SYS_nanosleep, &w->long_time, NULL);
	CHECK_EQ(flexsc_loop_recv_multishot(loop, &w->many_recv.cb, w->many[0],
					    w->buffers), 0);
	CHECK_EQ(flexsc_loop_accept_multishot(loop, &w->many_accept.cb,
					      w->listeners[1], 0), 0);
	run_for(loop, 20);
	CHECK_EQ(w->recv.runs, 0);
}

static struct call *const *waiting_calls(struct waiting *w)
{
	static struct call *calls[7];

	calls[0] = &w->recv;
	calls[1] = &w->read;
	calls[2] = &w->accept;
	calls[3] = &w->sleep;
	calls[4] = &w->many_recv;
	calls[5] = &w->many_accept;
	return calls;
}

/* Calls that were taken back have consumed no data. */
static void check_untouched(struct waiting *w)
{
	char byte = 0;

	CHECK_EQ(write(w->pair[1], "a", 1), 1);
	CHECK_EQ(recv(w->pair[0], &byte, 1, MSG_DONTWAIT), 1);
	CHECK_EQ(byte, 'a');
	CHECK_EQ(write(w->pipe[1], "b", 1), 1);
	CHECK_EQ(read(w->pipe[0], &byte, 1), 1);
	CHECK_EQ(byte, 'b');
	CHECK(!w->bytes[0]);
}

/* Makes calls of all kinds when the loop can't enter the kernel any more. */
static void post_and_check(struct flexsc_loop *loop)
{
	struct call c[16];
	char got[16][8] = { { 0 } };
	struct iovec in[2] = { { got[1], 8 }, { got[2], 8 } };
	struct iovec out = { (char[]){ "msg" }, 3 };
	struct msghdr to = { .msg_iov = &out, .msg_iovlen = 1 };
	struct msghdr from = { .msg_iov = &in[1], .msg_iovlen = 1 };
	struct call chained = CALL_INIT, slow = CALL_INIT, timer = CALL_INIT;
	const struct timespec brief = { 0, 5 * MS };
	struct statx file = { 0 };
	int fd = open("f", O_CREAT | O_RDWR | O_CLOEXEC | O_TRUNC, 0600);
	int held = open("h", O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
	int sv[2], other = dup(fd), made;
	unsigned int n = 0;

	CHECK_EQ(pwrite(fd, "0123456789", 10, 0), 10);
	CHECK_EQ(socketpair(AF_UNIX, SOCK_DGRAM, 0, sv), 0);
	CHECK_EQ(send(sv[1], "first", 5, 0), 5);
	CHECK_EQ(send(sv[1], "second", 6, 0), 6);
	CHECK_EQ(flexsc_fd_hint(fd, FLEXSC_FD_REGULAR | FLEXSC_FD_BLOCKING), 0);
	CHECK_EQ(flexsc_fd_hint(sv[0], FLEXSC_FD_STREAM | FLEXSC_FD_BLOCKING), 0);
	for (n = 0; n < 16; n++)
		c[n] = (struct call)CALL_INIT;
	n = 0;
	CHECK_EQ(flexsc_loop_timer(loop, &timer.cb, 2 * MS), 0);
	POST(loop, &c[n++], SYS_pread64, fd, got[0], 8, 2);
	POST(loop, &c[n++], SYS_preadv, fd, &in[0], 1, 4, 0);
	POST(loop, &c[n++], SYS_statx, AT_FDCWD, "f", 0, STATX_SIZE, &file);
	POST(loop, &c[n++], SYS_fsync, fd);
	POST(loop, &c[n++], SYS_fdatasync, fd);
	POST(loop, &c[n++], SYS_close, other);
	POST(loop, &c[n++], SYS_recvfrom, sv[0], got[3], 8, MSG_PEEK);
	POST(loop, &c[n++], SYS_sendto, sv[0], "sent", 4, MSG_NOSIGNAL);
	POST(loop, &c[n++], SYS_openat, AT_FDCWD, "g", O_CREAT | O_WRONLY, 0600);
	POST(loop, &c[n++], SYS_getppid);
	POST(loop, &slow, SYS_nanosleep, &brief, NULL);
	POST_AFTER(loop, &slow, 0, &chained, SYS_pwrite64, held, "held", 4, 0);
	for (unsigned int i = 0; i < n; i++)
		await_call(loop, &c[i]);
	CHECK_EQ(c[0].cb.ret, 8);
	CHECK(!memcmp(got[0], "23456789", 8));
	CHECK_EQ(c[1].cb.ret, 6);
	CHECK(!memcmp(got[1], "456789", 6));
	CHECK_EQ(c[2].cb.ret, 0);
	CHECK_EQ(file.stx_size, 10);
	CHECK_EQ(c[3].cb.ret, 0);
	CHECK_EQ(c[4].cb.ret, 0);
	CHECK_EQ(c[5].cb.ret, 0);
	CHECK_EQ(c[6].cb.ret, 5);
	CHECK(!memcmp(got[3], "first", 5));
	CHECK_EQ(c[7].cb.ret, 4);
	CHECK_EQ(recv(sv[1], got[4], 8, MSG_DONTWAIT), 4);
	made = (int)c[8].cb.ret;
	CHECK(made >= 0 && fcntl(made, F_GETFD) >= 0);
	CHECK(made == other || fcntl(other, F_GETFD) == -1);
	CHECK_EQ(c[9].cb.ret, getppid());
	CHECK_EQ(await_call(loop, &slow), 0);
	CHECK_EQ(await_call(loop, &chained), 4);
	CHECK_EQ(await_call(loop, &timer), 0);
	/* Again, with the facts that the library caches by now. */
	CHECK_EQ(DO(loop, SYS_recvmsg, sv[0], &from, 0), 5);
	CHECK(!memcmp(got[2], "first", 5));
	CHECK_EQ(DO(loop, SYS_sendmsg, sv[0], &to, 0), 3);
	CHECK_EQ(recv(sv[1], got[4], 8, MSG_DONTWAIT), 3);
	CHECK_EQ(DO(loop, SYS_close, made), 0);
	CHECK_EQ(lseek(fd, 3, SEEK_SET), 3);
	CHECK_EQ(DO(loop, SYS_read, fd, got[5], 2), 2);
	CHECK(!memcmp(got[5], "34", 2));
	for (unsigned int i = 0; i < n; i++)
		CHECK_EQ(c[i].runs, 1);
	close(fd);
	close(held);
	close(sv[0]);
	close(sv[1]);
}

/*
 * No call is in the kernel: all calls complete normally, and flexsc_loop_why() names
 * the failure.
 */
static void unsubmitted(int error, bool register_too)
{
	struct flexsc_loop *loop;
	struct call reader = CALL_INIT;
	char byte;
	int p[2];

	enter_scratch();
	loop = test_loop();
	CHECK_EQ(DO(loop, SYS_getppid), getppid());
	forbid_ring(register_too, error);
	post_and_check(loop);
	post_and_check(loop);
	if (is_engine("uring")) {
		CHECK(!strcmp(flexsc_loop_engine(loop), "threads"));
		CHECK(strstr(flexsc_loop_why(loop), "io_uring_enter"));
		CHECK(strstr(flexsc_loop_why(loop), strerror(error)));
	}
	CHECK_EQ(pipe(p), 0);
	if (!is_engine("sync"))
		POST(loop, &reader, SYS_read, p[0], &byte, 1);
	CHECK_EQ(flexsc_loop_wait(loop, MS), 0);
	CHECK_EQ(flexsc_loop_destroy(loop), 0);
	CHECK_EQ(reader.runs, !is_engine("sync"));
}

#define UNSUBMITTED(error)						\
	TEST(entering_fails_with_##error)				\
	{								\
		unsubmitted(error, false);				\
	}								\
	TEST(all_of_the_ring_fails_with_##error)			\
	{								\
		unsubmitted(error, true);				\
	}

UNSUBMITTED(EPERM)
UNSUBMITTED(EACCES)
UNSUBMITTED(ENOSYS)
UNSUBMITTED(EINVAL)
UNSUBMITTED(EBADF)
UNSUBMITTED(ENXIO)
UNSUBMITTED(EOPNOTSUPP)

static void post_again(struct waiting *w)
{
	w->recv = (struct call)CALL_INIT;
	w->many_accept = (struct call)CALL_INIT;
	POST(loop, &w->recv, SYS_recvfrom, w->pair[0], w->bytes, 8, 0);
	CHECK_EQ(flexsc_loop_accept_multishot(loop, &w->many_accept.cb,
					      w->listeners[0], 0), 0);
	CHECK_EQ(flexsc_loop_wait(loop, MS), 0);
	CHECK_EQ(write(w->pair[1], "again", 5), 5);
	CHECK_EQ(await_call(loop, &w->recv), 5);
}

/* The loop takes back the calls that are in the kernel. They may be made again. */
WAITING_TEST(calls_in_the_kernel_are_taken_back)
{
	struct waiting w;
	struct call *const *calls;

	enter_scratch();
	post_waiting(loop, &w);
	forbid_ring(false, EPERM);
	post_and_check(loop);
	if (!ring_dies()) {
		test_end_loop();
		return;
	}
	for (calls = waiting_calls(&w); *calls; calls++) {
		CHECK_EQ((*calls)->runs, 1);
		CHECK_EQ((*calls)->cb.ret, -ERESTART);
	}
	check_untouched(&w);
	post_again(&w);
	test_end_loop();
	CHECK_EQ(w.many_accept.runs, 1);
}

/*
 * Calls that can't be taken back stay pending, because the kernel may use their
 * memory. Waits return the error instead of sleeping forever.
 */
TEST(calls_that_stay_in_the_kernel_are_reported)
{
	struct flexsc_loop *loop = test_loop();
	struct waiting w;
	struct call *const *calls;

	NEEDS_WAITING_ENGINE();
	enter_scratch();
	post_waiting(loop, &w);
	forbid_ring(true, EPERM);
	if (!ring_dies()) {
		post_and_check(loop);
		/* Nor can the loop cancel calls that the polling thread has. */
		CHECK_EQ(flexsc_loop_destroy(loop),
			 is_engine("uring") ? -EIO : 0);
		return;
	}
	CHECK_EQ(flexsc_loop_wait(loop, 3600 * SECOND), -EPERM);
	post_and_check(loop);
	CHECK_EQ(flexsc_loop_run(loop), -EPERM);
	CHECK_EQ(flexsc_loop_run(loop), -EPERM);
	CHECK_EQ(flexsc_loop_cancel(loop, &w.recv.cb), 0);
	CHECK_EQ(flexsc_loop_run(loop), -EPERM);
	CHECK_EQ(flexsc_loop_dispatch(loop), 0);
	CHECK_EQ(flexsc_loop_destroy(loop), -EIO);
	for (calls = waiting_calls(&w); *calls; calls++)
		CHECK_EQ((*calls)->runs, 0);
	CHECK_EQ(write(w.pair[1], "a", 1), 1);
	CHECK_EQ(recv(w.pair[0], w.bytes, 1, MSG_DONTWAIT), 1);
}

/* The ring is full of requests, and none of them is submitted. */
LOOP_TEST(a_full_ring_fails)
{
	static struct call calls[5000];
	static char bytes[5000];
	unsigned int i;
	int fd;

	enter_scratch();
	fd = open("f", O_CREAT | O_RDWR | O_CLOEXEC, 0600);
	CHECK_EQ(pwrite(fd, "x", 1, 0), 1);
	CHECK_EQ(flexsc_fd_hint(fd, FLEXSC_FD_REGULAR | FLEXSC_FD_BLOCKING), 0);
	forbid_ring(false, EPERM);
	for (i = 0; i < 5000; i++) {
		calls[i] = (struct call)CALL_INIT;
		if (i % 3)
			POST(loop, &calls[i], SYS_pread64, fd, &bytes[i], 1, 0);
		else
			POST(loop, &calls[i], SYS_pwrite64, fd, "x", 1, i);
	}
	for (i = 0; i < 5000; i++) {
		CHECK_EQ(await_call(loop, &calls[i]), 1);
		CHECK_EQ(calls[i].runs, 1);
	}
}

/* Deadlines, cancellations and wake-ups still work. */
WAITING_TEST(a_failed_loop_is_a_whole_loop)
{
	struct call late = CALL_INIT, cancelled = CALL_INIT;
	char byte;
	int p[2];

	CHECK_EQ(pipe(p), 0);
	CHECK_EQ(DO(loop, SYS_getppid), getppid());
	/* Calls of a polling thread are then cancelled by io_uring_register(). */
	forbid_ring(ring_dies(), ENOSYS);
	POST(loop, &late, SYS_read, p[0], &byte, 1);
	CHECK_EQ(flexsc_loop_deadline(loop, &late.cb, 5 * MS), 0);
	POST(loop, &cancelled, SYS_read, p[0], &byte, 1);
	CHECK_EQ(await_call(loop, &late), -ETIME);
	CHECK_EQ(flexsc_loop_cancel(loop, &cancelled.cb), 0);
	CHECK(is_cancelled(await_call(loop, &cancelled)));
	CHECK_EQ(flexsc_loop_run(loop), 0);
	CHECK_EQ(flexsc_loop_wake(loop, NULL), 0);
	CHECK_EQ(flexsc_loop_wait(loop, 3600 * SECOND), 1);
}

/* The epoll set in which threads wait for entries fails. */
WAITING_TEST(waiting_for_many_fails)
{
	const int epolls[] = { SYS_epoll_pwait, SYS_epoll_pwait2 };
	struct call calls[4];
	char bytes[4];
	int p[4][2];

	for (unsigned int i = 0; i < 4; i++) {
		calls[i] = (struct call)CALL_INIT;
		CHECK_EQ(pipe(p[i]), 0);
		POST(loop, &calls[i], SYS_read, p[i][0], &bytes[i], 1);
	}
	run_for(loop, 20);
	forbid(epolls, 2, EPERM);
	for (unsigned int i = 0; i < 3; i++) {
		CHECK_EQ(write(p[i][1], "x", 1), 1);
		CHECK_EQ(await_call(loop, &calls[i]), 1);
	}
	CHECK_EQ(flexsc_loop_cancel(loop, &calls[3].cb), 0);
	CHECK(is_cancelled(await_call(loop, &calls[3])));
}
