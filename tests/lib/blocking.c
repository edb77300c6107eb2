/* SPDX-License-Identifier: MIT */
/*
 * Waiting calls delay neither each other nor calls posted later, for any number of
 * them, and with few syscall threads or entries.
 */
#include "tests/harness/harness.h"
#include "readers.h"

#include <linux/futex.h>
#include <sys/file.h>
#include <termios.h>

WAITING_TEST(blocked_reads_dont_delay_later_calls)
{
	post_reads(100);
	for (unsigned int i = 0; i < 100; i++) {
		char path[] = "/proc/self/comm";
		int64_t fd = DO(loop, SYS_openat, AT_FDCWD, path, O_RDONLY, 0);

		CHECK(fd >= 0);
		CHECK_EQ(DO(loop, SYS_getppid), getppid());
		CHECK_EQ(DO(loop, SYS_read, fd, path, 4), 4);
		CHECK_EQ(DO(loop, SYS_close, fd), 0);
	}
	CHECK_EQ(done, 0);
	for (unsigned int i = 0; i < 100; i++)
		feed(i);
	CHECK(run_until(loop, &done, 100, 5000));
	for (unsigned int i = 0; i < 100; i++)
		check_fed(i);
}

/* Each read completes when its own pipe has data, long before the others do. */
WAITING_TEST(more_reads_block_than_there_are_threads, .max_threads = 4)
{
	unsigned int order[PIPES];

	post_reads(PIPES);
	shuffle(order, PIPES);
	for (unsigned int i = 0; i < PIPES; i++) {
		feed(order[i]);
		CHECK(run_until(loop, &done, i + 1, 5000));
		CHECK_EQ(done, i + 1);
		check_fed(order[i]);
	}
	CHECK(stats_of(loop).threads <= 4);
}

/*
 * The call that wakes the others is posted to the same loop, in which all others
 * wait.
 */
WAITING_TEST(a_call_wakes_calls_of_its_own_loop, .max_threads = 4)
{
	unsigned int order[PIPES];

	post_reads(PIPES);
	shuffle(order, PIPES);
	for (unsigned int i = 0; i < PIPES; i++) {
		char c = (char)('a' + order[i] % 26);

		CHECK_EQ(DO(loop, SYS_write, readers[order[i]].p[1], &c, 1), 1);
		CHECK(run_until(loop, &done, i + 1, 5000));
		check_fed(order[i]);
	}
}

/*
 * Calls that poll() can't wait for occupy a syscall thread each. With four threads,
 * four of them run. The others start when these end.
 */
WAITING_TEST(calls_that_cant_be_polled_alternate, .max_threads = 4)
{
	struct call calls[12];
	static uint32_t word;

	for (unsigned int i = 0; i < 12; i++) {
		calls[i] = (struct call){ .cb = { .callback = count_call } };
		POST(loop, &calls[i], SYS_futex, &word, FUTEX_WAIT, 0, NULL);
	}
	run_for(loop, 50);
	CHECK_EQ(done, 0);
	while (done < 12) {
		PLAIN(SYS_futex, &word, FUTEX_WAKE, 1, NULL);
		run_for(loop, 1);
	}
	for (unsigned int i = 0; i < 12; i++) {
		CHECK_EQ(calls[i].runs, 1);
		CHECK_EQ(calls[i].cb.ret, 0);
	}
}

WAITING_TEST(ready_calls_run_while_all_threads_are_taken, .max_threads = 4)
{
	struct call calls[8];
	static uint32_t word;
	char c = 0;
	int p[2];

	CHECK_EQ(pipe2(p, O_CLOEXEC), 0);
	for (unsigned int i = 0; i < 8; i++) {
		calls[i] = (struct call)CALL_INIT;
		POST(loop, &calls[i], SYS_futex, &word, FUTEX_WAIT, 0, NULL);
	}
	run_for(loop, 20);
	CHECK_EQ(DO(loop, SYS_getppid), getppid());
	CHECK_EQ(DO(loop, SYS_write, p[1], "x", 1), 1);
	CHECK_EQ(DO(loop, SYS_read, p[0], &c, 1), 1);
	CHECK_EQ(c, 'x');
	for (unsigned int i = 0; i < 8; i++) {
		CHECK_EQ(flexsc_loop_cancel(loop, &calls[i].cb), 0);
		CHECK(is_cancelled(await_call(loop, &calls[i])));
	}
}

