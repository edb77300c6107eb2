/* SPDX-License-Identifier: MIT */
/*
 * Signals: which thread gets them, where handlers run, and which calls they
 * interrupt.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sched.h>
#include <semaphore.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/time.h>

#include "handled.h"

static int fds[2];

static void *blocked_read(void *arg)
{
	char byte;
	ssize_t n;

	mine = 7;
	n = read(fds[0], &byte, 1);
	*(int *)arg = n < 0 ? -errno : (int)n;
	stage++;
	return NULL;
}

/* Sends the signal again if it arrived before the thread waited. */
static void signal_until(int next, pthread_t thread)
{
	while (stage < next) {
		settle();
		if (stage < next)
			CHECK_EQ(pthread_kill(thread, SIGUSR1), 0);
	}
}

TEST(a_handler_runs_in_its_thread_and_ends_a_call)
{
	pthread_t thread;
	int result;

	CHECK_EQ(pipe(fds), 0);
	install(SIGUSR1, 0);
	thread = start(blocked_read, &result);
	signal_until(1, thread);
	join(thread);
	CHECK_EQ(result, -EINTR);
	CHECK(handled >= 1);
	CHECK_EQ(where, 7);
	CHECK(pthread_equal(ran_in, thread));
}

TEST(a_restarted_call_goes_on)
{
	pthread_t thread;
	int result;

	CHECK_EQ(pipe(fds), 0);
	install(SIGUSR1, SA_RESTART);
	thread = start(blocked_read, &result);
	settle();
	for (int i = 0; i < 20; i++) {
		pthread_kill(thread, SIGUSR1);
		usleep(2000);
	}
	while (!handled)
		usleep(1000);
	CHECK_EQ(write(fds[1], "x", 1), 1);
	join(thread);
	CHECK_EQ(result, 1);
}

static void *other_waits(void *arg)
{
	struct pollfd fd = { fds[0], POLLIN, 0 };
	struct timespec long_time = { 100, 0 }, rest = { 0 };

	CHECK_EQ(poll(&fd, 1, -1), -1);
	CHECK_EQ(errno, EINTR);
	stage++;
	CHECK_EQ(nanosleep(&long_time, &rest), -1);
	CHECK_EQ(errno, EINTR);
	/* The kernel adds the thread's timer slack, so the rest may be longer than 100 s. */
	CHECK(rest.tv_sec >= 90 && rest.tv_sec <= 100);
	stage++;
	CHECK(sleep(100) >= 90);
	stage++;
	CHECK_EQ(sem_wait(arg), -1);
	CHECK_EQ(errno, EINTR);
	stage++;
	CHECK_EQ(pause(), -1);
	CHECK_EQ(errno, EINTR);
	stage++;
	return NULL;
}

TEST(every_kind_of_wait_is_interrupted)
{
	pthread_t thread;
	sem_t sem;

	CHECK_EQ(pipe(fds), 0);
	sem_init(&sem, 0, 0);
	install(SIGUSR1, 0);
	thread = start(other_waits, &sem);
	for (int i = 1; i <= 5; i++)
		signal_until(i, thread);
	join(thread);
	CHECK(handled >= 5);
}

TEST(a_thread_that_computes_is_interrupted)
{
	pthread_t thread;

	install(SIGUSR1, 0);
	thread = start(spin, NULL);
	while (!begun)
		usleep(100);
	pthread_kill(thread, SIGUSR1);
	join(thread);
	CHECK_EQ(where, 9);
}

static atomic_int round_sent;

static void *sleep_after_each(void *arg)
{
	for (int i = 1; i <= 300; i++) {
		while (round_sent < i)
			usleep(50);
		/* The signal has arrived, or arrives before the call. */
		CHECK_EQ(usleep(300), 0);
		CHECK_EQ(handled, i);
		stage = i;
	}
	return arg;
}

TEST(a_signal_arrives_before_its_sender_s_next_action)
{
	pthread_t thread;

	install(SIGUSR1, 0);
	thread = start(sleep_after_each, NULL);
	for (int i = 1; i <= 300; i++) {
		usleep(50 + 7 * (i % 20));
		CHECK_EQ(pthread_kill(thread, SIGUSR1), 0);
		round_sent = i;
		while (stage < i)
			usleep(100);
	}
	join(thread);
}

