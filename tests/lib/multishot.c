/* SPDX-License-Identifier: MIT */
/*
 * Multishot calls: no completion is lost, reported twice, or reported after the last
 * one, with every engine and for every way to end.
 */
#include "tests/harness/harness.h"

#define MOST	512U

/* A multishot call and its completions. It exists until the test ends. */
struct shots {
	struct flexsc_cb cb;
	struct shots *next;
	struct flexsc_buffers *buffers;
	unsigned int n;		/* completions */
	unsigned int good;	/* of these, with a descriptor or with bytes */
	unsigned int ended;	/* 1: the last completion has come */
	int64_t last;		/* its result */
	int fds[MOST];		/* accepted */
	char bytes[1 << 16];	/* received */
	size_t received;
	bool keep;		/* don't return buffers */
	void *kept[MOST];
	unsigned int n_kept;
	unsigned int cancel_at;	/* cancel in the callback of this completion */
	struct flexsc_loop *loop;
};

static void take_bytes(struct shots *shots)
{
	void *data = flexsc_buffers_data(shots->buffers, &shots->cb);
	size_t n = (size_t)shots->cb.ret;

	CHECK(data);
	CHECK(shots->received + n <= sizeof(shots->bytes));
	memcpy(shots->bytes + shots->received, data, n);
	shots->received += n;
	if (shots->keep)
		shots->kept[shots->n_kept++] = data;
	else
		CHECK_EQ(flexsc_buffers_return(shots->buffers, data), 0);
}

static void shot(struct flexsc_cb *cb)
{
	struct shots *shots = (struct shots *)cb;

	CHECK_EQ(shots->ended, 0);
	shots->n++;
	if (shots->buffers && cb->ret > 0) {
		take_bytes(shots);
		shots->good++;
	} else if (!shots->buffers && cb->ret >= 0) {
		CHECK(shots->good < MOST);
		shots->fds[shots->good++] = (int)cb->ret;
	} else {
		CHECK(!flexsc_cb_more(cb));
	}
	if (!flexsc_cb_more(cb)) {
		shots->last = cb->ret;
		shots->ended = 1;
	} else if (shots->n == shots->cancel_at) {
		CHECK_EQ(flexsc_loop_cancel(shots->loop, cb), 0);
	}
}

static struct shots *all;

static struct shots *new_shots(struct flexsc_loop *loop,
			       struct flexsc_buffers *buffers)
{
	struct shots *shots = calloc(1, sizeof(*shots));

	CHECK(shots);
	shots->cb.callback = shot;
	shots->buffers = buffers;
	shots->loop = loop;
	shots->next = all;
	all = shots;
	return shots;
}

static void close_accepted(const struct shots *shots)
{
	for (unsigned int i = 0; i < shots->good; i++)
		CHECK_EQ(close(shots->fds[i]), 0);
}

static void receive(struct shots *shots, int fd)
{
	shots->ended = 0;
	CHECK_EQ(flexsc_loop_recv_multishot(shots->loop, &shots->cb, fd,
					    shots->buffers), 0);
}

static void accept_all(struct shots *shots, int fd, int flags)
{
	shots->ended = 0;
	CHECK_EQ(flexsc_loop_accept_multishot(shots->loop, &shots->cb, fd,
					      flags), 0);
}

static void await_good(struct shots *shots, unsigned int n)
{
	CHECK(run_until(shots->loop, &shots->good, n, 10000));
}

static void await_end(struct shots *shots, int64_t ret)
{
	CHECK(run_until(shots->loop, &shots->ended, 1, 10000));
	CHECK_EQ(shots->last, ret);
}

static void await_cancelled(struct shots *shots)
{
	CHECK_EQ(flexsc_loop_cancel(shots->loop, &shots->cb), 0);
	CHECK(run_until(shots->loop, &shots->ended, 1, 10000));
	CHECK(is_cancelled(shots->last));
	CHECK_EQ(flexsc_loop_cancel(shots->loop, &shots->cb), -ENOENT);
}

static int listener(struct sockaddr_in *address, int flags)
{
	return listening_socket(address, flags, 1024);
}