/* The holder of a lock and the waiter for it are calls of the same loop. */
WAITING_TEST(a_lock_is_handed_on)
{
	struct call waiter = CALL_INIT;
	int a, b;

	enter_scratch();
	a = open("f", O_CREAT | O_RDWR | O_CLOEXEC, 0600);
	b = open("f", O_RDWR | O_CLOEXEC);
	CHECK_EQ(DO(loop, SYS_flock, a, LOCK_EX), 0);
	POST(loop, &waiter, SYS_flock, b, LOCK_EX);
	run_for(loop, 20);
	CHECK_EQ(waiter.runs, 0);
	CHECK_EQ(DO(loop, SYS_flock, a, LOCK_UN), 0);
	CHECK_EQ(await_call(loop, &waiter), 0);
}

/*
 * io_uring first tries to open with O_NONBLOCK. At a FIFO that succeeds, or fails,
 * without waiting for the other end.
 */
static void fifo_does_not_wait(void)
{
	int64_t fd;

	CHECK_EQ(DO(loop, SYS_openat, AT_FDCWD, "fifo", O_WRONLY, 0), -ENXIO);
	fd = DO(loop, SYS_openat, AT_FDCWD, "fifo", O_RDONLY, 0);
	CHECK(fd >= 0);
	CHECK(!(fcntl((int)fd, F_GETFL) & O_NONBLOCK));
}

static unsigned int looked;

static void count_looked(struct flexsc_cb *cb)
{
	((struct call *)cb)->runs++;
	looked++;
}

/*
 * Before a syscall thread waits in open(), it reports the results of its earlier
 * calls, even if more calls are queued. The next thread does the same.
 */
WAITING_TEST(results_before_an_open_that_waits_arrive, .max_threads = 2)
{
	struct call looks[9], opens[2];
	struct statx files[9];

	enter_scratch();
	CHECK_EQ(DO(loop, SYS_mknodat, AT_FDCWD, "fifo", 0010600, 0), 0);
	for (unsigned int i = 0; i < 9; i++) {
		looks[i] = (struct call)CALL_INIT;
		looks[i].cb.callback = count_looked;
		POST(loop, &looks[i], SYS_statx, AT_FDCWD, ".", 0, STATX_INO,
		     &files[i]);
		if (i != 2 && i != 5)
			continue;
		opens[i / 3] = (struct call)CALL_INIT;
		POST(loop, &opens[i / 3], SYS_openat, AT_FDCWD, "fifo",
		     i == 2 ? O_RDONLY : O_RDONLY | O_CLOEXEC, 0);
	}
	CHECK(run_until(loop, &looked, 6, 5000));
	/* io_uring's opens don't wait, and have completed. */
	flexsc_loop_cancel(loop, &opens[0].cb);
	flexsc_loop_cancel(loop, &opens[1].cb);
	CHECK(run_until(loop, &looked, 9, 5000));
	test_end_loop();
}

WAITING_TEST(opening_both_ends_of_a_fifo_meets)
{
	struct call reader = CALL_INIT, writer = CALL_INIT;

	enter_scratch();
	CHECK_EQ(DO(loop, SYS_mknodat, AT_FDCWD, "fifo", 0010600, 0), 0);
	if (test_known_difference("uring", "opening a FIFO doesn't wait")) {
		fifo_does_not_wait();
		return;
	}
	POST(loop, &reader, SYS_openat, AT_FDCWD, "fifo", O_RDONLY, 0);
	run_for(loop, 20);
	CHECK_EQ(reader.runs, 0);
	POST(loop, &writer, SYS_openat, AT_FDCWD, "fifo", O_WRONLY, 0);
	CHECK(await_call(loop, &reader) >= 0);
	CHECK(await_call(loop, &writer) >= 0);
}

