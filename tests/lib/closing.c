/* SPDX-License-Identifier: MIT */
/*
 * Descriptors that are closed or replaced while a call that uses them is waiting. A
 * call in the kernel holds its files. A call that an engine makes in several
 * operations must look as if it did, too. In these tests the owner, woken by a timer
 * or by another thread, closes the descriptor when a part of the call is done, and
 * before the next operation can begin. The pairs (tests/lib/pairs) close and replace
 * descriptors of each kind of call from other calls. Other tests replace both
 * descriptors of a splice(), of which the output is the third argument. The last test
 * resets a connection instead.
 */
#include "tests/harness/harness.h"

#include <flexsc/fd.h>
#include <netinet/in.h>

#define MANY_BYTES	(1U << 20)	/* more than any buffer */

static char sent[MANY_BYTES], got[MANY_BYTES + 1];

/* A write that waits, and the files that its descriptor refers to. */
struct writing {
	struct flexsc_loop *loop;
	struct call call;
	struct flexsc_cb timer;
	struct call closing;
	void (*close)(struct writing *writing);
	/* the descriptor that it writes to, and the other end */
	int out, in;
	int other[2];		/* a pipe that takes the descriptor's place */
	pthread_t reader;
};

static void *read_all(void *arg)
{
	const struct writing *writing = arg;
	size_t n = 0;
	ssize_t ret;

	while ((ret = read(writing->in, got + n, sizeof(got) - n)) > 0)
		n += (size_t)ret;
	return (void *)n;
}

/* Starts a reader, so the write can continue. */
static void let_read(struct writing *writing)
{
	writing->reader = test_thread(read_all, writing);
}

/* Is the pipe full? Then the call waits, with a part of its bytes written. */
static bool is_part_done(const struct writing *writing)
{
	struct pollfd ends[2] = { { writing->in, POLLIN, 0 },
				  { writing->out, POLLOUT, 0 } };

	CHECK(poll(ends, 2, 0) >= 0);
	return ends[0].revents && !ends[1].revents;
}

static void timer_passed(struct flexsc_cb *cb)
{
	struct writing *writing = (struct writing *)((char *)cb -
				  offsetof(struct writing, timer));

	if (!is_part_done(writing)) {
		CHECK_EQ(flexsc_loop_timer(writing->loop, cb, MS), 0);
		return;
	}
	writing->close(writing);
	let_read(writing);
}

static void close_posted(struct writing *writing)
{
	POST(writing->loop, &writing->closing, SYS_close, writing->out);
}

static void close_plainly(struct writing *writing)
{
	CHECK_EQ(close(writing->out), 0);
	/* The next new descriptor gets the closed number. */
	CHECK_EQ(fcntl(writing->other[1], F_DUPFD_CLOEXEC, writing->out),
		 writing->out);
}

/*
 * Makes a call first, so that the kernel module gets a syscall thread. Without one,
 * the module leaves a call that may wait to the owner's own thread.
 */
static void begin(struct writing *writing, struct flexsc_loop *loop)
{
	const struct timespec brief = { .tv_nsec = 1 };

	*writing = (struct writing){
		.loop = loop,
		.call = CALL_INIT,
		.closing = CALL_INIT,
		.timer.callback = timer_passed,
		.out = -1,
	};
	for (uint32_t i = 0; i < MANY_BYTES; i++)
		sent[i] = (char)(i * 7 / 64 + i % 63);
	CHECK_EQ(pipe2(writing->other, O_CLOEXEC | O_NONBLOCK), 0);
	CHECK_EQ(DO(loop, SYS_nanosleep, &brief, NULL), 0);
}

static void begin_pipe(struct writing *writing, struct flexsc_loop *loop)
{
	int p[2];

	begin(writing, loop);
	CHECK_EQ(pipe2(p, O_CLOEXEC), 0);
	writing->in = p[0];
	writing->out = p[1];
	POST(loop, &writing->call, SYS_write, writing->out, sent, MANY_BYTES);
}