static int connected(const struct sockaddr_in *address)
{
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	CHECK_EQ(connect(fd, (const struct sockaddr *)address,
			 sizeof(*address)), 0);
	return fd;
}

static void pair(int p[2], int flags)
{
	CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | flags, 0, p),
		 0);
}

static struct flexsc_buffers *new_buffers(struct flexsc_loop *loop,
					  unsigned int count, size_t size)
{
	struct flexsc_buffers *buffers;

	CHECK_EQ(flexsc_buffers_create(loop, &buffers, count, size), 0);
	return buffers;
}

static void send_all(int fd, const char *bytes, size_t n)
{
	CHECK_EQ(send(fd, bytes, n, 0), (ssize_t)n);
}

/* Accepts. */

static void accepts(int listener_flags, int flags)
{
	struct flexsc_loop *loop = test_loop();
	struct shots *shots = new_shots(loop, NULL);
	struct sockaddr_in address;
	int fd = listener(&address, listener_flags);
	int peers[40];

	accept_all(shots, fd, flags);
	run_for(loop, 5);
	CHECK_EQ(shots->n, 0);
	for (unsigned int i = 0; i < 40; i++) {
		peers[i] = connected(&address);
		if (i % 4 == 0)
			await_good(shots, i + 1);
	}
	await_good(shots, 40);
	for (unsigned int i = 0; i < 40; i++) {
		int got = fcntl(shots->fds[i], F_GETFL);

		CHECK_EQ(!!(got & O_NONBLOCK), !!(flags & SOCK_NONBLOCK));
		CHECK_EQ(fcntl(shots->fds[i], F_GETFD),
			 flags & SOCK_CLOEXEC ? FD_CLOEXEC : 0);
		send_all(peers[i], "x", 1);
		if (!(flags & SOCK_NONBLOCK))
			CHECK_EQ(DO(loop, SYS_read, shots->fds[i],
				    shots->bytes, 10), 1);
		close(peers[i]);
	}
	CHECK_EQ(shots->ended, 0);
	await_cancelled(shots);
	CHECK_EQ(shots->good, 40);
	CHECK_EQ(flexsc_loop_run(loop), 0);
	CHECK_EQ(flexsc_loop_destroy(loop), 0);
	close(fd);
}

TEST(all_connections_are_accepted)
{
	NEEDS_WAITING_ENGINE();
	accepts(0, SOCK_CLOEXEC);
	accepts(0, SOCK_NONBLOCK);
}

TEST(a_nonblocking_listener_waits_as_well)
{
	NEEDS_WAITING_ENGINE();
	accepts(SOCK_NONBLOCK, 0);
}

WAITING_TEST(an_error_of_the_listener_ends_a_call)
{
	struct shots *shots = new_shots(loop, NULL);
	int p[2];

	accept_all(shots, 1000, 0);
	await_end(shots, -EBADF);
	pair(p, 0);
	accept_all(shots, p[0], 0);
	await_end(shots, -EINVAL);
	CHECK_EQ(pipe(p), 0);
	accept_all(shots, p[0], 0);
	await_end(shots, -ENOTSOCK);
	CHECK_EQ(flexsc_loop_accept_multishot(loop, &shots->cb, p[0], 1),
		 -EINVAL);
	CHECK_EQ(flexsc_loop_accept_multishot(loop, NULL, p[0], 0), -EINVAL);
	CHECK_EQ(flexsc_loop_accept_multishot(NULL, &shots->cb, p[0], 0),
		 -ENXIO);
}

/* The limit on descriptors at the time of the post applies. */
WAITING_TEST(too_many_descriptors_end_a_call_and_no_connection_is_lost)
{
	struct shots *shots = new_shots(loop, NULL);
	struct sockaddr_in address;
	int fd = listener(&address, 0), peers[8];
	struct rlimit old, few;

	/* This creates the descriptors that the library keeps open. */
	accept_all(shots, fd, 0);
	connected(&address);
	await_good(shots, 1);
	await_cancelled(shots);
	for (unsigned int i = 0; i < 8; i++)
		peers[i] = socket(AF_INET, SOCK_STREAM, 0);
	CHECK_EQ(getrlimit(RLIMIT_NOFILE, &old), 0);
	few = old;
	few.rlim_cur = (rlim_t)peers[7] + 3;
	CHECK_EQ(setrlimit(RLIMIT_NOFILE, &few), 0);
	accept_all(shots, fd, 0);
	for (unsigned int i = 0; i < 8; i++)
		CHECK_EQ(connect(peers[i], (struct sockaddr *)&address,
				 sizeof(address)), 0);
	await_end(shots, -EMFILE);
	CHECK_EQ(setrlimit(RLIMIT_NOFILE, &old), 0);
	accept_all(shots, fd, 0);
	await_good(shots, 9);
	await_cancelled(shots);
}

