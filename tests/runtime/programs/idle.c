/* SPDX-License-Identifier: MIT */
/*
 * Threads that wait take no processor's time. The harness asks that of every
 * process whose test is over; here are waits that are left to it, and one who
 * doesn't wait, to see that it would be found.
 */
#include <linux/net_tstamp.h>
#include <netinet/in.h>
#include <stdatomic.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <sys/un.h>

#include "threads.h"

static atomic_bool over;

static void *compute(void *arg)
{
	while (!atomic_load(&over))
		;
	return arg;
}

TEST(who_computes_is_found)
{
	pthread_t thread = start(compute, NULL);

	/* On a busy machine the thread may get no processor for most of a look. */
	while (is_idle())
		;
	atomic_store(&over, true);
	join(thread);
	CHECK(is_idle());
}

/* Waits of which none ends, each on a descriptor in a state of its own. */

struct one {
	long (*wait)(int fd);
	int fd;
	atomic_bool there;
};

static long receive(int fd)
{
	char c;

	return recv(fd, &c, 1, 0);
}

static long read_it(int fd)
{
	uint64_t word;

	return read(fd, &word, sizeof(word));
}

static void *wait_for_ever(void *arg)
{
	struct one *one = arg;

	atomic_store(&one->there, true);
	CHECK_EQ(one->wait(one->fd), -2);
	return NULL;
}

static void leave_waiting(long (*wait)(int fd), int fd)
{
	struct one *one = malloc(sizeof(*one));

	CHECK(one);
	*one = (struct one){ .wait = wait, .fd = fd };
	start(wait_for_ever, one);
	while (!atomic_load(&one->there))
		usleep(1000);
	settle();
}

TEST(an_error_queue_wakes_nobody)
{
	const int when = SOF_TIMESTAMPING_TX_SOFTWARE |
			 SOF_TIMESTAMPING_SOFTWARE;
	struct sockaddr_in own, other;
	int fd = datagram_socket(&own);

	datagram_socket(&other);
	CHECK_EQ(setsockopt(fd, SOL_SOCKET, SO_TIMESTAMPING, &when,
			    sizeof(when)), 0);
	CHECK_EQ(sendto(fd, "x", 1, 0, (struct sockaddr *)&other,
			sizeof(other)), 1);
	for (unsigned int i = 0; i < 3; i++)
		leave_waiting(receive, fd);
}

static struct sockaddr_un receiver = { .sun_family = AF_UNIX };
static socklen_t receiver_size = sizeof(receiver);

static long send_to(int fd)
{
	return sendto(fd, "x", 1, 0, (struct sockaddr *)&receiver,
		      receiver_size);
}

TEST(a_full_receiver_wakes_nobody)
{
	int to = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	CHECK_EQ(bind(to, (struct sockaddr *)&receiver, sizeof(sa_family_t)),
		 0);
	CHECK_EQ(getsockname(to, (struct sockaddr *)&receiver, &receiver_size),
		 0);
	while (sendto(fd, "x", 1, MSG_DONTWAIT, (struct sockaddr *)&receiver,
		      receiver_size) == 1)
		continue;
	for (unsigned int i = 0; i < 3; i++)
		leave_waiting(send_to, fd);
}

/* It may come so late that its number is nobody's, or another's. */
static long receive_before(int fd)
{
	long n = receive(fd);

	return n < 0 && (errno == EBADF || errno == ENOTSOCK) ? -2 : n;
}

/* Its number is another's by then, and a copy of it is ready for ever. */
TEST(a_descriptor_that_was_closed_wakes_nobody)
{
	int pair[2], copy, empty[2];

	for (unsigned int i = 0; i < 4; i++) {
		CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0,
				    pair), 0);
		copy = dup(pair[0]);
		CHECK(copy >= 0);
		leave_waiting(receive_before, pair[0]);
		CHECK_EQ(close(pair[0]), 0);
		CHECK_EQ(pipe(empty), 0);
		leave_waiting(read_it, empty[0]);
	}
}

static long wait_for_set(int fd)
{
	struct epoll_event event;

	return epoll_wait(fd, &event, 1, -1);
}

/* One has a level that stays, and has been told once. */
TEST(an_event_that_was_told_wakes_nobody)
{
	const uint32_t once[] = { EPOLLET, EPOLLONESHOT };

	for (unsigned int i = 0; i < 2; i++) {
		struct epoll_event event = { .events = EPOLLIN | once[i] };
		int set = epoll_create1(EPOLL_CLOEXEC), p[2];

		CHECK_EQ(pipe(p), 0);
		CHECK_EQ(write(p[1], "x", 1), 1);
		CHECK_EQ(epoll_ctl(set, EPOLL_CTL_ADD, p[0], &event), 0);
		CHECK_EQ(epoll_wait(set, &event, 1, 1000), 1);
		leave_waiting(wait_for_set, set);
	}
}

/* A time long past, and one far away. */
TEST(a_timer_that_was_read_wakes_nobody)
{
	struct itimerspec past = { .it_value.tv_nsec = 1 };
	int fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC);
	uint64_t times;

	CHECK_EQ(timerfd_settime(fd, TFD_TIMER_ABSTIME, &past, NULL), 0);
	CHECK_EQ(read(fd, &times, sizeof(times)), sizeof(times));
	leave_waiting(read_it, fd);
}
