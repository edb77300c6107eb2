/* SPDX-License-Identifier: MIT */
/*
 * Connections that the event control block accepts on delivery. On a busy machine the
 * packets of the loopback device arrive some time after they are sent.
 */
#include "events.h"

#include <linux/sockios.h>

static const struct flexsc_ecb_inherit plain = {
	.want = POLLIN,
	.group = 2,
	.flags = SOCK_NONBLOCK | SOCK_CLOEXEC,
};

static int listener(struct sockaddr_in *address, int backlog)
{
	return listening_socket(address, SOCK_NONBLOCK, backlog);
}

static int connected(const struct sockaddr_in *address)
{
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	CHECK(fd >= 0);
	CHECK_EQ(connect(fd, (const struct sockaddr *)address,
			 sizeof(*address)), 0);
	return fd;
}

/* Waits until a connection is in the listener's backlog. */
static void await_connection(int listener)
{
	struct pollfd waits = { .fd = listener, .events = POLLIN };

	CHECK_EQ(poll(&waits, 1, -1), 1);
}

/* Waits until the other end has acknowledged all bytes. */
static void await_arrival(int client)
{
	int left = 1;

	while (CHECK_EQ(ioctl(client, SIOCOUTQ, &left), 0), left)
		sleep_ms(1);
}

ECB_TEST(a_connection_is_an_event)
{
	struct sockaddr_in address;
	struct flexsc_ecb_event event;
	int fd = listener(&address, 16), index, client;
	char byte;

	index = flexsc_ecb_autoaccept(ecb, fd, 1, &plain, NULL);
	CHECK(index >= 0);
	client = connected(&address);
	event = test_next(ecb, 1U << 1);
	CHECK_EQ(event.type, FLEXSC_EVT_IPACCEPT);
	CHECK_EQ(event.group, 1);
	CHECK(event.fd >= 0 && event.fd != fd);
	CHECK(event.event != (unsigned int)index);
	CHECK(fcntl(event.fd, F_GETFL) & O_NONBLOCK);
	CHECK(fcntl(event.fd, F_GETFD) & FD_CLOEXEC);
	test_none(ecb, ALL);
	/* The connection is watched, in another group than the listener. */
	test_write(client);
	event = test_next(ecb, 1U << 2);
	CHECK_EQ(event.type, FLEXSC_EVT_IOREADY);
	CHECK(event.ready & POLLIN);
	CHECK_EQ(read(event.fd, &byte, 1), 1);
	CHECK_EQ(flexsc_ecb_close(ecb, event.event), 0);
	CHECK_EQ(read(client, &byte, 1), 0);
}

ECB_TEST(a_connection_comes_with_its_state)
{
	struct sockaddr_in address;
	int fd = listener(&address, 16), client = connected(&address);

	test_write(client);
	await_arrival(client);
	CHECK(flexsc_ecb_autoaccept(ecb, fd, 1, &plain, NULL) >= 0);
	CHECK(test_next(ecb, 1U << 1).ready & POLLIN);
	test_none(ecb, ALL);
}

QUIET_ECB_TEST(a_connection_that_may_not_be_delivered_is_not_accepted)
{
	struct sockaddr_in address;
	struct flexsc_ecb_event event;
	int fd = listener(&address, 16), client;
	struct pollfd waits = { .fd = fd, .events = POLLIN };

	CHECK(flexsc_ecb_autoaccept(ecb, fd, 1, &plain, NULL) >= 0);
	client = connected(&address);
	/* The connection waits in the listener's backlog. */
	await_connection(fd);
	test_none(ecb, ALL);
	CHECK_EQ(poll(&waits, 1, 0), 1);
	CHECK_EQ(flexsc_ecb_deliver(ecb, 1U << 1), 0);
	event = test_next(ecb, ALL);
	CHECK_EQ(event.type, FLEXSC_EVT_IPACCEPT);
	CHECK_EQ(poll(&waits, 1, 0), 0);
	/* The connection's group isn't delivered yet. */
	test_write(client);
	test_none(ecb, ALL);
	CHECK_EQ(flexsc_ecb_deliver(ecb, 1U << 2), 0);
	/* A wait for all groups would let the listener accept. */
	CHECK(test_next(ecb, 1U << 2).ready & POLLIN);
	/* This connection isn't accepted any more. */
	connected(&address);
	await_connection(fd);
	test_none(ecb, ALL);
	CHECK_EQ(poll(&waits, 1, 0), 1);
	CHECK_EQ(flexsc_ecb_deliver(ecb, 1U << 1), 0);
	CHECK_EQ(test_next(ecb, ALL).type, FLEXSC_EVT_IPACCEPT);
}