WAITING_TEST(a_call_is_cancelled_from_its_own_callback)
{
	struct shots *shots = new_shots(loop, NULL);
	struct sockaddr_in address;
	int fd = listener(&address, 0);

	shots->cancel_at = 3;
	accept_all(shots, fd, 0);
	for (unsigned int i = 0; i < 3; i++)
		connected(&address);
	CHECK(run_until(loop, &shots->ended, 1, 10000));
	CHECK(is_cancelled(shots->last) || shots->good > 3);
}

/* Receives. */

static void receives(unsigned int count, size_t size, int p[2])
{
	struct flexsc_loop *loop = test_loop();
	struct shots *shots = new_shots(loop, new_buffers(loop, count, size));
	char bytes[20000];
	size_t sent = 0, n;

	for (size_t i = 0; i < sizeof(bytes); i++)
		bytes[i] = (char)test_random();
	receive(shots, p[0]);
	run_for(loop, 5);
	CHECK_EQ(shots->n, 0);
	while (sent < sizeof(bytes)) {
		n = 1 + test_random() % (2 * size);
		if (n > sizeof(bytes) - sent)
			n = sizeof(bytes) - sent;
		send_all(p[1], bytes + sent, n);
		sent += n;
		if (test_random() % 2)
			while (shots->received < sent && !shots->ended)
				run_for(loop, 1);
		/* There were fewer buffers than arriving data needed at once. */
		if (shots->ended) {
			CHECK_EQ(shots->last, -ENOBUFS);
			receive(shots, p[0]);
		}
	}
	close(p[1]);
	while (!shots->ended || shots->last == -ENOBUFS) {
		if (shots->ended)
			receive(shots, p[0]);
		run_for(loop, 1);
	}
	CHECK_EQ(shots->last, 0);
	CHECK_EQ(shots->received, sizeof(bytes));
	CHECK(!memcmp(shots->bytes, bytes, sizeof(bytes)));
	close(p[0]);
	CHECK_EQ(flexsc_loop_destroy(loop), 0);
}

TEST(a_whole_stream_is_received)
{
	int p[2];

	NEEDS_WAITING_ENGINE();
	pair(p, 0);
	receives(64, 128, p);
	pair(p, 0);
	receives(4, 4096, p);
	pair(p, 0);
	receives(1, 64, p);
}

TEST(a_nonblocking_socket_waits_as_well)
{
	int p[2];

	NEEDS_WAITING_ENGINE();
	pair(p, SOCK_NONBLOCK);
	receives(16, 100, p);
}

TEST(a_time_limit_ends_nothing)
{
	struct timeval soon = { .tv_usec = 10000 };
	int p[2];

	NEEDS_WAITING_ENGINE();
	pair(p, 0);
	CHECK_EQ(setsockopt(p[0], SOL_SOCKET, SO_RCVTIMEO, &soon, sizeof(soon)),
		 0);
	receives(16, 100, p);
}

WAITING_TEST(datagrams_keep_their_limits)
{
	struct shots *shots = new_shots(loop, new_buffers(loop, 8, 10));
	int p[2];

	CHECK_EQ(socketpair(AF_UNIX, SOCK_DGRAM, 0, p), 0);
	receive(shots, p[0]);
	send_all(p[1], "one", 3);
	send_all(p[1], "and another one", 15);
	await_good(shots, 2);
	CHECK_EQ(shots->received, 13);
	CHECK(!memcmp(shots->bytes, "oneand anothe", 13));
	send_all(p[1], "", 0);
	await_end(shots, 0);
	receive(shots, p[0]);
	send_all(p[1], "more", 4);
	await_good(shots, 3);
	await_cancelled(shots);
}

