/* SPDX-License-Identifier: MIT */
/*
 * Event loops: threads that wait for an epoll set, and receive and send on
 * descriptors that don't wait. A loop makes some turns first, after which the
 * runtime leaves it at home; then it meets descriptors, signals and cancellations.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <netinet/in.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/timerfd.h>

#include "bytes.h"
#include "handled.h"

#define TURNS		20
#define LOOPS		4	/* threads of a server */
#define CLIENTS		40
#define SIGNALS		200
#define FOR_EVER	(-1)

struct loop {
	int set;
	int here, there;	/* a pair of sockets; "here" is in the set */
};

static void add(int set, int fd, uint32_t events)
{
	struct epoll_event event = { .events = events, .data.fd = fd };

	CHECK_EQ(epoll_ctl(set, EPOLL_CTL_ADD, fd, &event), 0);
}

/* The descriptor that has an event; -1: none had one for ms milliseconds. */
static int wait_for(int set, int ms)
{
	struct epoll_event event;
	int n = epoll_wait(set, &event, 1, ms);

	CHECK(n == 0 || n == 1);
	return n ? event.data.fd : -1;
}

/* The error of a wait without a time limit, which has to fail. */
static int wait_for_error(int set)
{
	struct epoll_event event;

	CHECK_EQ(epoll_wait(set, &event, 1, FOR_EVER), -1);
	return errno;
}

static void turn(const struct loop *loop)
{
	say(loop->there);
	CHECK_EQ(wait_for(loop->set, FOR_EVER), loop->here);
	hear(loop->here);
	hear_nothing(loop->here);
}

static struct loop loop_with(uint32_t events)
{
	struct loop loop = { .set = epoll_create1(EPOLL_CLOEXEC) };
	int pair[2];

	CHECK(loop.set >= 0);
	CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, pair), 0);
	loop.here = pair[0];
	loop.there = pair[1];
	add(loop.set, loop.here, events);
	return loop;
}

/* A loop that the calling thread has made some turns of. */
static struct loop made_loop(void)
{
	struct loop loop = loop_with(EPOLLIN);

	for (int i = 0; i < TURNS; i++)
		turn(&loop);
	return loop;
}

static void end_loop(const struct loop *loop)
{
	CHECK_EQ(close(loop->here), 0);
	CHECK_EQ(close(loop->there), 0);
	CHECK_EQ(close(loop->set), 0);
}

static void *hear_edges(void *arg)
{
	struct loop loop = loop_with(EPOLLIN | EPOLLET);

	for (int i = 0; i < TURNS; i++) {
		say(loop.there);
		CHECK_EQ(wait_for(loop.set, FOR_EVER), loop.here);
		CHECK_EQ(wait_for(loop.set, 0), -1);
		say(loop.there);
		CHECK_EQ(wait_for(loop.set, FOR_EVER), loop.here);
		hear(loop.here);
		hear(loop.here);
		hear_nothing(loop.here);
	}
	end_loop(&loop);
	return arg;
}

TEST(an_edge_is_one_event)
{
	join(start(hear_edges, NULL));
}

static void *hear_once(void *arg)
{
	const uint32_t once = EPOLLIN | EPOLLONESHOT;
	struct loop loop = loop_with(once);
	struct epoll_event again = { .events = once, .data.fd = loop.here };

	for (int i = 0; i < TURNS; i++) {
		turn(&loop);
		say(loop.there);
		CHECK_EQ(wait_for(loop.set, 0), -1);
		CHECK_EQ(epoll_ctl(loop.set, EPOLL_CTL_MOD, loop.here, &again),
			 0);
		CHECK_EQ(wait_for(loop.set, FOR_EVER), loop.here);
		hear(loop.here);
		CHECK_EQ(epoll_ctl(loop.set, EPOLL_CTL_MOD, loop.here, &again),
			 0);
	}
	end_loop(&loop);
	return arg;
}

TEST(a_one_shot_waits_for_its_renewal)
{
	join(start(hear_once, NULL));
}

static void *peek(void *arg)
{
	struct loop loop = made_loop();
	char byte = 0;

	say(loop.there);
	for (int i = 0; i < TURNS; i++) {
		CHECK_EQ(wait_for(loop.set, FOR_EVER), loop.here);
		CHECK_EQ(recv(loop.here, &byte, 1, MSG_PEEK), 1);
		CHECK_EQ(byte, 'x');
	}
	hear(loop.here);
	CHECK_EQ(recv(loop.here, &byte, 1, MSG_PEEK), -1);
	CHECK_EQ(errno, EAGAIN);
	CHECK_EQ(wait_for(loop.set, 0), -1);
	end_loop(&loop);
	return arg;
}