TEST(the_process_s_signal_reaches_a_thread_that_takes_it)
{
	pthread_t thread;
	int result;

	CHECK_EQ(pipe(fds), 0);
	install(SIGUSR1, 0);
	thread = start(blocked_read, &result);
	block(SIG_BLOCK, SIGUSR1);
	while (!stage) {
		settle();
		if (!stage)
			CHECK_EQ(kill(getpid(), SIGUSR1), 0);
	}
	join(thread);
	CHECK(handled >= 1);
	CHECK_EQ(result, -EINTR);
	CHECK(pthread_equal(ran_in, thread));
}

static void *sleep_long(void *arg)
{
	sleep(100);
	return arg;
}

TEST(a_signal_without_a_handler_ends_the_process)
{
	int pid = fork(), status;

	CHECK(pid >= 0);
	if (!pid) {
		start(sleep_long, NULL);
		sleep_long(NULL);
		_exit(1);
	}
	settle();
	settle();
	CHECK_EQ(kill(pid, SIGTERM), 0);
	CHECK_EQ(waitpid(pid, &status, 0), pid);
	CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGTERM);
}

static __thread void *volatile stack_seen;

static void see_stack(int signo)
{
	int here;

	(void)signo;
	stack_seen = &here;
	handled++;
}

static void *use_alternate_stack(void *arg)
{
	stack_t stack = { .ss_sp = arg, .ss_size = 65536 }, now;

	CHECK_EQ(sigaltstack(&stack, NULL), 0);
	for (int i = 0; i < 10; i++)
		usleep(100);
	raise(SIGUSR1);
	CHECK((char *)stack_seen > (char *)arg &&
	      (char *)stack_seen < (char *)arg + 65536);
	CHECK_EQ(sigaltstack(NULL, &now), 0);
	CHECK(now.ss_sp == arg);
	return NULL;
}

TEST(a_thread_has_its_own_signal_stack)
{
	struct sigaction action = { .sa_handler = see_stack,
				    .sa_flags = SA_ONSTACK };
	static char stacks[2][65536];
	pthread_t a, b;

	sigaction(SIGUSR1, &action, NULL);
	a = start(use_alternate_stack, stacks[0]);
	b = start(use_alternate_stack, stacks[1]);
	join(a);
	join(b);
	CHECK_EQ(handled, 2);
}

static void *work_under_fire(void *arg)
{
	for (int i = 0; i < 3000 || handled <= 10; i++) {
		char byte = (char)i, got;

		CHECK_EQ(write(((int *)arg)[1], &byte, 1), 1);
		CHECK_EQ(read(((int *)arg)[0], &got, 1), 1);
		CHECK_EQ(got, byte);
		if (i % 100 == 0)
			usleep(10);
	}
	return NULL;
}

TEST(many_signals_disturb_nothing)
{
	struct itimerval often = { { 0, 300 }, { 0, 300 } }, never = { 0 };
	pthread_t threads[4];
	int pipes[4][2];

	install(SIGALRM, SA_RESTART);
	setitimer(ITIMER_REAL, &often, NULL);
	for (int i = 0; i < 4; i++) {
		CHECK_EQ(pipe(pipes[i]), 0);
		threads[i] = start(work_under_fire, pipes[i]);
	}
	join_all(threads, 4);
	setitimer(ITIMER_REAL, &never, NULL);
}

static sem_t taken;
static atomic_int turns;

/*
 * Keeps its carrier for some time, but not for so long that the monitor moves the
 * thread.
 */
static void *burn(void *arg)
{
	while (!over) {
		struct timespec end = in_ms(CLOCK_MONOTONIC, 3), now;

		do {
			clock_gettime(CLOCK_MONOTONIC, &now);
		} while (now.tv_sec < end.tv_sec || (now.tv_sec == end.tv_sec &&
						     now.tv_nsec < end.tv_nsec));
		sched_yield();
	}
	return arg;
}

static sem_t sides[2];

/* Keeps some carrier looking for work most of the time. */
static void *bounce(void *arg)
{
	size_t side = (size_t)arg;

	while (!over) {
		sem_wait(&sides[side]);
		sem_post(&sides[!side]);
	}
	return NULL;
}

static void *take_turns(void *arg)
{
	while (!over) {
		while (sem_wait(&taken))
			CHECK_EQ(errno, EINTR);
		turns++;
	}
	return arg;
}