static void run_with_timer(struct writing *writing,
			   void (*close)(struct writing *writing))
{
	writing->close = close;
	CHECK_EQ(flexsc_loop_timer(writing->loop, &writing->timer, MS), 0);
	CHECK_EQ(flexsc_loop_run(writing->loop), 0);
}

/*
 * All bytes have arrived, none of them in the other pipe, and the reader sees the
 * end of the file: no descriptor of the write end remains open.
 */
static void check_written(struct writing *writing)
{
	void *n;
	char byte;

	CHECK_EQ(writing->call.cb.ret, MANY_BYTES);
	CHECK_EQ(pthread_join(writing->reader, &n), 0);
	CHECK_EQ((uintptr_t)n, MANY_BYTES);
	CHECK(!memcmp(got, sent, MANY_BYTES));
	CHECK_EQ(PLAIN(SYS_read, writing->other[0], &byte, 1), -EAGAIN);
	CHECK_EQ(flexsc_loop_destroy(writing->loop), 0);
}

/*
 * With the threads engine, a program has to cancel the calls before it closes the
 * descriptor: see flexsc-engines(7).
 */
TEST(a_write_with_a_part_done_survives_a_plain_close)
{
	struct writing writing;

	NEEDS_WAITING_ENGINE();
	if (!strcmp(test_engine(), "threads"))
		SKIP("a parked call doesn't notice a plain close()");
	begin_pipe(&writing, test_loop());
	run_with_timer(&writing, close_plainly);
	check_written(&writing);
}

/* No thread remains to wait for the rest: another call occupies the last one. */
TEST(a_write_with_a_part_done_needs_no_thread)
{
	struct writing writing;
	struct call waits = CALL_INIT;
	char byte;
	int p[2];

	NEEDS_WAITING_ENGINE();
	begin_pipe(&writing, NEW_LOOP(.max_threads = 2));
	CHECK_EQ(pipe2(p, O_CLOEXEC), 0);
	POST(writing.loop, &waits, SYS_read, p[0], &byte, 1);
	writing.close = close_posted;
	CHECK_EQ(flexsc_loop_timer(writing.loop, &writing.timer, MS), 0);
	CHECK(run_until(writing.loop, &writing.call.runs, 1, 5000));
	CHECK_EQ(writing.closing.cb.ret, 0);
	CHECK_EQ(write(p[1], "x", 1), 1);
	CHECK(run_until(writing.loop, &waits.runs, 1, 5000));
	CHECK_EQ(waits.cb.ret, 1);
	/*
	 * The module's only thread is in the read, so a thread of the pool has
	 * written. It counts the call after the delivery.
	 */
	while (!strcmp(test_engine(), "kmod") &&
	       !stats_of(writing.loop).by_thread)
		sleep_ms(1);
	check_written(&writing);
}

static void cancel_by_descriptor(struct writing *writing)
{
	CHECK_EQ(flexsc_loop_cancel_fd(writing->loop, writing->out), 1);
}

/*
 * The engine uses a duplicate for the rest. The program still cancels the call by
 * its own descriptor.
 */
TEST(a_write_with_a_part_done_is_cancelled_by_its_descriptor)
{
	struct writing writing;
	void *n;

	NEEDS_WAITING_ENGINE();
	begin_pipe(&writing, test_loop());
	run_with_timer(&writing, cancel_by_descriptor);
	CHECK_EQ(close(writing.out), 0);
	CHECK_EQ(pthread_join(writing.reader, &n), 0);
	CHECK_EQ(writing.call.cb.ret, (uintptr_t)n);
	CHECK((uintptr_t)n > 0 && (uintptr_t)n < MANY_BYTES);
	CHECK_EQ(flexsc_loop_destroy(writing.loop), 0);
}

/* Transfers from one descriptor to another, which is replaced. */

#define PAGE	4096U
#define PART	8U	/* bytes */

/*
 * A splice() waits for data, or for room ("full"), when another loop replaces its output
 * and its input. With threads, it is deferred meanwhile, and begins again later, because
 * another call occupies the last thread.
 */
