/* SPDX-License-Identifier: MIT */
/*
 * What an event loop's turn costs in user mode, in instructions: epoll_wait(), a
 * receive and a send on a descriptor that doesn't wait. Optimised builds without
 * checks have to pass; the native run shows what libc alone takes.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include "../steps.h"
#include "threads.h"

static int set, pair[2];

static void *nothing(void *arg)
{
	return arg;
}

static void make_loop(void)
{
	static const char much[1024];
	struct epoll_event event = { .events = EPOLLIN };

	CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, pair), 0);
	set = epoll_create1(EPOLL_CLOEXEC);
	CHECK(set >= 0);
	CHECK_EQ(epoll_ctl(set, EPOLL_CTL_ADD, pair[0], &event), 0);
	CHECK_EQ(send(pair[1], much, sizeof(much), 0), sizeof(much));
}

/* More bytes are there to be received than all turns take. */
static void turn(void)
{
	struct epoll_event event;
	char byte;

	CHECK_EQ(epoll_wait(set, &event, 1, -1), 1);
	CHECK_EQ(recv(pair[0], &byte, 1, 0), 1);
	CHECK_EQ(send(pair[1], &byte, 1, 0), 1);
}

static uint64_t instructions(unsigned int turns, bool threads)
{
	int child = test_fork();

	if (!child) {
		if (threads)
			join(start(nothing, NULL));
		make_loop();
		for (unsigned int i = 0; i < 8; i++)
			turn();
		steps_begin();
		for (unsigned int i = 0; i < turns; i++)
			turn();
		steps_mark();
		test_leave();
	}
	return steps_of(child);
}

static uint64_t per_turn(bool threads)
{
	uint64_t n = (instructions(12, threads) - instructions(4, threads)) / 8;

	test_note("%lu instructions, %s", (unsigned long)n,
		  threads ? "with threads" : "one thread");
	return n;
}

TEST_LIMIT(a_turn_of_one_thread_costs_little, 30)
{
	CHECK(per_turn(false) <= 300);
}

TEST_LIMIT(a_turn_of_a_user_thread_costs_little, 30)
{
	CHECK(per_turn(true) <= 560);
}