WAITING_TEST(without_a_buffer_a_call_ends_and_nothing_is_lost)
{
	struct shots *shots = new_shots(loop, new_buffers(loop, 2, 4));
	int p[2];

	pair(p, 0);
	shots->keep = true;
	receive(shots, p[0]);
	send_all(p[1], "abcdefghijkl", 12);
	await_end(shots, -ENOBUFS);
	CHECK_EQ(shots->received, 8);
	receive(shots, p[0]);
	await_end(shots, -ENOBUFS);
	CHECK_EQ(flexsc_buffers_return(shots->buffers, shots->kept[1]), 0);
	receive(shots, p[0]);
	await_good(shots, 3);
	CHECK_EQ(shots->received, 12);
	CHECK(!memcmp(shots->bytes, "abcdefghijkl", 12));
	if (!shots->ended)
		await_cancelled(shots);
}

WAITING_TEST(idle_sockets_take_no_buffers)
{
	struct flexsc_buffers *buffers = new_buffers(loop, 2, 16);
	struct shots *shots[64];
	int p[64][2];

	for (unsigned int i = 0; i < 64; i++) {
		pair(p[i], 0);
		shots[i] = new_shots(loop, buffers);
		receive(shots[i], p[i][0]);
	}
	for (unsigned int turn = 1; turn <= 3; turn++)
		for (unsigned int i = 0; i < 64; i++) {
			send_all(p[i][1], "hello", 5);
			await_good(shots[i], turn);
		}
	CHECK_EQ(flexsc_buffers_destroy(buffers), -EBUSY);
	for (unsigned int i = 0; i < 64; i++) {
		CHECK_EQ(shots[i]->received, 15);
		await_cancelled(shots[i]);
	}
	CHECK_EQ(flexsc_buffers_destroy(buffers), 0);
}

TEST(bad_buffers_are_refused)
{
	struct flexsc_loop *loop = test_loop(), *other = test_loop();
	struct flexsc_buffers *buffers = new_buffers(loop, 4, 16), *none;
	struct shots *shots = new_shots(loop, buffers);
	int p[2];

	NEEDS_WAITING_ENGINE();
	pair(p, 0);
	CHECK_EQ(flexsc_buffers_create(loop, &none, 0, 16), -EINVAL);
	CHECK_EQ(flexsc_buffers_create(loop, &none, 3, 16), -EINVAL);
	CHECK_EQ(flexsc_buffers_create(loop, &none, 65536, 16), -EINVAL);
	CHECK_EQ(flexsc_buffers_create(loop, &none, 4, 0), -EINVAL);
	CHECK_EQ(flexsc_buffers_create(loop, NULL, 4, 16), -EINVAL);
	CHECK_EQ(flexsc_buffers_create(NULL, &none, 4, 16), -ENXIO);
	CHECK_EQ(flexsc_buffers_destroy(NULL), -EINVAL);
	CHECK_EQ(flexsc_loop_recv_multishot(other, &shots->cb, p[0], buffers),
		 -EINVAL);
	CHECK_EQ(flexsc_loop_recv_multishot(loop, &shots->cb, p[0], NULL),
		 -EINVAL);
	shots->keep = true;
	receive(shots, p[0]);
	send_all(p[1], "abc", 3);
	await_good(shots, 1);
	CHECK_EQ(flexsc_buffers_return(buffers, (char *)shots->kept[0] + 1),
		 -EINVAL);
	CHECK_EQ(flexsc_buffers_return(buffers, shots), -EINVAL);
	CHECK_EQ(flexsc_buffers_return(buffers, shots->kept[0]), 0);
	CHECK_EQ(flexsc_buffers_return(buffers, shots->kept[0]), -EINVAL);
	CHECK_EQ(flexsc_buffers_return(NULL, shots->kept[0]), -EINVAL);
	await_cancelled(shots);
	CHECK(!flexsc_buffers_data(buffers, &shots->cb));
	CHECK_EQ(flexsc_loop_destroy(other), 0);
	CHECK_EQ(flexsc_loop_destroy(loop), 0);
}