static void await(atomic_int *count, int n)
{
	while (*count < n)
		usleep(50);
	CHECK_EQ(*count, n);
}

/*
 * A thread that was woken between two signals then waits on another core. Each round
 * takes some milliseconds, and more where the cores have other work.
 */
TEST_LIMIT(a_signal_finds_a_thread_that_was_woken_after_the_last_signal, 90)
{
	pthread_t burners[2], bouncers[2], thread;

	install(SIGUSR1, 0);
	handled = 0;
	turns = 0;
	over = false;
	sem_init(&taken, 0, 0);
	sem_init(&sides[0], 0, 1);
	sem_init(&sides[1], 0, 0);
	thread = start(take_turns, NULL);
	for (size_t i = 0; i < 2; i++) {
		burners[i] = start(burn, NULL);
		bouncers[i] = start(bounce, (void *)i);
	}
	for (int i = 1; i <= 300; i++) {
		CHECK_EQ(pthread_kill(thread, SIGUSR1), 0);
		sem_post(&taken);
		await(&turns, i);
		await(&handled, 2 * i - 1);
		usleep((useconds_t)i);
		CHECK_EQ(pthread_kill(thread, SIGUSR1), 0);
		await(&handled, 2 * i);
	}
	over = true;
	sem_post(&taken);
	sem_post(&sides[0]);
	sem_post(&sides[1]);
	join(thread);
	for (int i = 0; i < 2; i++) {
		join(burners[i]);
		join(bouncers[i]);
	}
}

static atomic_int calls_begun, interrupted, last_call;

/*
 * A repeated signal interrupts the sleep if the one before it ended the call at the
 * same time.
 */
static void sleep_on_host(void)
{
	struct timeval time = { 0, 2000 };

	while (select(0, NULL, NULL, NULL, &time) == -1)
		CHECK_EQ(errno, EINTR);
}

/* The thread is on its host, and leaves it to wait. */
static void *wait_again(void *arg)
{
	sem_t never;
	char byte;

	block(SIG_UNBLOCK, SIGUSR1);
	sem_init(&never, 0, 0);
	for (int i = 1; !last_call; i++) {
		sleep_on_host();
		calls_begun = i;
		if (i % 2)
			CHECK_EQ(sem_wait(&never), -1);
		else
			CHECK_EQ(read(fds[0], &byte, 1), -1);
		CHECK_EQ(errno, EINTR);
		interrupted = i;
	}
	return arg;
}

static void compute_us(long us)
{
	struct timespec begin, now;

	clock_gettime(CLOCK_MONOTONIC, &begin);
	do {
		clock_gettime(CLOCK_MONOTONIC, &now);
	} while ((now.tv_sec - begin.tv_sec) * 1000000 +
			 (now.tv_nsec - begin.tv_nsec) / 1000 < us);
}

/* Returns whether the first signal interrupts the call. */
static bool interrupt_call(int i)
{
	bool first = true;

	compute_us(100);
	CHECK_EQ(kill(getpid(), SIGUSR1), 0);
	compute_us(200);
	for (int n = 1; interrupted < i; n++) {
		usleep(1000);
		if (n % 20)
			continue;
		CHECK_EQ(kill(getpid(), SIGUSR1), 0);
		first = false;
	}
	return first;
}

/*
 * The thread has left its host, but can't wait while the carrier computes. Natively,
 * a handler that runs before the call doesn't interrupt the call, as often happens on
 * a busy machine. So another signal is sent then. In an earlier version all handlers
 * ran too late, so the rounds would never end.
 */
TEST_LIMIT(a_handler_on_the_way_to_a_wait_interrupts_it, 60)
{
	pthread_t thread;
	int first = 0;

	install(SIGUSR1, 0);
	CHECK_EQ(pipe(fds), 0);
	calls_begun = 0;
	interrupted = 0;
	block(SIG_BLOCK, SIGUSR1);
	thread = start(wait_again, NULL);
	for (int i = 1; !last_call; i++) {
		while (calls_begun < i)
			;
		if (i >= 100 && first >= 20)
			last_call = i;
		first += interrupt_call(i);
	}
	join(thread);
}

/* A signal never interrupts a call that needn't wait. */

#define CALLS_EACH	3000

static int sockets[2], file;
static pid_t child;