TEST(what_is_peeked_at_stays)
{
	join(start(peek, NULL));
}

/* A server of several threads, each with a set that has the listener. */

static struct sockaddr_in address;
static atomic_int served;

static int listener(void)
{
	socklen_t size = sizeof(address);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);

	address = (struct sockaddr_in){
		.sin_family = AF_INET,
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK),
	};
	CHECK_EQ(bind(fd, (struct sockaddr *)&address, size), 0);
	CHECK_EQ(listen(fd, CLIENTS), 0);
	CHECK_EQ(getsockname(fd, (struct sockaddr *)&address, &size), 0);
	return fd;
}

static void serve_one(int fd)
{
	int client = accept4(fd, NULL, NULL, SOCK_NONBLOCK);

	/* Another thread has taken the connection. */
	if (client < 0) {
		CHECK_EQ(errno, EAGAIN);
		return;
	}
	say(client);
	served++;
	CHECK_EQ(close(client), 0);
}

static void *serve(void *arg)
{
	struct loop loop = made_loop();
	int fd = *(int *)arg;

	add(loop.set, fd, EPOLLIN | EPOLLEXCLUSIVE);
	while (served < CLIENTS)
		if (wait_for(loop.set, 5) == fd)
			serve_one(fd);
	end_loop(&loop);
	return NULL;
}

TEST(an_exclusive_listener_serves_all)
{
	pthread_t threads[LOOPS];
	int fd = listener();

	for (int i = 0; i < LOOPS; i++)
		threads[i] = start(serve, &fd);
	for (int i = 0; i < CLIENTS; i++) {
		int client = socket(AF_INET, SOCK_STREAM, 0);

		CHECK_EQ(connect(client, (struct sockaddr *)&address,
				 sizeof(address)), 0);
		hear(client);
		CHECK_EQ(close(client), 0);
	}
	for (int i = 0; i < LOOPS; i++)
		join(threads[i]);
	CHECK_EQ(served, CLIENTS);
	CHECK_EQ(close(fd), 0);
}

/* Descriptors in a set that aren't the only ones of their file. */

static void *keep_a_copy(void *arg)
{
	struct loop loop = made_loop();
	int copy = dup(loop.here);

	/* The descriptor that is in the set goes, and its file stays. */
	CHECK_EQ(close(loop.here), 0);
	for (int i = 0; i < TURNS; i++) {
		say(loop.there);
		CHECK_EQ(wait_for(loop.set, FOR_EVER), loop.here);
		hear(copy);
		hear_nothing(copy);
	}
	/* With its last descriptor the file leaves the set. */
	say(loop.there);
	CHECK_EQ(close(copy), 0);
	CHECK_EQ(wait_for(loop.set, 0), -1);
	CHECK_EQ(close(loop.there), 0);
	CHECK_EQ(close(loop.set), 0);
	return arg;
}

TEST(a_copy_keeps_its_place_in_the_set)
{
	join(start(keep_a_copy, NULL));
}

/* In a child: turns of the parent's set, and of one that the child makes. */
static void child_turns(const struct loop *inherited)
{
	struct loop own = made_loop();

	CHECK_EQ(wait_for(inherited->set, FOR_EVER), inherited->here);
	hear(inherited->here);
	hear_nothing(inherited->here);
	end_loop(&own);
	/* The parent's descriptor keeps the file in the set. */
	end_loop(inherited);
	test_leave();
}

static void *fork_a_loop(void *arg)
{
	struct loop loop = made_loop();

	for (int i = 0; i < 3; i++) {
		int child = test_fork();

		if (!child)
			child_turns(&loop);
		say(loop.there);
		test_reap(child);
		CHECK_EQ(wait_for(loop.set, 0), -1);
		turn(&loop);
	}
	end_loop(&loop);
	return arg;
}

TEST(a_set_is_shared_with_a_child)
{
	join(start(fork_a_loop, NULL));
}

/* Descriptors that go, or change, while the loop waits. */