/* More calls than the pool's 64 threads. */
WAITING_TEST(more_calls_are_idle_than_there_are_threads)
{
	struct flexsc_buffers *buffers = new_buffers(loop, 2, 16);
	struct shots *shots[200];
	int p[200][2];

	for (unsigned int i = 0; i < 200; i++) {
		pair(p[i], i % 2 ? SOCK_NONBLOCK : 0);
		shots[i] = new_shots(loop, buffers);
		receive(shots[i], p[i][0]);
	}
	run_for(loop, 20);
	for (unsigned int i = 200; i-- > 0;) {
		send_all(p[i][1], "hello", 5);
		await_good(shots[i], 1);
	}
	CHECK(count_tasks() < 20 + TSAN_TASKS);
	test_end_loop();
	for (unsigned int i = 0; i < 200; i++)
		CHECK(is_cancelled(shots[i]->last));
}

/*
 * While no buffer is free, a call on a socket without data waits. One on a socket
 * with data ends.
 */
WAITING_TEST(a_silent_socket_waits_although_no_buffer_is_free)
{
	struct shots *shots = new_shots(loop, new_buffers(loop, 1, 16));
	struct shots *silent = new_shots(loop, shots->buffers);
	int p[2], q[2];

	pair(p, 0);
	pair(q, 0);
	shots->keep = true;
	receive(shots, p[0]);
	send_all(p[1], "x", 1);
	await_good(shots, 1);
	receive(silent, q[0]);
	run_for(loop, 20);
	CHECK_EQ(silent->ended, 0);
	CHECK_EQ(flexsc_buffers_return(shots->buffers, shots->kept[0]), 0);
	send_all(q[1], "y", 1);
	await_good(silent, 1);
	await_cancelled(silent);
	test_end_loop();
}

WAITING_TEST(a_call_on_the_wrong_descriptor_ends_at_once)
{
	struct shots *shots = new_shots(loop, new_buffers(loop, 4, 16));
	struct sockaddr_in address;
	int p[2];

	receive(shots, 1000);
	await_end(shots, -EBADF);
	CHECK_EQ(pipe(p), 0);
	receive(shots, p[0]);
	await_end(shots, -ENOTSOCK);
	CHECK_EQ(pipe2(p, O_NONBLOCK), 0);
	receive(shots, p[0]);
	await_end(shots, -ENOTSOCK);
	receive(shots, listener(&address, 0));
	await_end(shots, -ENOTCONN);
	receive(shots, listener(&address, SOCK_NONBLOCK));
	await_end(shots, -ENOTCONN);
}

/* A message in the error queue makes poll() report an error. */
WAITING_TEST(an_error_queue_uses_no_processor_time)
{
	struct shots *shots = new_shots(loop, new_buffers(loop, 4, 16));
	struct sockaddr_in address;
	int fd = listener(&address, 0), peer = connected(&address), on = 1;
	int end = accept4(fd, NULL, NULL, SOCK_NONBLOCK);
	static char bytes[65536];
	uint64_t before;

	if (setsockopt(end, SOL_SOCKET, SO_ZEROCOPY, &on, sizeof(on)))
		SKIP("zero-copy sends give no notifications here");
	receive(shots, end);
	run_for(loop, 5);
	send(end, bytes, sizeof(bytes), MSG_ZEROCOPY);
	CHECK(recv(peer, bytes, sizeof(bytes), 0) > 0);
	before = stats_of(loop).completed;
	run_for(loop, 300);
	CHECK(stats_of(loop).completed - before < 2000);
	send_all(peer, "hello", 5);
	await_good(shots, 1);
	await_cancelled(shots);
}

WAITING_TEST(a_receive_that_found_nothing_is_cancelled)
{
	struct shots *shots = new_shots(loop, new_buffers(loop, 4, 4));
	int p[2];

	pair(p, SOCK_NONBLOCK);
	for (unsigned int i = 1; i <= 20; i++) {
		receive(shots, p[0]);
		/* The buffer is full, so more data may follow. */
		send_all(p[1], "abcd", 4);
		await_good(shots, i);
		CHECK_EQ(flexsc_loop_submit(loop), 0);
		sleep_ms(2);
		await_cancelled(shots);
	}
}

