/* SPDX-License-Identifier: MIT */
/*
 * Waiting threads use no processor time. The harness checks that for every process
 * whose test is over. Each test here leaves a wait to this check; the first test
 * shows that a computing thread is found.
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

TEST(a_computing_thread_is_found)
{
	pthread_t thread = start(compute, NULL);

	/* On a busy machine the thread may get no processor for most of a look. */
	while (is_idle())
		;
	atomic_store(&over, true);
	join(thread);
	CHECK(is_idle());
}

/* Endless waits, each on a descriptor in a special state. */

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

TEST(an_error_queue_wakes_no_thread)
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

TEST(a_full_receiver_wakes_no_thread)
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

/* The call may begin so late that its number is closed, or means another file. */
static long receive_before(int fd)
{
	long n = receive(fd);

	return n < 0 && (errno == EBADF || errno == ENOTSOCK) ? -2 : n;
}

/*
 * By then the number means another file, and a duplicate of the first file is always
 * ready.
 */
TEST(a_closed_descriptor_wakes_no_thread)
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

/*
 * The descriptor stays ready, but epoll reports an EPOLLET or EPOLLONESHOT event
 * once.
 */
TEST(an_event_that_was_reported_wakes_no_thread)
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

/* The timer's time is long past, and its expiration was read. */
TEST(a_timer_that_was_read_wakes_no_thread)
{
	struct itimerspec past = { .it_value.tv_nsec = 1 };
	int fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC);
	uint64_t times;

	CHECK_EQ(timerfd_settime(fd, TFD_TIMER_ABSTIME, &past, NULL), 0);
	CHECK_EQ(read(fd, &times, sizeof(times)), sizeof(times));
	leave_waiting(read_it, fd);
}