/*
 * A child that makes this many connections, one after the other, and sends each
 * one's number.
 */
static int connecting_child(const struct sockaddr_in *address, uint32_t count)
{
	int pid = test_fork();

	if (pid)
		return pid;
	for (uint32_t i = 0; i < count; i++) {
		int fd = connected(address);
		char byte;

		CHECK_EQ(write(fd, &i, sizeof(i)), sizeof(i));
		/* Waits until the other side closes. */
		CHECK_EQ(read(fd, &byte, 1), 0);
		close(fd);
	}
	test_leave();
}

ECB_TEST_LIMIT(few_slots_serve_many_connections, 60, .events = 8)
{
	enum { CLIENTS = 12, EACH = 40 };
	unsigned int overflows = 0, served = 0;
	struct sockaddr_in address;
	int fd = listener(&address, 128), pids[CLIENTS];

	CHECK(flexsc_ecb_autoaccept(ecb, fd, 1, &plain, NULL) >= 0);
	for (int i = 0; i < CLIENTS; i++)
		pids[i] = connecting_child(&address, EACH);
	/* All connections have been made, and some have found no slot. */
	while (!flexsc_ecb_control(ecb)->overflows) {
		sleep_ms(1);
		CHECK_EQ(flexsc_ecb_flush(ecb), 0);
	}
	while (served < CLIENTS * EACH) {
		struct flexsc_ecb_event event = test_next(ecb, ALL);
		uint32_t number;

		if (event.type == FLEXSC_EVT_OVERFLOW) {
			CHECK_EQ(event.fd, fd);
			CHECK(event.error < 0);
			overflows++;
			continue;
		}
		if (read(event.fd, &number, sizeof(number)) != sizeof(number))
			continue;
		CHECK_EQ(flexsc_ecb_close(ecb, event.event), 0);
		served++;
	}
	CHECK(overflows);
	for (int i = 0; i < CLIENTS; i++)
		test_reap(pids[i]);
	test_none(ecb, ALL);
}

/* Processor time of the thread. */
static uint64_t thread_ns(void)
{
	struct timespec time;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
	return (uint64_t)time.tv_sec * SECOND + (uint64_t)time.tv_nsec;
}

/* As test_next(), for an owner that computes instead of waiting. */
static struct flexsc_ecb_event computed(struct flexsc_ecb *ecb)
{
	struct flexsc_ecb_event event;

	while (!flexsc_ecb_next(ecb, ALL, &event))
		now_ns();
	return event;
}

