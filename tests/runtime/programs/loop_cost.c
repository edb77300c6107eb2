/* SPDX-License-Identifier: MIT */
/*
 * The instructions that one turn of an event loop takes in user mode: a wait, a
 * receive and a send on a descriptor that is ready. Only optimized builds without
 * checks have to meet the bounds. The native run shows the share of libc.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <linux/aio_abi.h>
#include <poll.h>
#include <pthread.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#include "tests/harness/steps.h"
#include "threads.h"

static int set, pair[2];
static aio_context_t context;

static void make_loop(void)
{
	static const char much[1024];
	struct epoll_event event = { .events = EPOLLIN };

	CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, pair), 0);
	set = epoll_create1(EPOLL_CLOEXEC);
	CHECK(set >= 0);
	CHECK_EQ(epoll_ctl(set, EPOLL_CTL_ADD, pair[0], &event), 0);
	CHECK_EQ(send(pair[1], much, sizeof(much), 0), sizeof(much));
	syscall(SYS_io_setup, 1, &context);
}

/*
 * Waits that find a descriptor ready. io_getevents() waits for no request, and
 * returns none.
 */

static void by_epoll(void)
{
	struct epoll_event event;

	CHECK_EQ(epoll_wait(set, &event, 1, -1), 1);
}

static void by_poll(void)
{
	struct pollfd fds[] = { { pair[0], POLLIN, 0 }, { pair[1], POLLPRI, 0 } };

	CHECK_EQ(poll(fds, 2, -1), 1);
}

static void by_ppoll(void)
{
	struct pollfd fds[] = { { pair[0], POLLIN, 0 }, { pair[1], POLLPRI, 0 } };

	CHECK_EQ(ppoll(fds, 2, NULL, NULL), 1);
}

static void by_select(void)
{
	fd_set fds;

	FD_ZERO(&fds);
	FD_SET(pair[0], &fds);
	CHECK_EQ(select(pair[0] + 1, &fds, NULL, NULL, NULL), 1);
}

static void by_pselect(void)
{
	fd_set fds;

	FD_ZERO(&fds);
	FD_SET(pair[0], &fds);
	CHECK_EQ(pselect(pair[0] + 1, &fds, NULL, NULL, NULL, NULL), 1);
}

static void by_getevents(void)
{
	struct io_event event;

	CHECK_EQ(syscall(SYS_io_submit, context, 0L, NULL), 0);
	CHECK_EQ(syscall(SYS_io_getevents, context, 0L, 1L, &event, NULL), 0);
}

/* most: the bound on instructions per turn, without threads and with them. */
struct way {
	const char *name;
	void (*wait)(void);
	uint64_t most[2];
};

/* More bytes are waiting than all turns receive. */
static void turn(const struct way *way)
{
	char byte;

	way->wait();
	CHECK_EQ(recv(pair[0], &byte, 1, 0), 1);
	CHECK_EQ(send(pair[1], &byte, 1, 0), 1);
}

static uint64_t instructions(const struct way *way, unsigned int turns,
			     bool threads)
{
	int child = test_fork();

	if (!child) {
		if (threads)
			join(start(nothing, NULL));
		make_loop();
		for (unsigned int i = 0; i < 8; i++)
			turn(way);
		steps_begin();
		for (unsigned int i = 0; i < turns; i++)
			turn(way);
		steps_mark();
		test_leave();
	}
	return steps_of(child);
}

static uint64_t per_turn(const struct way *way, bool threads)
{
	uint64_t n = (instructions(way, 12, threads) -
		      instructions(way, 4, threads)) / 8;

	test_note("%lu instructions by %s, %s", (unsigned long)n, way->name,
		  threads ? "with threads" : "one thread");
	return n;
}

/* libc's functions differ in cost. The turn of io_getevents() includes io_submit(). */
static const struct way ways[] = {
	{ "epoll_wait()", by_epoll, { 300, 520 } },
	{ "poll()", by_poll, { 300, 520 } },
	{ "ppoll()", by_ppoll, { 300, 530 } },
	{ "select()", by_select, { 320, 550 } },
	{ "pselect()", by_pselect, { 330, 560 } },
	{ "io_getevents()", by_getevents, { 400, 600 } },
};
#define WAYS	(sizeof(ways) / sizeof(*ways))

static void check_all(bool threads)
{
	aio_context_t own = 0;
	const bool aio = !syscall(SYS_io_setup, 1, &own);
	bool good = true;

	for (size_t i = 0; i < WAYS; i++)
		if (aio || ways[i].wait != by_getevents)
			good &= per_turn(&ways[i], threads) <=
				ways[i].most[threads];
	CHECK(good);
}

TEST_LIMIT(a_turn_of_one_thread_costs_little, 120)
{
	check_all(false);
}

TEST_LIMIT(a_turn_of_a_user_thread_costs_little, 120)
{
	check_all(true);
}

/* Close a socket that a posted call has used, while many user threads exist. */

static int silent[2];

static void *send_file(void *arg)
{
	int file = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);

	CHECK_EQ(sendfile(*(int *)arg, file, NULL, 100), 100);
	CHECK_EQ(close(file), 0);
	return NULL;
}

static void *wait_for_silence(void *arg)
{
	char byte;

	(void)!read(silent[0], &byte, 1);
	return arg;
}

static uint64_t closing(unsigned int threads)
{
	int child = test_fork(), used[2];

	if (!child) {
		CHECK_EQ(pipe(silent), 0);
		CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, used), 0);
		for (unsigned int i = 0; i < threads; i++)
			start(wait_for_silence, NULL);
		make_loop();
		join(start(send_file, &used[0]));
		for (unsigned int i = 0; i < 8; i++)
			turn(&ways[0]);
		steps_begin();
		close(used[0]);
		steps_mark();
		test_leave();
	}
	return steps_of(child);
}

TEST_LIMIT(closing_costs_no_more_among_many_threads, 120)
{
	uint64_t few = closing(4), many = closing(100);

	test_note("%lu instructions with 4 threads, %lu with 100",
		  (unsigned long)few, (unsigned long)many);
	CHECK(many <= few + 96);
}

/* Close all descriptors from a number on, as programs do before they execute others. */

static uint64_t closing_all(void)
{
	int child = test_fork();

	if (!child) {
		join(start(nothing, NULL));
		steps_begin();
		close_range(64, ~0U, 0);
		steps_mark();
		/* The runtime's own descriptors are still open. */
		join(start(nothing, NULL));
		test_leave();
	}
	return steps_of(child);
}

/*
 * The runtime's own descriptors, from 2048 on, are the highest. Trying each of the
 * 2^20 numbers that the program may use would take a hundred times as many
 * instructions.
 */
TEST_LIMIT(closing_all_descriptors_ends_at_the_last, 120)
{
	uint64_t n = closing_all();

	test_note("%lu instructions", (unsigned long)n);
	CHECK(n <= 150000);
}