static void *wait_until_told(void *arg)
{
	struct loop *loop = arg, own = made_loop();

	end_loop(&own);
	stage++;
	CHECK_EQ(wait_for(loop->set, FOR_EVER), loop->here);
	return NULL;
}

TEST(others_stay_when_one_is_closed)
{
	struct loop loop = loop_with(EPOLLIN);
	pthread_t thread = start(wait_until_told, &loop);
	int fd = eventfd(0, EFD_NONBLOCK);

	add(loop.set, fd, EPOLLIN);
	while (stage < 1)
		usleep(100);
	settle();
	CHECK_EQ(close(fd), 0);
	settle();
	say(loop.there);
	join(thread);
	end_loop(&loop);
}

/* On a busy machine the set may be closed before the first wait begins. */
static void *wait_for_closed_set(void *arg)
{
	struct loop *loop = arg, own = made_loop();
	struct epoll_event event;
	int set = loop->set;

	end_loop(&own);
	stage++;
	CHECK(epoll_wait(set, &event, 1, 100) == 0 || errno == EBADF);
	while (stage < 2)
		usleep(100);
	CHECK_EQ(wait_for_error(set), EBADF);
	return NULL;
}

TEST(a_wait_outlives_its_set)
{
	struct loop loop = loop_with(EPOLLIN);
	pthread_t thread = start(wait_for_closed_set, &loop);

	while (stage < 1)
		usleep(100);
	settle();
	CHECK_EQ(close(loop.set), 0);
	stage++;
	join(thread);
	CHECK_EQ(close(loop.here), 0);
	CHECK_EQ(close(loop.there), 0);
}

/* O_NONBLOCK is a file's flag: each descriptor of the file changes it. */
static void *hear_slowly(void *arg)
{
	struct loop *out = arg, loop = made_loop();
	int copy = dup(loop.here), no = 0;

	*out = loop;
	for (int i = 0; i < 3; i++) {
		CHECK_EQ(i % 2 ? ioctl(copy, FIONBIO, &no) :
				 fcntl(copy, F_SETFL, O_RDWR), 0);
		stage++;
		hear(loop.here);
		CHECK_EQ(fcntl(loop.here, F_SETFL, O_RDWR | O_NONBLOCK), 0);
		turn(&loop);
	}
	CHECK_EQ(close(copy), 0);
	return NULL;
}

TEST(a_descriptor_that_waits_after_all)
{
	struct loop loop;
	pthread_t thread = start(hear_slowly, &loop);

	for (int i = 0; i < 3; i++) {
		while (stage <= i)
			usleep(100);
		settle();
		say(loop.there);
	}
	join(thread);
	end_loop(&loop);
}

static void *read_by_turns(void *arg)
{
	struct loop loop = made_loop();
	char byte;

	for (int i = 0; i < 5 * TURNS; i++) {
		CHECK_EQ(read(*(int *)arg, &byte, 1), 1);
		turn(&loop);
		CHECK_EQ(send(*(int *)arg, "x", 1, 0), 1);
	}
	end_loop(&loop);
	return NULL;
}

TEST(a_loop_may_block_by_turns)
{
	pthread_t threads[LOOPS];
	int pairs[LOOPS][2];

	for (int i = 0; i < LOOPS; i++) {
		CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, pairs[i]), 0);
		threads[i] = start(read_by_turns, &pairs[i][1]);
	}
	for (int turn = 0; turn < 5 * TURNS; turn++) {
		for (int i = 0; i < LOOPS; i++)
			say(pairs[i][0]);
		for (int i = 0; i < LOOPS; i++)
			hear(pairs[i][0]);
	}
	for (int i = 0; i < LOOPS; i++)
		join(threads[i]);
}

/* Descriptors of other kinds in a set. */

