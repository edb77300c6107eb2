/* SPDX-License-Identifier: MIT */
/*
 * Calls that are pending on a carrier when it gets stuck in a call that hangs. They
 * continue elsewhere, each with its own file.
 */
#define _GNU_SOURCE
#include <netinet/in.h>
#include <poll.h>
#include <sched.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "hang.h"

static int listener;
static struct sockaddr_in address;

/*
 * Threads accept one connection each. The hung carrier still has requests for some
 * of them. These requests must not take connections from the threads that continue
 * to wait.
 */
static void *accept_one_only(void *arg)
{
	int fd = accept(listener, NULL, NULL);

	CHECK(fd >= 0);
	CHECK_EQ(write(fd, "y", 1), 1);
	CHECK_EQ(close(fd), 0);
	return arg;
}

static void be_accepted(void)
{
	int fd = socket(AF_INET, SOCK_STREAM, 0);
	struct pollfd p = { fd, POLLIN, 0 };
	char byte;

	CHECK_EQ(connect(fd, (struct sockaddr *)&address, sizeof(address)), 0);
	CHECK_EQ(poll(&p, 1, EXPIRES_MS / 2), 1);
	CHECK_EQ(read(fd, &byte, 1), 1);
	CHECK_EQ(close(fd), 0);
}

TEST_LIMIT(each_connection_is_accepted_at_once_while_a_call_hangs, 60)
{
	enum { ACCEPTERS = 24 };
	pthread_t accepters[ACCEPTERS], hanging;

	listener = listening_socket(&address, 0, 100);
	start_all(accepters, ACCEPTERS, accept_one_only, NULL);
	await_quiet();
	begin_to_hang(&hanging, 1);
	for (int i = 0; i < ACCEPTERS; i++)
		be_accepted();
	CHECK(!hangs[0].expired);
	let_go(&hanging, 1);
	join_all(accepters, ACCEPTERS);
}

/*
 * An accept() whose descriptor was closed stays on the hung carrier, because its
 * number may refer to another file by then. Its request must not take a connection
 * from the thread that waits on another carrier. The threads' carriers vary from
 * round to round.
 */
static void *accept_by(void *arg)
{
	int fd = accept((int)(long)arg, NULL, NULL);

	CHECK(fd >= 0);
	CHECK_EQ(write(fd, "y", 1), 1);
	CHECK_EQ(close(fd), 0);
	return NULL;
}

TEST_LIMIT(an_accept_that_stays_takes_no_connection_from_others, 60)
{
	enum { ROUNDS = 12 };
	pthread_t stays, goes_on, hanging;

	listener = listening_socket(&address, 0, 100);
	for (int i = 0; i < ROUNDS; i++) {
		long copy = dup(listener);

		CHECK(copy >= 0);
		stays = start(accept_by, (void *)copy);
		await_quiet();
		CHECK_EQ(close((int)copy), 0);
		goes_on = start(accept_by, (void *)(long)listener);
		await_quiet();
		begin_to_hang(&hanging, 1);
		be_accepted();
		CHECK(!hangs[0].expired);
		let_go(&hanging, 1);
		/* Until the hung carrier is back, its requests may take the wake-up. */
		await_quiet();
		be_accepted();
		join(stays);
		join(goes_on);
	}
}

/*
 * A moved accept polls first. It accepts from its original listener, even if its
 * descriptor's number refers to another listener by then.
 */
TEST_LIMIT(an_accept_that_moved_keeps_its_file_when_its_number_is_used_again, 60)
{
	enum { ACCEPTERS = 16 };
	pthread_t accepters[ACCEPTERS], hanging;
	int numbers[ACCEPTERS], first, second, fd;
	struct sockaddr_in first_address;

	listener = listening_socket(&address, 0, 100);
	first = listener;
	first_address = address;
	for (int i = 0; i < ACCEPTERS; i++) {
		numbers[i] = dup(first);
		CHECK(numbers[i] >= 0);
		accepters[i] = start(accept_by, (void *)(long)numbers[i]);
	}
	await_quiet();
	begin_to_hang(&hanging, 1);
	settle();
	settle();
	settle();
	listener = listening_socket(&address, 0, 100);
	second = listener;
	for (int i = 0; i < ACCEPTERS; i++)
		CHECK_EQ(dup2(second, numbers[i]), numbers[i]);
	/* None of the threads may accept this connection. */
	fd = socket(AF_INET, SOCK_STREAM, 0);
	CHECK_EQ(connect(fd, (struct sockaddr *)&address, sizeof(address)), 0);
	address = first_address;
	for (int i = 0; i < ACCEPTERS; i++)
		be_accepted();
	CHECK(!hangs[0].expired);
	let_go(&hanging, 1);
	join_all(accepters, ACCEPTERS);
	accept_by((void *)(long)second);
	CHECK_EQ(close(fd), 0);
	CHECK_EQ(close(first), 0);
}