static void splice_between_replaced(bool full)
{
	static char page[PAGE];
	struct flexsc_loop *other = test_loop();
	struct call busy = CALL_INIT, call = CALL_INIT;
	int busy_in[2], in[2], out[2], decoy[2];

	NEEDS_WAITING_ENGINE();
	loop = strcmp(test_engine(), "threads") ? test_loop() :
						  NEW_LOOP(.max_threads = 2);
	CHECK_EQ(pipe2(busy_in, O_CLOEXEC), 0);
	CHECK_EQ(pipe2(in, O_CLOEXEC), 0);
	CHECK_EQ(pipe2(out, O_CLOEXEC), 0);
	CHECK_EQ(pipe2(decoy, O_CLOEXEC), 0);
	POST(loop, &busy, SYS_splice, busy_in[0], NULL, decoy[1], NULL, PART, 0);
	run_until_idle(loop);
	CHECK_EQ(fcntl(out[1], F_SETPIPE_SZ, PAGE), PAGE);
	if (full) {
		CHECK_EQ(write(out[1], page, PAGE), PAGE);
		CHECK_EQ(write(in[1], "spliced", PART), PART);
	}
	POST(loop, &call, SYS_splice, in[0], NULL, out[1], NULL, PART, 0);
	run_until_idle(loop);
	CHECK_EQ(call.runs, 0);
	CHECK_EQ(DO(other, SYS_dup3, decoy[1], out[1], O_CLOEXEC), out[1]);
	CHECK_EQ(DO(other, SYS_dup3, decoy[0], in[0], O_CLOEXEC), in[0]);
	CHECK_EQ(write(busy_in[1], "decoyed", PART), PART);
	CHECK_EQ(await_call(loop, &busy), PART);
	if (full)
		CHECK_EQ(read(out[0], page, PAGE), PAGE);
	else
		CHECK_EQ(write(in[1], "spliced", PART), PART);
	CHECK_EQ(await_call(loop, &call), PART);
	CHECK_EQ(read(out[0], page, PAGE), PART);
	CHECK(!strcmp(page, "spliced"));
	CHECK_EQ(read(decoy[0], page, PAGE), PART);
	CHECK(!strcmp(page, "decoyed"));
	CHECK_EQ(flexsc_loop_destroy(other), 0);
}

TEST(a_splice_that_waits_for_data_keeps_its_files)
{
	splice_between_replaced(false);
}

TEST(a_splice_that_waits_for_room_keeps_its_files)
{
	splice_between_replaced(true);
}

#define COPIES	20U
#define COPIED	(4U << 20)	/* bytes: takes milliseconds */

/* A copy to files[0] by the descriptor "to", which is replaced by one of files[1]. */
static struct copying {
	int files[2], to;
	atomic_uint begun, replaced;	/* numbers of rounds */
} copying;

static off_t size_of(int fd)
{
	struct stat st;

	CHECK_EQ(fstat(fd, &st), 0);
	return st.st_size;
}

static void *replace_copied(void *arg)
{
	struct flexsc_loop *mine = NEW_LOOP(.engine = "sync");

	for (unsigned int round = 1; round <= MANY(COPIES); round++) {
		while (atomic_load(&copying.begun) != round ||
		       !size_of(copying.files[0]))
			sched_yield();
		CHECK_EQ(DO(mine, SYS_dup3, copying.files[1], copying.to,
			    O_CLOEXEC), copying.to);
		atomic_store(&copying.replaced, round);
	}
	CHECK_EQ(flexsc_loop_destroy(mine), 0);
	return arg;
}