static void *hear_others(void *arg)
{
	const struct itimerspec soon = { .it_value.tv_nsec = 1000000 };
	struct loop loop = made_loop();
	int timer = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK);
	int event = eventfd(0, EFD_NONBLOCK), signals;
	struct signalfd_siginfo info;
	sigset_t user;
	uint64_t n;

	block(SIG_BLOCK, SIGUSR1);
	sigemptyset(&user);
	sigaddset(&user, SIGUSR1);
	signals = signalfd(-1, &user, SFD_NONBLOCK);
	add(loop.set, timer, EPOLLIN);
	add(loop.set, event, EPOLLIN);
	add(loop.set, signals, EPOLLIN);
	for (int i = 0; i < TURNS; i++) {
		CHECK_EQ(timerfd_settime(timer, 0, &soon, NULL), 0);
		CHECK_EQ(wait_for(loop.set, FOR_EVER), timer);
		CHECK_EQ(read(timer, &n, sizeof(n)), sizeof(n));
		CHECK_EQ(eventfd_write(event, 3), 0);
		CHECK_EQ(wait_for(loop.set, FOR_EVER), event);
		CHECK_EQ(read(event, &n, sizeof(n)), sizeof(n));
		CHECK_EQ(n, 3);
		CHECK_EQ(pthread_kill(pthread_self(), SIGUSR1), 0);
		CHECK_EQ(wait_for(loop.set, FOR_EVER), signals);
		CHECK_EQ(read(signals, &info, sizeof(info)), sizeof(info));
		CHECK_EQ(info.ssi_signo, SIGUSR1);
		CHECK_EQ(wait_for(loop.set, 0), -1);
	}
	CHECK_EQ(close(timer) + close(event) + close(signals), 0);
	end_loop(&loop);
	return arg;
}

TEST(timers_events_and_signals_are_in_a_set)
{
	join(start(hear_others, NULL));
}

/* Signals. */

static struct loop signalled;

static void tell_loop(int signo)
{
	int err = errno;

	(void)signo;
	handled++;
	say(signalled.there);
	errno = err;
}

/* As programs do, the handler writes a byte, which ends the wait. */
static void *hear_signals(void *arg)
{
	for (int i = 0; i < SIGNALS; i++) {
		int n;

		do
			n = epoll_wait(signalled.set,
				       &(struct epoll_event){ 0 }, 1, FOR_EVER);
		while (n < 0 && errno == EINTR);
		CHECK_EQ(n, 1);
		hear(signalled.here);
		stage++;
	}
	return arg;
}

static void *make_and_hear(void *arg)
{
	signalled = made_loop();
	stage++;
	return hear_signals(arg);
}

TEST(no_signal_is_missed)
{
	struct sigaction action = { .sa_handler = tell_loop,
				    .sa_flags = SA_RESTART };
	pthread_t thread = start(make_and_hear, NULL);

	CHECK_EQ(sigaction(SIGUSR1, &action, NULL), 0);
	while (stage < 1)
		sched_yield();
	for (int i = 0; i < SIGNALS; i++) {
		while (stage <= i)
			sched_yield();
		CHECK_EQ(pthread_kill(thread, SIGUSR1), 0);
	}
	join(thread);
	CHECK_EQ(handled, SIGNALS);
	end_loop(&signalled);
}

static void *wait_interrupted(void *arg)
{
	struct loop loop = made_loop();

	mine = 7;
	while (stage < TURNS) {
		CHECK_EQ(wait_for_error(loop.set), EINTR);
		CHECK_EQ(where, 7);
		stage++;
	}
	block(SIG_BLOCK, SIGUSR1);
	turn(&loop);
	end_loop(&loop);
	return arg;
}

/* A signal that comes before the wait doesn't end it, so more are sent. */
TEST(a_handler_ends_the_wait)
{
	pthread_t thread;

	install(SIGUSR1, SA_RESTART);
	thread = start(wait_interrupted, NULL);
	while (stage < TURNS) {
		CHECK_EQ(pthread_kill(thread, SIGUSR1), 0);
		usleep(1000);
	}
	join(thread);
	CHECK(handled >= TURNS);
}

static void *wait_with_mask(void *arg)
{
	struct loop loop = made_loop();
	struct epoll_event event;
	sigset_t open;

	block(SIG_BLOCK, SIGUSR1);
	pthread_sigmask(SIG_BLOCK, NULL, &open);
	sigdelset(&open, SIGUSR1);
	for (int i = 0; i < TURNS; i++) {
		CHECK_EQ(pthread_kill(pthread_self(), SIGUSR1), 0);
		CHECK_EQ(wait_for(loop.set, 0), -1);
		CHECK_EQ(handled, i);
		CHECK_EQ(epoll_pwait(loop.set, &event, 1, FOR_EVER, &open), -1);
		CHECK_EQ(errno, EINTR);
		CHECK_EQ(handled, i + 1);
		turn(&loop);
	}
	end_loop(&loop);
	return arg;
}

TEST(a_mask_holds_for_a_wait)
{
	install(SIGUSR1, 0);
	join(start(wait_with_mask, NULL));
}