/*
 * Buffer pools are created and destroyed, and with them their identifiers in the
 * engine.
 */
LOOP_TEST(buffers_are_made_again_and_again)
{
	for (unsigned int i = 0; i < 300; i++) {
		struct flexsc_buffers *buffers = new_buffers(loop, 8, 512);

		if (i % 3)
			CHECK_EQ(flexsc_buffers_destroy(buffers), 0);
	}
}

WAITING_TEST(cancelling_a_descriptor_ends_its_calls)
{
	struct shots *one = new_shots(loop, new_buffers(loop, 4, 16));
	struct shots *other = new_shots(loop, one->buffers);
	struct shots *third = new_shots(loop, NULL);
	struct sockaddr_in address;
	int p[2], q[2], fd = listener(&address, 0);

	pair(p, 0);
	pair(q, SOCK_NONBLOCK);
	receive(one, p[0]);
	receive(other, q[0]);
	accept_all(third, fd, 0);
	run_for(loop, 5);
	CHECK_EQ(flexsc_loop_cancel_fd(loop, p[0]), 1);
	CHECK(run_until(loop, &one->ended, 1, 10000));
	CHECK_EQ(flexsc_loop_cancel_fd(loop, q[0]), 1);
	CHECK_EQ(flexsc_loop_cancel_fd(loop, q[0]), 0);
	CHECK(run_until(loop, &other->ended, 1, 10000));
	CHECK_EQ(flexsc_loop_cancel_fd(loop, fd), 1);
	CHECK(run_until(loop, &third->ended, 1, 10000));
	CHECK(is_cancelled(one->last) && is_cancelled(other->last) &&
	      is_cancelled(third->last));
	CHECK_EQ(flexsc_loop_run(loop), 0);
}

/*
 * A thread of the library briefly uses the lowest free number when it opens a
 * descriptor of its own. So try until the socket gets the number. The library may also
 * open the descriptor that it waits with just now, and keep the number: then this one
 * is the other file.
 */
static void pair_with_number(int q[2], int number)
{
	unsigned int tries = 0;

	for (pair(q, 0); q[0] != number && tries < 1000; pair(q, 0)) {
		close(q[0]);
		close(q[1]);
		tries++;
	}
}

/* The number soon refers to another file, from which the call must not receive. */
static void outlives_its_descriptor(bool by_loop)
{
	struct flexsc_loop *loop = test_loop();
	struct shots *shots = new_shots(loop, new_buffers(loop, 4, 16));
	int p[2], q[2];

	pair(p, 0);
	receive(shots, p[0]);
	send_all(p[1], "a", 1);
	await_good(shots, 1);
	if (by_loop)
		CHECK_EQ(DO(loop, SYS_close, p[0]), 0);
	else
		CHECK_EQ(close(p[0]), 0);
	flexsc_fd_forget(p[0]);
	pair_with_number(q, p[0]);
	send_all(q[1], "wrong", 5);
	send_all(p[1], "b", 1);
	await_good(shots, 2);
	send_all(p[1], "c", 1);
	await_good(shots, 3);
	CHECK_EQ(shots->received, 3);
	CHECK(!memcmp(shots->bytes, "abc", 3));
	close(p[1]);
	await_end(shots, 0);
	CHECK_EQ(flexsc_loop_run(loop), 0);
	CHECK_EQ(flexsc_loop_destroy(loop), 0);
	close(q[0]);
	close(q[1]);
}

TEST(the_file_stays_open_while_it_is_received_from)
{
	NEEDS_WAITING_ENGINE();
	outlives_its_descriptor(false);
	outlives_its_descriptor(true);
}