/*
 * A connect() to a local socket waits for room in the listener's queue. The runtime
 * must not repeat the call, because the socket may be connected by then.
 */
static struct sockaddr_un local = { .sun_family = AF_UNIX };
static socklen_t local_size;

static void *connect_locally(void *arg)
{
	int fd = socket(AF_UNIX, SOCK_STREAM, 0);

	CHECK(fd >= 0);
	usleep(100);
	CHECK_EQ(connect(fd, (struct sockaddr *)&local, local_size), 0);
	CHECK_EQ(close(fd), 0);
	return arg;
}

TEST_LIMIT(connections_to_a_local_socket_are_made_while_a_call_hangs, 60)
{
	enum { CONNECTORS = 8 };
	pthread_t connectors[CONNECTORS], hanging;
	int fd = socket(AF_UNIX, SOCK_STREAM, 0);

	/* The kernel chooses a name. */
	CHECK_EQ(bind(fd, (struct sockaddr *)&local, sizeof(local.sun_family)), 0);
	CHECK_EQ(listen(fd, 0), 0);
	local_size = sizeof(local);
	CHECK_EQ(getsockname(fd, (struct sockaddr *)&local, &local_size), 0);
	join(start(connect_locally, NULL));
	start_all(connectors, CONNECTORS, connect_locally, NULL);
	await_quiet();
	begin_to_hang(&hanging, 1);
	settle();
	for (int i = 0; i < CONNECTORS + 1; i++)
		CHECK_EQ(close(accept(fd, NULL, NULL)), 0);
	join_all(connectors, CONNECTORS);
	CHECK(!hangs[0].expired);
	let_go(&hanging, 1);
	CHECK_EQ(close(fd), 0);
}

/*
 * A thread's wait is being cancelled when its carrier gets stuck. The thread that
 * hangs yields first, so that the carrier posts the cancellation.
 */
static pthread_t cancelled;

static void *receive_until_cancelled(void *arg)
{
	char byte;

	recv(*(int *)arg, &byte, 1, 0);
	return NULL;
}

static void *cancel_and_hang(void *arg)
{
	usleep(100);
	CHECK_EQ(pthread_cancel(cancelled), 0);
	CHECK_EQ(sched_yield(), 0);
	hang_here(arg);
	return NULL;
}

TEST_LIMIT(a_cancelled_wait_ends_though_its_carrier_is_stuck, 60)
{
	enum { ROUNDS = 8 };
	pthread_t hanging;
	int pair[2];

	CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
	for (int i = 0; i < ROUNDS; i++) {
		cancelled = start(receive_until_cancelled, &pair[0]);
		await_quiet();
		hangs = calloc(1, sizeof(*hangs));
		hanging = start(cancel_and_hang, hangs);
		CHECK(join(cancelled) == PTHREAD_CANCELED);
		CHECK(!hangs[0].expired);
		let_go(&hanging, 1);
	}
}

/*
 * An accept() loses its connection to another thread while a call hangs. After 5 ms
 * it is cancelled, and polls again. At about that time the next call begins to hang,
 * at another moment in each round.
 */
static uint64_t hangs_after;

static void *connect_and_hang(void *arg)
{
	int fd = socket(AF_INET, SOCK_STREAM, 0);
	uint64_t end, now;
	char byte;

	usleep(100);
	CHECK_EQ(connect(fd, (struct sockaddr *)&address, sizeof(address)), 0);
	end = now_ns() + hangs_after;
	/*
	 * Yields often, because the monitor moves a thread that keeps its carrier to
	 * its host.
	 */
	while ((now = now_ns()) < end) {
		while (now_ns() < now + MS / 4)
			;
		CHECK_EQ(sched_yield(), 0);
	}
	hang_here(arg);
	CHECK_EQ(read(fd, &byte, 1), 1);
	CHECK_EQ(close(fd), 0);
	return NULL;
}