/* Cancellation. */

static atomic_int cleaned;

static void clean(void *arg)
{
	end_loop(arg);
	cleaned++;
}

static void *wait_cancelled(void *arg)
{
	struct loop loop = made_loop();

	pthread_cleanup_push(clean, &loop);
	stage++;
	wait_for(loop.set, FOR_EVER);
	pthread_cleanup_pop(0);
	return arg;
}

/* A receive that fails with EAGAIN is a cancellation point, too. */
static void *busy_cancelled(void *arg)
{
	struct loop loop = made_loop();
	char byte;

	pthread_cleanup_push(clean, &loop);
	stage++;
	for (;;)
		CHECK(recv(loop.here, &byte, 1, 0) < 0);
	pthread_cleanup_pop(0);
	return arg;
}

static void *turn_uncancelled(void *arg)
{
	struct loop loop = made_loop();

	CHECK_EQ(pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, NULL), 0);
	stage++;
	while (stage < 2)
		turn(&loop);
	turn(&loop);
	end_loop(&loop);
	return arg;
}

static void cancel(void *(*run)(void *))
{
	pthread_t thread;

	stage = 0;
	thread = start(run, NULL);
	while (stage < 1)
		usleep(100);
	usleep(1000);
	CHECK_EQ(pthread_cancel(thread), 0);
	stage = 2;
	CHECK_EQ(join(thread), run == turn_uncancelled ? NULL :
							 PTHREAD_CANCELED);
}

TEST(a_loop_is_cancelled)
{
	unsigned int fds = 0;

	for (int i = 0; i < TURNS; i++) {
		cancel(wait_cancelled);
		cancel(busy_cancelled);
		cancel(turn_uncancelled);
		CHECK_EQ(cleaned, 2 * (i + 1));
		/* The runtime has opened all descriptors of its own by now. */
		if (!i)
			fds = count_fds();
	}
	CHECK_EQ(count_fds(), fds);
}

/* A receive that waits, because O_NONBLOCK was cleared, can be cancelled. */

static void wait_by_copy(int fd)
{
	int copy = dup(fd);

	CHECK_EQ(fcntl(copy, F_SETFL, O_RDWR), 0);
	CHECK_EQ(close(copy), 0);
}

static void wait_by_child(int fd)
{
	int child = test_fork();

	if (!child) {
		CHECK_EQ(fcntl(fd, F_SETFL, O_RDWR), 0);
		test_leave();
	}
	test_reap(child);
}

/* As a copy, but made by a message that passes the descriptor. */
static void wait_by_message(int fd)
{
	union {
		struct cmsghdr header;
		char bytes[CMSG_SPACE(sizeof(fd))];
	} control = { .header = { .cmsg_len = CMSG_LEN(sizeof(fd)),
				  .cmsg_level = SOL_SOCKET,
				  .cmsg_type = SCM_RIGHTS } };
	struct iovec vec = { "x", 1 };
	struct msghdr message = { .msg_iov = &vec, .msg_iovlen = 1,
				  .msg_control = &control,
				  .msg_controllen = sizeof(control) };
	struct loop loop = made_loop();
	int *passed = (int *)CMSG_DATA(&control.header);

	*passed = fd;
	CHECK_EQ(sendmsg(loop.there, &message, 0), 1);
	*passed = -1;
	vec.iov_base = &(char){ 0 };
	CHECK_EQ(recvmsg(loop.here, &message, 0), 1);
	CHECK(*passed >= 0 && *passed != fd);
	CHECK_EQ(fcntl(*passed, F_SETFL, O_RDWR), 0);
	CHECK_EQ(close(*passed), 0);
	end_loop(&loop);
}

#define WAYS		3
static void (*const make_wait[WAYS])(int) = {
	wait_by_copy, wait_by_child, wait_by_message,
};

static void *hear_cancelled(void *arg)
{
	struct loop loop = made_loop();

	make_wait[cleaned % WAYS](loop.here);
	pthread_cleanup_push(clean, &loop);
	stage++;
	hear(loop.here);
	pthread_cleanup_pop(0);
	return arg;
}

TEST(a_receive_that_waits_after_all_is_cancelled)
{
	for (int i = 0; i < TURNS; i++) {
		cancel(hear_cancelled);
		CHECK_EQ(cleaned, i + 1);
	}
}