ECB_TEST(without_descriptors_connections_wait)
{
	struct rlimit limit, least;
	struct sockaddr_in address;
	struct flexsc_ecb_event event;
	int fd = listener(&address, 16), clients[3];
	uint64_t used;

	for (int i = 0; i < 3; i++)
		clients[i] = connected(&address);
	CHECK_EQ(getrlimit(RLIMIT_NOFILE, &limit), 0);
	least = limit;
	least.rlim_cur = (rlim_t)clients[2] + 1;
	CHECK_EQ(setrlimit(RLIMIT_NOFILE, &least), 0);
	CHECK(flexsc_ecb_autoaccept(ecb, fd, 1, &plain, NULL) >= 0);
	event = test_next(ecb, ALL);
	CHECK_EQ(event.type, FLEXSC_EVT_OVERFLOW);
	CHECK_EQ(event.fd, fd);
	CHECK_EQ(event.error, -EMFILE);
	/* The shortage is reported once. */
	test_none(ecb, ALL);
	used = thread_ns();
	CHECK_EQ(flexsc_ecb_wait(ecb, ALL, 300 * MS), 0);
	/* The owner sleeps meanwhile. */
	if (!SANITIZED)
		CHECK(thread_ns() - used < 100 * MS);
	CHECK_EQ(setrlimit(RLIMIT_NOFILE, &limit), 0);
	CHECK_EQ(flexsc_ecb_flush(ecb), 0);
	for (int i = 0; i < 3; i++)
		CHECK_EQ(computed(ecb).type, FLEXSC_EVT_IPACCEPT);
	test_none(ecb, ALL);
}

static void *allow_later(void *limit)
{
	await_wait(ecb);
	sleep_ms(100);
	CHECK_EQ(setrlimit(RLIMIT_NOFILE, limit), 0);
	return NULL;
}

/* Another thread makes room for a connection, and the sleeping owner isn't notified. */
ECB_TEST(a_sleeping_owner_checks_for_descriptors)
{
	struct sockaddr_in address;
	struct rlimit limit, least;
	pthread_t thread;
	int fd = listener(&address, 16), client = connected(&address);

	CHECK_EQ(getrlimit(RLIMIT_NOFILE, &limit), 0);
	least = limit;
	least.rlim_cur = (rlim_t)client + 1;
	CHECK_EQ(setrlimit(RLIMIT_NOFILE, &least), 0);
	CHECK(flexsc_ecb_autoaccept(ecb, fd, 1, &plain, NULL) >= 0);
	CHECK_EQ(test_next(ecb, ALL).type, FLEXSC_EVT_OVERFLOW);
	test_none(ecb, ALL);
	thread = test_thread(allow_later, &limit);
	CHECK_EQ(flexsc_ecb_wait(ecb, ALL, FLEXSC_FOREVER), 1);
	CHECK_EQ(test_next(ecb, ALL).type, FLEXSC_EVT_IPACCEPT);
	pthread_join(thread, NULL);
}

static volatile unsigned int accepted, overflowed, newest;

static void note_connections(struct flexsc_ecb *ecb, void *arg)
{
	struct flexsc_ecb_event event;

	while (flexsc_ecb_next(ecb, ALL, &event)) {
		overflowed += event.type == FLEXSC_EVT_OVERFLOW;
		if (event.type != FLEXSC_EVT_IPACCEPT)
			continue;
		newest = event.event;
		accepted++;
	}
}

QUIET_ECB_TEST(a_slot_is_free_when_its_last_event_is_taken, .events = 2)
{
	struct sockaddr_in address;
	int fd = listener(&address, 16), client;

	CHECK_EQ(flexsc_ecb_handler(ecb, note_connections, NULL), 0);
	CHECK(flexsc_ecb_autoaccept(ecb, fd, 1, &plain, NULL) >= 0);
	CHECK_EQ(flexsc_ecb_notify(ecb, ALL), 0);
	client = connected(&address);
	compute_until(&accepted, 1);
	connected(&address);
	compute_until(&overflowed, 1);
	/* The first connection is closed while an event of it is on a list. */
	flexsc_ecb_critical_begin(ecb);
	test_write(client);
	sleep_ms(10);
	CHECK_EQ(flexsc_ecb_flush(ecb), 0);
	CHECK_EQ(flexsc_ecb_close(ecb, newest), 0);
	flexsc_ecb_critical_end(ecb);
	compute_until(&accepted, 2);
}