TEST_LIMIT(an_accept_that_polls_again_goes_on_when_another_call_hangs, 60)
{
	enum { ROUNDS = 12, ACCEPTERS = 4 };
	pthread_t accepters[ACCEPTERS], hanging[2];

	listener = listening_socket(&address, 0, 100);
	for (int i = 0; i < ROUNDS; i++) {
		start_all(accepters, ACCEPTERS, accept_one_only, NULL);
		await_quiet();
		hangs = calloc(2, sizeof(*hangs));
		hanging[0] = start(hang_once, &hangs[0]);
		await_hang(0);
		settle();
		hangs_after = 4 * MS + (uint64_t)i * MS / 4;
		hanging[1] = start(connect_and_hang, &hangs[1]);
		await_hang(1);
		for (int j = 1; j < ACCEPTERS; j++)
			be_accepted();
		join_all(accepters, ACCEPTERS);
		CHECK(!hangs[0].expired && !hangs[1].expired);
		let_go(hanging, 2);
	}
}

/*
 * A read that waits continues with its file, although the number refers to another
 * file by then.
 */

static atomic_int reading;

static void *read_one(void *arg)
{
	char byte;

	reading++;
	CHECK_EQ(read(*(int *)arg, &byte, 1), 1);
	CHECK_EQ(byte, 'o');
	return NULL;
}

/* Starts threads that read from old[i][0] by numbers[i], and waits until all wait. */
static void begin_to_read(pthread_t *readers, int (*old)[2], int *numbers, int n)
{
	reading = 0;
	for (int i = 0; i < n; i++) {
		CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, old[i]), 0);
		numbers[i] = old[i][0];
		readers[i] = start(read_one, &numbers[i]);
	}
	while (reading < n)
		usleep(1000);
	/* A read that begins later uses the new file. */
	await_quiet();
}

TEST_LIMIT(a_wait_keeps_its_file_when_its_number_is_used_again, 40)
{
	enum { READERS = 8 };
	int old[READERS][2], new[2], numbers[READERS];
	pthread_t readers[READERS], hanging;

	CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, new), 0);
	begin_to_read(readers, old, numbers, READERS);
	for (int i = 0; i < READERS; i++)
		CHECK_EQ(dup2(new[0], numbers[i]), numbers[i]);
	begin_to_hang(&hanging, 1);
	/* The new file has enough bytes for all readers, but none may take them. */
	for (int i = 0; i < READERS; i++)
		CHECK_EQ(write(new[1], "n", 1), 1);
	settle();
	settle();
	settle();
	for (int i = 0; i < READERS; i++)
		CHECK_EQ(write(old[i][1], "o", 1), 1);
	settle();
	let_go(&hanging, 1);
	join_all(readers, READERS);
}

/*
 * The numbers are reused one after the other: some while the monitor finds the hung
 * carrier, some while its reads are moved, and some later.
 */
static void use_again_slowly(const int *numbers, int n, int new)
{
	const uint64_t begin = now_ns();

	for (int i = 0; i < n; i++) {
		CHECK_EQ(dup2(new, numbers[i]), numbers[i]);
		while (now_ns() - begin < (uint64_t)i * 40 * MS / (uint64_t)n)
			;
	}
}

TEST_LIMIT(a_wait_keeps_its_file_while_it_moves, 60)
{
	enum { READERS = 250, ROUNDS = 10 };
	static int old[READERS][2], numbers[READERS];
	static pthread_t readers[READERS];
	pthread_t hanging;
	int new[2];

	CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, new), 0);
	for (int i = 0; i < READERS; i++)
		CHECK_EQ(write(new[1], "n", 1), 1);
	for (int round = 0; round < ROUNDS; round++) {
		begin_to_read(readers, old, numbers, READERS);
		begin_to_hang(&hanging, 1);
		use_again_slowly(numbers, READERS, new[0]);
		for (int i = 0; i < READERS; i++)
			CHECK_EQ(write(old[i][1], "o", 1), 1);
		let_go(&hanging, 1);
		for (int i = 0; i < READERS; i++) {
			join(readers[i]);
			CHECK_EQ(close(numbers[i]), 0);
			CHECK_EQ(close(old[i][1]), 0);
		}
	}
	CHECK_EQ(close(new[0]), 0);
	CHECK_EQ(close(new[1]), 0);
}