static void write_much(struct flexsc_loop *loop)
{
	static char out[1 << 20], in[1 << 20];
	struct call writer = CALL_INIT;
	size_t n = 0;
	int p[2];

	CHECK_EQ(pipe2(p, O_CLOEXEC), 0);
	for (size_t i = 0; i < sizeof(out); i++)
		out[i] = (char)(i * 31 >> 3);
	POST(loop, &writer, SYS_write, p[1], out, sizeof(out));
	run_for(loop, 10);
	CHECK_EQ(writer.runs, 0);
	while (n < sizeof(in)) {
		int64_t got = DO(loop, SYS_read, p[0], in + n, sizeof(in) - n);

		CHECK(got > 0);
		n += (size_t)got;
	}
	CHECK_EQ(await_call(loop, &writer), sizeof(out));
	CHECK_EQ(memcmp(in, out, sizeof(in)), 0);
	CHECK_EQ(flexsc_loop_destroy(loop), 0);
}

/* A write that is larger than the pipe waits in the middle, for the reader. */
TEST(a_large_write_is_whole)
{
	NEEDS_WAITING_ENGINE();
	write_much(test_loop());
}

/* A single active thread waits where the engine doesn't expect it to. */
TEST(one_core_is_enough)
{
	char list[16];

	NEEDS_WAITING_ENGINE();
	snprintf(list, sizeof(list), "%d", first_core());
	write_much(NEW_LOOP(.kernel_cores = list));
}

#define FILES		32
#define FILE_SIZE	(1 << 20)

/* A file that is sent to a slow reader. */
struct sending {
	struct call call;	/* first: count_call() finds it here */
	int pair[2];
	off_t offset;
};

static int file_of(const char *content)
{
	int fd = memfd_create("flexsc-test", MFD_CLOEXEC);

	CHECK(fd >= 0);
	CHECK_EQ(write(fd, content, FILE_SIZE), FILE_SIZE);
	return fd;
}

/* Receives what has arrived, up to the whole file, and compares it with the file. */
static size_t receive_some(struct sending *s, const char *content, size_t at)
{
	static char in[FILE_SIZE];
	ssize_t n = recv(s->pair[1], in, sizeof(in), MSG_DONTWAIT);

	if (n <= 0)
		return 0;
	CHECK_EQ(memcmp(in, content + at, (size_t)n), 0);
	return (size_t)n;
}

WAITING_TEST(files_are_sent_without_a_thread_each, .max_threads = 4)
{
	static const struct timespec brief = { 0, 1000000 };
	static char content[FILE_SIZE];
	static struct sending many[FILES];
	int fd;

	for (size_t i = 0; i < sizeof(content); i++)
		content[i] = (char)(i * 13 >> 4);
	fd = file_of(content);
	for (unsigned int i = 0; i < FILES; i++) {
		CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0,
				    many[i].pair), 0);
		many[i].call.cb.callback = count_call;
		POST(loop, &many[i].call, SYS_sendfile, many[i].pair[0], fd,
		     &many[i].offset, FILE_SIZE);
	}
	run_for(loop, 20);
	CHECK_EQ(done, 0);
	CHECK_EQ(DO(loop, SYS_nanosleep, &brief, NULL), 0);
	for (unsigned int i = 0; i < FILES; i++)
		for (size_t at = 0; at < FILE_SIZE;) {
			at += receive_some(&many[i], content, at);
			run_for(loop, 0);
		}
	CHECK(run_until(loop, &done, FILES, 5000));
	for (unsigned int i = 0; i < FILES; i++) {
		CHECK_EQ(many[i].call.cb.ret, FILE_SIZE);
		CHECK_EQ(many[i].offset, FILE_SIZE);
	}
}