static void *make_calls(void *arg)
{
	siginfo_t info;
	char byte;

	for (int i = 0; i < MANY(CALLS_EACH); i++) {
		CHECK_EQ(write(fds[1], "x", 1), 1);
		CHECK_EQ(send(sockets[1], "x", 1, 0), 1);
		CHECK_EQ(read(fds[0], &byte, 1), 1);
		CHECK_EQ(recv(sockets[0], &byte, 1, 0), 1);
		CHECK_EQ(fsync(file), 0);
		CHECK_EQ(waitid(P_PID, (id_t)child, &info, WEXITED | WNOWAIT), 0);
		CHECK_EQ(info.si_pid, child);
	}
	over = true;
	return arg;
}

TEST_LIMIT(a_signal_does_not_interrupt_a_call_that_does_not_wait, 60)
{
	pthread_t thread;

	install(SIGUSR1, 0);
	CHECK_EQ(pipe(fds), 0);
	CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, sockets), 0);
	file = memfd_create("file", 0);
	CHECK(file >= 0);
	child = test_fork();
	if (!child)
		test_leave();
	CHECK_EQ(waitid(P_PID, (id_t)child, NULL, WEXITED | WNOWAIT), 0);
	thread = start(make_calls, NULL);
	while (!over) {
		CHECK_EQ(pthread_kill(thread, SIGUSR1), 0);
		/* Shorter than a call, and no call would ever end. */
		usleep(50 * test_slower());
	}
	join(thread);
	CHECK(handled > 0);
	test_reap(child);
}

/*
 * The handler makes the interrupted call ready. The signal arrived first, so the
 * call fails with EINTR. If the handler runs before the call begins, the call
 * succeeds, and the next round tries again.
 */

static int ready[2], set;
static sem_t semaphore;

static void make_ready(int signo)
{
	(void)signo;
	write(ready[1], "x", 1);
	sem_post(&semaphore);
}

static long ready_read(void)
{
	char byte;

	return read(ready[0], &byte, 1);
}

static long ready_recv(void)
{
	char byte;

	return recv(ready[0], &byte, 1, 0);
}

static long ready_poll_one(void)
{
	struct pollfd fd = { ready[0], POLLIN, 0 };

	return poll(&fd, 1, -1);
}

static long ready_poll_two(void)
{
	struct pollfd two[2] = { { ready[0], POLLIN, 0 }, { fds[0], POLLIN, 0 } };

	return poll(two, 2, 60000);
}

static long ready_select(void)
{
	fd_set in;

	FD_ZERO(&in);
	FD_SET(ready[0], &in);
	return select(ready[0] + 1, &in, NULL, NULL, NULL);
}

static long ready_epoll(void)
{
	struct epoll_event event = { .events = EPOLLIN | EPOLLONESHOT };

	CHECK_EQ(epoll_ctl(set, EPOLL_CTL_MOD, ready[0], &event), 0);
	return epoll_wait(set, &event, 1, -1);
}

static long ready_semaphore(void)
{
	return sem_wait(&semaphore);
}

static const struct {
	long (*wait)(void);
	bool socket;
} ready_waits[] = {
	{ ready_read, false },	{ ready_recv, true },	 { ready_poll_one, false },
	{ ready_poll_two, true }, { ready_select, false }, { ready_epoll, true },
	{ ready_semaphore, false },
};

static void *wait_for_handler(void *arg)
{
	long (*wait)(void) = *(long (*const *)(void))arg;
	long ret;

	stage = 1;
	ret = wait();
	return (void *)(intptr_t)(ret < 0 ? -errno : 1);
}

static long interrupt_once(size_t kind)
{
	struct epoll_event event = { 0 };
	pthread_t thread;
	void *result;

	if (ready_waits[kind].socket)
		CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, ready), 0);
	else
		CHECK_EQ(pipe(ready), 0);
	set = epoll_create1(0);
	CHECK_EQ(epoll_ctl(set, EPOLL_CTL_ADD, ready[0], &event), 0);
	CHECK_EQ(sem_init(&semaphore, 0, 0), 0);
	stage = 0;
	thread = start(wait_for_handler, (void *)&ready_waits[kind].wait);
	while (!stage)
		usleep(100);
	usleep(2000);
	CHECK_EQ(pthread_kill(thread, SIGUSR1), 0);
	CHECK_EQ(pthread_join(thread, &result), 0);
	CHECK_EQ(close(set) | close(ready[0]) | close(ready[1]), 0);
	return (long)(intptr_t)result;
}