ECB_TEST_LIMIT(connections_are_accepted_while_the_owner_computes, 60)
{
	enum { MANY_MORE = 64 };	/* more than the backlog holds */
	struct sockaddr_in address;
	int fd = listener(&address, 4), pid, status;

	CHECK(flexsc_ecb_autoaccept(ecb, fd, 1, &plain, NULL) >= 0);
	pid = test_fork();
	if (!pid) {
		for (int i = 0; i < MANY_MORE; i++) {
			connected(&address);
			/* An owner without a processor can't accept. */
			sleep_ms(2);
		}
		test_leave();
	}
	/* No call of the library: the loop only checks whether the child has ended. */
	do {
		test_compute(1000000);
	} while (!waitpid(pid, &status, WNOHANG));
	CHECK_EQ(status, 0);
	for (int i = 0; i < MANY_MORE; i++)
		CHECK_EQ(test_next(ecb, 1U << 1).type, FLEXSC_EVT_IPACCEPT);
}

ECB_TEST(a_batched_ecb_accepts_in_waits, .flags = FLEXSC_ECB_BATCHED)
{
	struct sockaddr_in address;
	int fd = listener(&address, 16);
	struct pollfd waits = { .fd = fd, .events = POLLIN };
	struct flexsc_ecb_event event;

	CHECK(flexsc_ecb_autoaccept(ecb, fd, 1, &plain, NULL) >= 0);
	connected(&address);
	await_connection(fd);
	sleep_ms(20);
	CHECK_EQ(poll(&waits, 1, 0), 1);
	CHECK_EQ(flexsc_ecb_next(ecb, ALL, &event), 0);
	CHECK_EQ(flexsc_ecb_wait(ecb, ALL, SECOND), 1);
	CHECK_EQ(flexsc_ecb_next(ecb, ALL, &event), 1);
	CHECK_EQ(flexsc_ecb_notify(ecb, 1), -EINVAL);
}

struct listening {
	struct flexsc_ecb_inherit inherit;
	int fd;
	volatile unsigned int times;
};

static void listen_and_forget(struct flexsc_ecb *ecb, void *arg)
{
	struct listening *listening = arg;
	struct flexsc_ecb_event event;
	int index = flexsc_ecb_autoaccept(ecb, listening->fd, 1,
					  &listening->inherit, NULL);

	while (flexsc_ecb_next(ecb, ALL, &event))
		;
	CHECK(index >= 0);
	CHECK_EQ(flexsc_ecb_forget(ecb, (unsigned int)index), 0);
	listening->times++;
}

/* Like any signal handler, it may interrupt malloc(). */
TEST(a_handler_makes_and_forgets_listeners)
{
	struct listening listening = { .inherit = plain };
	struct sockaddr_in address;
	void *blocks[64] = { 0 };

	ecb = NEW_ECB(.events = 0);
	listening.fd = listener(&address, 16);
	CHECK_EQ(flexsc_ecb_handler(ecb, listen_and_forget, &listening), 0);
	CHECK(flexsc_ecb_timer(ecb, 1, 50000, 0, NULL) >= 0);
	CHECK_EQ(flexsc_ecb_notify(ecb, ALL), 0);
	while (listening.times < 2000)
		for (size_t i = 0; i < 64; i++) {
			free(blocks[i]);
			blocks[i] = malloc(1000 + i * 1500);
		}
	CHECK_EQ(flexsc_ecb_destroy(ecb), 0);
	for (size_t i = 0; i < 64; i++)
		free(blocks[i]);
}

