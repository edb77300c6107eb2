/* SPDX-License-Identifier: MIT */
/*
 * Sockets are shut down while calls wait to send on them, or are about to wait. Such a
 * call has to end. For a full local socket, poll(2) doesn't report the shutdown, so the
 * loop that makes the shutdown has to notify the threads that wait for the call. The
 * pairs (tests/lib/pairs) shut sockets down beneath each kind of call that waits.
 */
#include "tests/harness/harness.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <sys/mman.h>

#define LONG	(1U << 20)	/* bytes: more than a socket holds */
#define ROUNDS	4000U

static char bytes[65536];
static int file, lingering[2];
static int full[2];
static pthread_barrier_t barrier;

static int make_file(void)
{
	const int fd = memfd_create("sent", MFD_CLOEXEC);

	CHECK_EQ(ftruncate(fd, LONG), 0);
	return fd;
}

static void fill(int fd)
{
	const int flags = fcntl(fd, F_GETFL);

	CHECK_EQ(fcntl(fd, F_SETFL, flags | O_NONBLOCK), 0);
	for (size_t n = sizeof(bytes); n; n /= 2)
		while (write(fd, bytes, n) > 0)
			;
	CHECK_EQ(fcntl(fd, F_SETFL, flags), 0);
}

/* Makes a TCP connection. A close of its first end waits while that end has bytes. */
static void make_lingering(void)
{
	const struct linger linger = { 1, 60 };
	struct sockaddr_in address;
	const int listener = listening_socket(&address, SOCK_CLOEXEC, 1);

	lingering[0] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	CHECK_EQ(connect(lingering[0], (struct sockaddr *)&address,
			 sizeof(address)), 0);
	lingering[1] = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
	CHECK(lingering[1] >= 0);
	CHECK_EQ(setsockopt(lingering[0], SOL_SOCKET, SO_LINGER, &linger,
			    sizeof(linger)), 0);
	fill(lingering[0]);
	CHECK_EQ(close(listener), 0);
}

static void *close_slowly(void *arg)
{
	struct flexsc_loop *other = test_loop();

	CHECK_EQ(DO(other, SYS_close_range, lingering[0], lingering[0], 0), 0);
	CHECK_EQ(flexsc_loop_destroy(other), 0);
	return arg;
}

static void settle(struct flexsc_loop *turned)
{
	do
		CHECK(flexsc_loop_dispatch(turned) >= 0);
	while (!is_idle());
}

/*
 * A close is in progress when the call begins to wait. It may close the call's
 * descriptor, so the call waits with a duplicate of it.
 */
WAITING_TEST(a_send_that_waits_with_a_duplicate_ends_at_a_shutdown)
{
	struct flexsc_loop *other = test_loop();
	struct call send = CALL_INIT;
	pthread_t closer;
	int p[2];

	file = make_file();
	make_lingering();
	CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, p), 0);
	closer = test_thread(close_slowly, NULL);
	settle(loop);
	POST(loop, &send, SYS_sendfile, p[0], file, NULL, LONG);
	settle(loop);
	CHECK_EQ(send.runs, 0);
	CHECK_EQ(DO(other, SYS_shutdown, p[0], SHUT_WR), 0);
	CHECK(run_until(loop, &send.runs, 1, 10000));
	CHECK(send.cb.ret > 0 && send.cb.ret < LONG);
	/* Bytes that the other end hasn't read reset the connection. */
	CHECK_EQ(close(lingering[1]), 0);
	CHECK_EQ(pthread_join(closer, NULL), 0);
	CHECK_EQ(flexsc_loop_destroy(other), 0);
}

/*
 * An engine executes the shutdown some time after it got it. The sync engine executes it
 * at once, so the time is right more often.
 */
static void *shut_in_time(void *arg)
{
	struct flexsc_loop *others[] = { test_loop(), NEW_LOOP(.engine = "sync") };

	for (unsigned int round = 0; round < MANY(ROUNDS); round++) {
		pthread_barrier_wait(&barrier);
		for (volatile unsigned int i = 0; i < round * 7919 % 60013; i++)
			;
		CHECK_EQ(DO(others[round % 4 > 0], SYS_shutdown, full[0],
			    SHUT_WR), 0);
		pthread_barrier_wait(&barrier);
	}
	CHECK_EQ(flexsc_loop_destroy(others[0]), 0);
	CHECK_EQ(flexsc_loop_destroy(others[1]), 0);
	return arg;
}

/* io_uring itself misses few of the shutdowns: flexsc-engines(7). */
static bool is_missed_by_uring(bool by_file, unsigned int *missed)
{
	if (strcmp(test_engine(), "uring") != 0 || by_file || ++*missed > 20)
		return false;
	CHECK_EQ(shutdown(full[0], SHUT_WR), 0);
	return true;
}

/* The thread that makes the call finds that it would wait, just before the shutdown. */
WAITING_TEST_LIMIT(a_shutdown_that_races_a_send_ends_it, 240)
{
	unsigned int missed = 0;
	pthread_t shutter;

	file = make_file();
	signal(SIGPIPE, SIG_IGN);
	CHECK_EQ(pthread_barrier_init(&barrier, NULL, 2), 0);
	shutter = test_thread(shut_in_time, NULL);
	for (unsigned int round = 0; round < MANY(ROUNDS); round++) {
		const bool by_file = round / 4 & 1;
		struct call send = CALL_INIT;

		CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0,
				    full), 0);
		fill(full[0]);
		pthread_barrier_wait(&barrier);
		if (by_file)
			POST(loop, &send, SYS_sendfile, full[0], file, NULL, 8);
		else
			POST(loop, &send, SYS_write, full[0], bytes, 8);
		while (!run_until(loop, &send.runs, 1, 10000))
			if (!is_missed_by_uring(by_file, &missed))
				test_fail(__FILE__, __LINE__,
					  "round %u: the call waits", round);
		/* Before Linux 6.5, a full socket accepts few bytes of a file. */
		if (send.cb.ret != 8 || !by_file)
			CHECK_EQ(send.cb.ret, -EPIPE);
		pthread_barrier_wait(&barrier);
		CHECK_EQ(close(full[0]), 0);
		CHECK_EQ(close(full[1]), 0);
	}
	CHECK_EQ(pthread_join(shutter, NULL), 0);
	CHECK_EQ(pthread_barrier_destroy(&barrier), 0);
}