TEST(a_handler_that_makes_its_own_call_ready_interrupts_it)
{
	struct sigaction action = { .sa_handler = make_ready };

	CHECK_EQ(sigaction(SIGUSR1, &action, NULL), 0);
	CHECK_EQ(pipe(fds), 0);
	for (size_t i = 0; i < sizeof(ready_waits) / sizeof(*ready_waits); i++) {
		long ret, rounds = 0;

		while ((ret = interrupt_once(i)) == 1 && rounds < 100)
			rounds++;
		CHECK_EQ(ret, -EINTR);
	}
}

/*
 * poll(2) may report a descriptor although the call waits: another thread took the
 * data, or, as here, the socket's error queue isn't empty. A signal has to end such
 * a wait, too. If the call continued to wait after the first signal, only a second
 * one would end it.
 */

static void open_socket_with_errors(void)
{
	struct sockaddr_in address = { .sin_family = AF_INET };
	socklen_t size = sizeof(address);
	const int on = 1, closed = socket(AF_INET, SOCK_DGRAM, 0);
	struct pollfd fd = { .events = POLLIN };
	int error;

	address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	CHECK_EQ(bind(closed, (void *)&address, size), 0);
	CHECK_EQ(getsockname(closed, (void *)&address, &size), 0);
	fd.fd = ready[0] = socket(AF_INET, SOCK_DGRAM, 0);
	CHECK_EQ(setsockopt(fd.fd, IPPROTO_IP, IP_RECVERR, &on, sizeof(on)), 0);
	CHECK_EQ(connect(fd.fd, (void *)&address, size), 0);
	CHECK_EQ(close(closed), 0);
	CHECK_EQ(send(fd.fd, "x", 1, 0), 1);
	CHECK_EQ(poll(&fd, 1, -1), 1);
	size = sizeof(error);
	CHECK_EQ(getsockopt(fd.fd, SOL_SOCKET, SO_ERROR, &error, &size), 0);
	CHECK_EQ(error, ECONNREFUSED);
	CHECK_EQ(poll(&fd, 1, 0), 1);
}

/*
 * Returns the number of signals that it takes to end the wait. A signal that arrives
 * before the wait doesn't end it.
 */
static unsigned int signals_needed(long (*wait)(void))
{
	struct timespec limit;
	unsigned int n = 0;
	pthread_t thread;
	void *result;

	stage = 0;
	thread = start(wait_for_handler, &wait);
	while (!stage)
		usleep(100);
	do {
		await_quiet();
		CHECK_EQ(pthread_kill(thread, SIGUSR1), 0);
		n++;
		limit = in_ms(CLOCK_REALTIME, 1000);
	} while (pthread_timedjoin_np(thread, &result, &limit));
	CHECK_EQ((intptr_t)result, -EINTR);
	return n;
}

TEST_LIMIT(a_signal_ends_a_wait_that_poll_does_not_see, 60)
{
	long (*const waits[])(void) = { ready_read, ready_recv };

	install(SIGUSR1, 0);
	open_socket_with_errors();
	for (int i = 0; i < 2; i++) {
		int rounds = 1;

		while (signals_needed(waits[i]) != 1)
			CHECK(rounds++ < 10);
	}
}

/*
 * The handler binds its thread to its host. Then poll(2) reports the interrupted
 * call as ready although it isn't: there is room for a small value, but not for this
 * one.
 */

static int counter;

static void bind_to_host(int signo)
{
	(void)signo;
	unshare(CLONE_FS);
	handled++;
}

static void *write_too_much(void *arg)
{
	const uint64_t value = UINT64_MAX - 1;

	CHECK_EQ(write(counter, &value, sizeof(value)), -1);
	CHECK_EQ(errno, EINTR);
	stage = 1;
	return arg;
}

TEST(a_call_that_only_looks_ready_is_interrupted)
{
	struct sigaction action = { .sa_handler = bind_to_host };
	pthread_t thread;

	CHECK_EQ(sigaction(SIGUSR1, &action, NULL), 0);
	counter = eventfd(2, 0);
	thread = start(write_too_much, NULL);
	signal_until(1, thread);
	join(thread);
	CHECK(handled >= 1);
}