ECB_TEST(bad_listeners_are_refused)
{
	struct flexsc_ecb_inherit bad = plain;
	struct sockaddr_in address;
	int fd = listener(&address, 16), fds[2];

	CHECK_EQ(flexsc_ecb_autoaccept(ecb, fd, 1, NULL, NULL), -EINVAL);
	bad.flags = 1;
	CHECK_EQ(flexsc_ecb_autoaccept(ecb, fd, 1, &bad, NULL), -EINVAL);
	CHECK_EQ(flexsc_ecb_autoaccept(ecb, fd, 40, &plain, NULL), -EINVAL);
	CHECK_EQ(flexsc_ecb_autoaccept(ecb, 987, 1, &plain, NULL), -EBADF);
	test_pair(fds);
	CHECK(flexsc_ecb_autoaccept(ecb, fds[0], 1, &plain, NULL) < 0);
	fcntl(fd, F_SETFL, 0);
	CHECK_EQ(flexsc_ecb_autoaccept(ecb, fd, 1, &plain, NULL), -EINVAL);
}

/* Ends with connections that have arrived, and that the program hasn't received. */
static void end_with_connections(uint32_t flags, int taken)
{
	struct sockaddr_in address;
	int fd = listener(&address, 16), clients[8];
	unsigned int fds;

	ecb = NEW_ECB(.flags = flags);
	fds = count_fds();
	CHECK_EQ(flexsc_ecb_deliver(ecb, ALL), 0);
	CHECK(flexsc_ecb_autoaccept(ecb, fd, 1, &plain, NULL) >= 0);
	for (int i = 0; i < 8; i++)
		clients[i] = connected(&address);
	for (int i = 0; i < taken; i++)
		close(test_next(ecb, 1U << 1).fd);
	CHECK_EQ(flexsc_ecb_destroy(ecb), 0);
	for (int i = 0; i < 8; i++)
		close(clients[i]);
	/* Fewer descriptors: those of the ECB are closed. */
	CHECK(count_fds() < fds);
	close(fd);
}

TEST(unreported_connections_are_closed)
{
	unsigned int fds;

	CHECK_EQ(flexsc_ecb_destroy(test_ecb()), 0);
	fds = count_fds();
	end_with_connections(0, 0);
	end_with_connections(0, 3);
	if (getenv("FLEXSC_ECB") && !strcmp(getenv("FLEXSC_ECB"), "uring"))
		end_with_connections(FLEXSC_ECB_BATCHED, 3);
	CHECK(falls_to(count_fds, fds));
}

ECB_TEST(a_listener_that_stops_accepting_reports_it)
{
	struct sockaddr_in address;
	struct flexsc_ecb_event event;
	int fd = listener(&address, 16), index;

	index = flexsc_ecb_autoaccept(ecb, fd, 1, &plain, NULL);
	connected(&address);
	CHECK_EQ(test_next(ecb, ALL).type, FLEXSC_EVT_IPACCEPT);
	CHECK_EQ(shutdown(fd, SHUT_RDWR), 0);
	event = test_next(ecb, ALL);
	CHECK_EQ(event.type, FLEXSC_EVT_OVERFLOW);
	CHECK_EQ(event.event, index);
	CHECK_EQ(event.error, -EINVAL);
	test_none(ecb, ALL);
	CHECK_EQ(flexsc_ecb_forget(ecb, (unsigned int)index), 0);
}

ECB_TEST(a_blocking_listener_is_left_to_the_program)
{
	struct sockaddr_in address;
	struct flexsc_ecb_event event;
	int fd = listener(&address, 16), index;

	if (!test_is_kmod(ecb))
		SKIP("io_uring waits without blocking");
	index = flexsc_ecb_autoaccept(ecb, fd, 1, &plain, NULL);
	fcntl(fd, F_SETFL, 0);
	connected(&address);
	event = test_next(ecb, ALL);
	CHECK_EQ(event.type, FLEXSC_EVT_OVERFLOW);
	CHECK_EQ(event.event, index);
	CHECK_EQ(event.error, -EPERM);
	CHECK(accept4(fd, NULL, NULL, SOCK_NONBLOCK) >= 0);
	fcntl(fd, F_SETFL, O_NONBLOCK);
	connected(&address);
	CHECK_EQ(test_next(ecb, ALL).type, FLEXSC_EVT_IPACCEPT);
}