WAITING_TEST(a_cancelled_sendfile_returns_the_sent_bytes)
{
	static char content[FILE_SIZE];
	static struct sending s;
	size_t sum = 0, n;
	int fd;

	fd = file_of(content);
	CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, s.pair), 0);
	s.call.cb.callback = count_call;
	POST(loop, &s.call, SYS_sendfile, s.pair[0], fd, &s.offset, FILE_SIZE);
	run_until_readable(loop, s.pair[1]);
	CHECK_EQ(done, 0);
	CHECK_EQ(flexsc_loop_cancel(loop, &s.call.cb), 0);
	CHECK(run_until(loop, &done, 1, 5000));
	while ((n = receive_some(&s, content, sum)))
		sum += n;
	CHECK(sum > 0);
	CHECK_EQ(s.call.cb.ret, sum);
	CHECK_EQ(s.offset, sum);
}

/* Several calls wait for the same descriptor. Each byte goes to one of them. */
WAITING_TEST(calls_share_a_descriptor, .max_threads = 4)
{
	static struct reader many[100];
	unsigned int sum = 0;
	int p[2];

	CHECK_EQ(pipe2(p, O_CLOEXEC), 0);
	for (unsigned int i = 0; i < 100; i++) {
		many[i].call.cb.callback = count_call;
		POST(loop, &many[i].call, SYS_read, p[0], &many[i].c, 1);
	}
	for (unsigned int i = 0; i < 100; i++) {
		CHECK_EQ(write(p[1], &(char){ (char)i }, 1), 1);
		CHECK(run_until(loop, &done, i + 1, 5000));
		CHECK_EQ(done, i + 1);
	}
	for (unsigned int i = 0; i < 100; i++) {
		CHECK_EQ(many[i].call.cb.ret, 1);
		sum += (unsigned int)many[i].c;
	}
	CHECK_EQ(sum, 99 * 100 / 2);
}

/* An event that wakes one waiter costs few mode switches, however many others wait. */
WAITING_TEST(waiting_in_line_is_cheap)
{
	int fd = eventfd(0, EFD_SEMAPHORE | EFD_CLOEXEC);
	static struct reader many[2000];
	static uint64_t values[2000];
	uint64_t before;

	for (unsigned int i = 0; i < 2000; i++) {
		many[i].call.cb.callback = count_call;
		POST(loop, &many[i].call, SYS_read, fd, &values[i], 8);
	}
	run_for(loop, 50);
	before = stats_of(loop).mode_switches;
	for (unsigned int i = 1; i <= 1000; i++) {
		CHECK_EQ(eventfd_write(fd, 1), 0);
		CHECK(run_until(loop, &done, i, 5000));
	}
	CHECK(stats_of(loop).mode_switches - before < 1000 * 40);
	CHECK_EQ(flexsc_loop_cancel_fd(loop, fd), 1000);
	CHECK(run_until(loop, &done, 2000, 5000));
}

/* Readers of one eventfd, each of which is posted again when it ends. */
static struct {
	struct flexsc_loop *loop;
	int fd;
	struct call calls[64];
	uint64_t values[64];
	unsigned int got, pending;
	bool ending;
} line;

static void stand_in_line(struct call *call)
{
	POST(line.loop, call, SYS_read, line.fd,
	     &line.values[call - line.calls], 8);
	line.pending++;
}

static void line_done(struct flexsc_cb *cb)
{
	line.pending--;
	if (cb->ret == 8)
		line.got++;
	else
		CHECK(is_cancelled(cb->ret));
	if (!line.ending)
		stand_in_line((struct call *)cb);
}