TEST(a_loop_is_destroyed_with_pending_calls)
{
	const unsigned int fds = count_fds();

	NEEDS_WAITING_ENGINE();
	for (unsigned int i = 0; i < 20; i++) {
		struct flexsc_loop *loop = test_loop();
		struct shots *shots = new_shots(loop, new_buffers(loop, 4, 16));
		struct shots *accepting = new_shots(loop, NULL);
		struct sockaddr_in address;
		int p[2], fd = listener(&address, 0), peer[3];

		pair(p, i % 2 ? SOCK_NONBLOCK : 0);
		receive(shots, p[0]);
		accept_all(accepting, fd, 0);
		if (i % 4 == 0)
			run_for(loop, 1);
		for (unsigned int j = 0; j < 3; j++)
			peer[j] = connected(&address);
		send_all(p[1], "abc", 3);
		if (i % 3 == 0)
			CHECK(flexsc_loop_wait(loop, SECOND) >= 0);
		CHECK_EQ(flexsc_loop_destroy(loop), 0);
		CHECK_EQ(shots->ended, 1);
		CHECK_EQ(accepting->ended, 1);
		for (unsigned int j = 0; j < 3; j++)
			close(peer[j]);
		close_accepted(accepting);
		close(p[0]);
		close(p[1]);
		close(fd);
	}
	CHECK(falls_to(count_fds, fds));
}

WAITING_TEST(a_forked_child_has_no_calls_and_its_parent_continues)
{
	struct shots *shots = new_shots(loop, new_buffers(loop, 4, 16));
	int p[2], child;

	pair(p, SOCK_NONBLOCK);
	receive(shots, p[0]);
	run_for(loop, 2);
	child = test_fork();
	if (!child) {
		CHECK_EQ(flexsc_loop_cancel(loop, &shots->cb), -ESTALE);
		CHECK_EQ(flexsc_buffers_destroy(shots->buffers), -ESTALE);
		CHECK_EQ(flexsc_loop_recv_multishot(loop, &shots->cb, p[0],
						    shots->buffers), -ESTALE);
		test_end_loop();
		test_leave();
	}
	test_reap(child);
	send_all(p[1], "abc", 3);
	await_good(shots, 1);
	close(p[1]);
	await_end(shots, 0);
}

WAITING_TEST(no_call_follows_a_multishot_call)
{
	struct shots *shots = new_shots(loop, new_buffers(loop, 4, 16));
	struct call next = CALL_INIT;
	int p[2];

	pair(p, SOCK_NONBLOCK);
	receive(shots, p[0]);
	CHECK_EQ(flexsc_loop_getppid_after(loop, &next.cb, &shots->cb, 0), -ENOENT);
	CHECK_EQ(flexsc_loop_deadline(loop, &shots->cb, SECOND), -ENOENT);
	await_cancelled(shots);
}

WAITING_TEST(results_need_no_free_entry, .max_entries = 64)
{
	struct shots *shots = new_shots(loop, NULL);
	struct call calls[80];
	struct sockaddr_in address;
	int p[2], fd = listener(&address, 0);
	char c[80];

	pair(p, 0);
	accept_all(shots, fd, 0);
	run_for(loop, 2);
	for (unsigned int i = 0; i < 80; i++) {
		calls[i] = (struct call)CALL_INIT;
		POST(loop, &calls[i], SYS_read, p[0], &c[i], 1);
	}
	run_for(loop, 5);
	connected(&address);
	await_good(shots, 1);
	for (unsigned int i = 0; i < 80; i++)
		send_all(p[1], "x", 1);
	for (unsigned int i = 0; i < 80; i++)
		CHECK_EQ(await_call(loop, &calls[i]), 1);
	connected(&address);
	await_good(shots, 2);
	await_cancelled(shots);
}

WAITING_TEST(a_harvest_returns_each_completion_once)
{
	struct shots *shots = new_shots(loop, new_buffers(loop, 32, 8));
	struct shots *other = new_shots(loop, shots->buffers);
	struct flexsc_cb *done[8];
	int p[2], q[2];

	pair(p, 0);
	pair(q, 0);
	receive(shots, p[0]);
	receive(other, q[0]);
	for (unsigned int i = 0; i < 10; i++) {
		send_all(p[1], "12345678", 8);
		send_all(q[1], "abcdefgh", 8);
	}
	close(p[1]);
	close(q[1]);
	while (!shots->ended || !other->ended) {
		int n = flexsc_loop_harvest(loop, done, 8);

		CHECK(n >= 0 && n <= 2);
		CHECK(n < 2 || done[0] != done[1]);
		for (int i = 0; i < n; i++)
			shot(done[i]);
		if (!n)
			CHECK(flexsc_loop_wait(loop, FLEXSC_FOREVER) >= 0);
	}
	CHECK_EQ(shots->last, 0);
	CHECK_EQ(other->last, 0);
	CHECK_EQ(shots->received, 80);
	CHECK_EQ(other->received, 80);
	CHECK_EQ(flexsc_loop_harvest(loop, done, 8), 0);
}