static void on_urgent(int signo)
{
}

TEST(a_child_that_destroys_its_copy_frees_all)
{
	const struct sigaction action = { .sa_handler = on_urgent };
	unsigned int maps = 0;
	struct sigaction now;
	struct sockaddr_in address;
	int fd = listener(&address, 16), pid;

	CHECK_EQ(sigaction(SIGURG, &action, NULL), 0);
	/* The first one makes the allocator keep memory. */
	CHECK_EQ(flexsc_ecb_destroy(test_ecb()), 0);
	maps = count_maps();
	ecb = test_ecb();
	CHECK(flexsc_ecb_autoaccept(ecb, fd, 1, &plain, NULL) >= 0);
	pid = test_fork();
	if (!pid) {
		CHECK_EQ(sigaction(SIGURG, NULL, &now), 0);
		CHECK(now.sa_handler == on_urgent);
		CHECK_EQ(flexsc_ecb_destroy(ecb), 0);
		if (!SANITIZED)
			CHECK(count_maps() <= maps + 1);
		ecb = test_ecb();
		CHECK_EQ(flexsc_ecb_destroy(ecb), 0);
		CHECK_EQ(sigaction(SIGURG, NULL, &now), 0);
		CHECK(now.sa_handler == on_urgent);
		test_leave();
	}
	test_reap(pid);
	/* The parent's copy still works. */
	connected(&address);
	CHECK_EQ(test_next(ecb, ALL).type, FLEXSC_EVT_IPACCEPT);
	CHECK_EQ(flexsc_ecb_destroy(ecb), 0);
}

/* More connections than slots, so that some wait in the ECB. */
TEST(a_child_has_no_connections_of_its_parents)
{
	enum { CLIENTS = 12 };
	struct sockaddr_in address;
	int fd = listener(&address, CLIENTS), clients[CLIENTS], p[2], pid;
	char byte;

	ecb = NEW_ECB(.events = 8);
	if (test_is_kmod(ecb))
		SKIP("only for the backend uring");
	CHECK_EQ(pipe2(p, O_CLOEXEC), 0);
	for (int i = 0; i < CLIENTS; i++)
		clients[i] = connected(&address);
	CHECK_EQ(flexsc_ecb_deliver(ecb, ALL), 0);
	CHECK(flexsc_ecb_autoaccept(ecb, fd, 1, &plain, NULL) >= 0);
	pid = test_fork();
	if (!pid) {
		close(fd);
		CHECK_EQ(read(p[0], &byte, 1), 1);
		test_leave();
	}
	CHECK_EQ(flexsc_ecb_destroy(ecb), 0);
	close(fd);
	/* The child still runs, and the peers see the end. */
	for (int i = 0; i < CLIENTS; i++)
		CHECK(read(clients[i], &byte, 1) <= 0);
	CHECK_EQ(write(p[1], "x", 1), 1);
	test_reap(pid);
}

ECB_TEST(a_forgotten_listener_listens)
{
	struct sockaddr_in address;
	int fd = listener(&address, 16), index;

	index = flexsc_ecb_autoaccept(ecb, fd, 1, &plain, NULL);
	CHECK_EQ(flexsc_ecb_forget(ecb, (unsigned int)index), 0);
	connected(&address);
	await_connection(fd);
	test_none(ecb, ALL);
	CHECK(accept4(fd, NULL, NULL, SOCK_NONBLOCK) >= 0);
	index = flexsc_ecb_autoaccept(ecb, fd, 1, &plain, NULL);
	connected(&address);
	CHECK_EQ(test_next(ecb, ALL).type, FLEXSC_EVT_IPACCEPT);
	CHECK_EQ(flexsc_ecb_close(ecb, (unsigned int)index), 0);
	CHECK_EQ(fcntl(fd, F_GETFD), -1);
}