static void copy_once(int from, unsigned int round)
{
	struct call call = CALL_INIT;

	for (unsigned int i = 0; i < 2; i++)
		copying.files[i] = memfd_create("copy", MFD_CLOEXEC);
	copying.to = fcntl(copying.files[0], F_DUPFD_CLOEXEC, 0);
	flexsc_fd_forget(copying.to);
	CHECK_EQ(lseek(from, 0, SEEK_SET), 0);
	POST(loop, &call, SYS_copy_file_range, from, NULL, copying.to, NULL, COPIED,
	     0);
	atomic_store(&copying.begun, round);
	CHECK_EQ(await_call(loop, &call), COPIED);
	while (atomic_load(&copying.replaced) != round)
		sched_yield();
	CHECK_EQ(size_of(copying.files[0]), COPIED);
	CHECK_EQ(size_of(copying.files[1]), 0);
	for (unsigned int i = 0; i < 2; i++)
		CHECK_EQ(close(copying.files[i]), 0);
	CHECK_EQ(close(copying.to), 0);
}

WAITING_TEST_LIMIT(a_copy_with_a_part_done_keeps_its_output, 60)
{
	const int from = memfd_create("source", MFD_CLOEXEC);
	pthread_t closer = test_thread(replace_copied, NULL);

	CHECK_EQ(ftruncate(from, COPIED), 0);
	for (unsigned int round = 1; round <= MANY(COPIES); round++)
		copy_once(from, round);
	CHECK_EQ(pthread_join(closer, NULL), 0);
}

/* Connections that are reset. */

#define TICKS	20	/* milliseconds until a waiting call is parked */

struct sending {
	struct writing writing;
	unsigned int ticks;
};

static void reset_later(struct flexsc_cb *cb)
{
	struct sending *sending = (struct sending *)((char *)cb -
				  offsetof(struct sending, writing.timer));
	const struct linger at_once = { 1, 0 };

	if (is_part_done(&sending->writing) && !--sending->ticks) {
		CHECK_EQ(setsockopt(sending->writing.in, SOL_SOCKET, SO_LINGER,
				    &at_once, sizeof(at_once)), 0);
		CHECK_EQ(close(sending->writing.in), 0);
		return;
	}
	CHECK_EQ(flexsc_loop_timer(sending->writing.loop, cb, MS), 0);
}

static void connect_pair(int *out, int *in)
{
	struct sockaddr_in address = { .sin_family = AF_INET };
	const int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	socklen_t size = sizeof(address);

	address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	CHECK_EQ(bind(listener, (void *)&address, size), 0);
	CHECK_EQ(listen(listener, 1), 0);
	CHECK_EQ(getsockname(listener, (void *)&address, &size), 0);
	*out = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	CHECK_EQ(connect(*out, (void *)&address, size), 0);
	*in = accept(listener, NULL, NULL);
	CHECK(*in >= 0);
	CHECK_EQ(close(listener), 0);
}

/* A send of more than all buffers hold. With "message", args[1] is the message. */
static void send_until_reset(unsigned int nr, bool message)
{
	static char flood[32 * MANY_BYTES];
	struct iovec part = { flood, sizeof(flood) };
	struct msghdr one = { .msg_iov = &part, .msg_iovlen = 1 };
	struct sending sending = { .ticks = TICKS };
	struct writing *writing = &sending.writing;
	const int expected =
		test_known_difference("uring", "its request for the rest consumes the error") ?
			-EPIPE : -ECONNRESET;

	NEEDS_WAITING_ENGINE();
	begin(writing, test_loop());
	writing->timer.callback = reset_later;
	connect_pair(&writing->out, &writing->in);
	if (message)
		POST(writing->loop, &writing->call, nr, writing->out, &one,
		     MSG_NOSIGNAL);
	else
		POST(writing->loop, &writing->call, nr, writing->out, flood,
		     sizeof(flood), MSG_NOSIGNAL);
	run_with_timer(writing, NULL);
	CHECK(writing->call.cb.ret > 0);
	CHECK(writing->call.cb.ret < (int64_t)sizeof(flood));
	CHECK_EQ(DO(writing->loop, SYS_sendto, writing->out, flood, 1,
		    MSG_NOSIGNAL, NULL, 0), expected);
}

/* The engine must not consume the error when it continues with the rest. */
TEST(the_call_after_a_part_gets_the_error_of_a_reset)
{
	send_until_reset(SYS_sendto, false);
	send_until_reset(SYS_write, false);
	send_until_reset(SYS_sendmsg, true);
}