WAITING_TEST(a_busy_call_leaves_room_for_others_in_the_harvest)
{
	struct shots *busy = new_shots(loop, new_buffers(loop, 128, 8));
	struct shots *other = new_shots(loop, busy->buffers);
	struct flexsc_cb *done[64];
	unsigned int harvests = 0;
	int p[2], q[2], n;

	pair(p, 0);
	pair(q, 0);
	receive(busy, p[0]);
	receive(other, q[0]);
	run_for(loop, 2);
	for (unsigned int i = 0; i < 100; i++)
		send_all(p[1], "12345678", 8);
	send_all(q[1], "x", 1);
	/* Until all completions are there. */
	do
		sleep_ms(1);
	while (others_keep_running() || pollers_run());
	while (!other->n) {
		n = flexsc_loop_harvest(loop, done, 64);
		CHECK(n >= 0 && ++harvests < 1000);
		for (int i = 0; i < n; i++)
			shot(done[i]);
		if (!n)
			CHECK(flexsc_loop_wait(loop, 10 * MS) >= 0);
	}
	/* Few completions of the busy call came before those of the others. */
	CHECK(busy->n <= 20);
	await_good(busy, 100);
	for (size_t i = 0; i < 800; i++)
		CHECK_EQ(busy->bytes[i], '1' + (char)(i % 8));
	test_end_loop();
}

/* Everything at random. */

#define SOCKETS	24U

struct line {
	struct shots *shots;
	int p[2];
	unsigned char sent, got;	/* the next byte */
};

static void post_line(struct line *line)
{
	line->shots->n = line->shots->good = 0;
	line->shots->cancel_at = (unsigned int)(test_random() % 6);
	receive(line->shots, line->p[0]);
}

/* Checks that the bytes have arrived in order, without a gap. */
static void check_line(struct line *line)
{
	for (size_t i = 0; i < line->shots->received; i++)
		CHECK_EQ((unsigned char)line->shots->bytes[i], line->got++);
	line->shots->received = 0;
}

static void send_line(struct line *line)
{
	char bytes[40];
	size_t n = 1 + test_random() % sizeof(bytes);

	for (size_t i = 0; i < n; i++)
		bytes[i] = (char)line->sent++;
	send_all(line->p[1], bytes, n);
}

WAITING_TEST_LIMIT(torture, 60)
{
	struct flexsc_buffers *buffers = new_buffers(loop, 8, 16);
	struct line lines[SOCKETS] = { 0 };

	for (unsigned int i = 0; i < SOCKETS; i++) {
		pair(lines[i].p, i % 3 ? 0 : SOCK_NONBLOCK);
		lines[i].shots = new_shots(loop, buffers);
		post_line(&lines[i]);
	}
	for (unsigned int i = 0; i < MANY(20000); i++) {
		struct line *line = &lines[test_random() % SOCKETS];

		switch (test_random() % 8) {
		case 0:
			if (!line->shots->ended)
				flexsc_loop_cancel(loop, &line->shots->cb);
			break;
		case 1:
			flexsc_loop_cancel_fd(loop, line->p[0]);
			break;
		case 2:
		case 3:
			CHECK(flexsc_loop_dispatch(loop) >= 0);
			break;
		default:
			if ((unsigned char)(line->sent - line->got) < 200)
				send_line(line);
			break;
		}
		check_line(line);
		if (line->shots->ended)
			post_line(line);
	}
	for (unsigned int i = 0; i < SOCKETS; i++) {
		struct line *line = &lines[i];

		while (line->got != line->sent) {
			if (line->shots->ended)
				post_line(line);
			line->shots->cancel_at = 0;
			run_for(loop, 1);
			check_line(line);
		}
		if (!line->shots->ended)
			await_cancelled(line->shots);
	}
	CHECK_EQ(flexsc_buffers_destroy(buffers), 0);
}