/* A reader that is cancelled passes its wake-up on to the next one. */
TEST(a_line_moves_on_when_readers_leave_it)
{
	unsigned int written = 0;

	NEEDS_WAITING_ENGINE();
	line.loop = test_loop();
	line.fd = eventfd(0, EFD_SEMAPHORE | EFD_CLOEXEC);
	for (unsigned int i = 0; i < 64; i++) {
		line.calls[i].cb.callback = line_done;
		stand_in_line(&line.calls[i]);
	}
	for (unsigned int i = 0; i < MANY(20000); i++) {
		struct call *call = &line.calls[test_random() % 64];

		if (test_random() % 2) {
			CHECK_EQ(eventfd_write(line.fd, 1), 0);
			written++;
		} else {
			flexsc_loop_cancel(line.loop, &call->cb);
		}
		if (test_random() % 4 == 0)
			CHECK(flexsc_loop_wait(line.loop,
					       test_random() % 20000) >= 0);
		CHECK(flexsc_loop_dispatch(line.loop) >= 0);
	}
	CHECK(run_until(line.loop, &line.got, written, 10000));
	run_for(line.loop, 10);
	CHECK_EQ(line.got, written);
	line.ending = true;
	CHECK_EQ(flexsc_loop_destroy(line.loop), 0);
	CHECK_EQ(line.pending, 0);
}

WAITING_TEST(a_number_can_be_reused_once_its_calls_are_cancelled)
{
	struct call reader = CALL_INIT;
	int p[2], q[2];
	char c = 0;

	CHECK_EQ(pipe2(p, O_CLOEXEC), 0);
	CHECK_EQ(pipe2(q, O_CLOEXEC), 0);
	POST(loop, &reader, SYS_read, p[0], &c, 1);
	run_for(loop, 20);
	CHECK_EQ(flexsc_loop_cancel_fd(loop, p[0]), 1);
	CHECK_EQ(dup2(q[0], p[0]), p[0]);
	CHECK(is_cancelled(await_call(loop, &reader)));
	CHECK_EQ(write(q[1], "q", 1), 1);
	CHECK_EQ(DO(loop, SYS_read, p[0], &c, 1), 1);
	CHECK_EQ(c, 'q');
}

/*
 * The reads could wait without a thread. A sleep needs one of the threads that they
 * occupy.
 */
WAITING_TEST(blocked_reads_leave_threads_to_calls_that_need_one,
		.max_threads = 4)
{
	static const struct timespec brief = { 0, 1000000 };
	struct call sleepers[8];

	post_reads(PIPES);
	for (unsigned int i = 0; i < 8; i++) {
		sleepers[i] = (struct call)CALL_INIT;
		POST(loop, &sleepers[i], SYS_nanosleep, &brief, NULL);
	}
	for (unsigned int i = 0; i < 8; i++)
		CHECK_EQ(await_call(loop, &sleepers[i]), 0);
	CHECK_EQ(done, 0);
	for (unsigned int i = 0; i < PIPES; i++)
		feed(i);
	CHECK(run_until(loop, &done, PIPES, 5000));
}

/* A terminal has a time limit for reads, which poll() ignores. */
LOOP_TEST(a_terminal_s_settings_end_a_read, .max_threads = 2)
{
	struct termios mode;
	int master, terminal;
	char in[8];

	master = posix_openpt(O_RDWR | O_NOCTTY);
	CHECK(master >= 0);
	CHECK_EQ(grantpt(master) | unlockpt(master), 0);
	terminal = open(ptsname(master), O_RDWR | O_NOCTTY);
	CHECK(terminal >= 0);
	CHECK_EQ(tcgetattr(terminal, &mode), 0);
	cfmakeraw(&mode);
	mode.c_cc[VMIN] = 0;
	mode.c_cc[VTIME] = 1;
	CHECK_EQ(tcsetattr(terminal, TCSANOW, &mode), 0);
	CHECK_EQ(DO(loop, SYS_read, terminal, in, sizeof(in)), 0);
	mode.c_cc[VMIN] = 3;
	CHECK_EQ(tcsetattr(terminal, TCSANOW, &mode), 0);
	CHECK_EQ(write(master, "ab", 2), 2);
	CHECK_EQ(DO(loop, SYS_read, terminal, in, sizeof(in)), 2);
	close(terminal);
	close(master);
}
