/* SPDX-License-Identifier: MIT */
/*
 * User threads use descriptors of different kinds: files with a shared position,
 * terminals, sockets that wait for several bytes, and descriptors that are closed
 * meanwhile.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <termios.h>

#include "threads.h"

enum { SHARERS = 8, RECORDS = 2000, RECORD = 64 };

static int shared[SHARERS];
static atomic_uint seen[SHARERS * RECORDS];

/* Opens an unlinked file, by one descriptor and duplicates of it. */
static void open_shared(void)
{
	shared[0] = open(".", O_TMPFILE | O_RDWR, 0600);
	CHECK(shared[0] >= 0);
	for (int i = 1; i < SHARERS; i++)
		shared[i] = i % 2 ? shared[0] : dup(shared[0]);
}

static ssize_t write_somehow(int fd, const struct iovec *record, int way)
{
	switch (way % 3) {
	case 0:
		return write(fd, record->iov_base, record->iov_len);
	case 1:
		return writev(fd, record, 1);
	default:
		return pwritev2(fd, record, 1, -1, 0);
	}
}

static ssize_t read_somehow(int fd, const struct iovec *record, int way)
{
	switch (way % 3) {
	case 0:
		return read(fd, record->iov_base, record->iov_len);
	case 1:
		return readv(fd, record, 1);
	default:
		return preadv2(fd, record, 1, -1, 0);
	}
}

static void *write_records(void *arg)
{
	int number = (int)(intptr_t)arg;
	char text[RECORD + 1];
	struct iovec record = { text, RECORD };

	for (int i = 0; i < RECORDS; i++) {
		snprintf(text, sizeof(text), "%*d", RECORD,
			 number * RECORDS + i);
		CHECK_EQ(write_somehow(shared[number], &record, i), RECORD);
	}
	return NULL;
}

static void *read_records(void *arg)
{
	int number = (int)(intptr_t)arg;
	char text[RECORD + 1] = "";
	struct iovec record = { text, RECORD };
	ssize_t n;

	for (int i = 0; (n = read_somehow(shared[number], &record, i)) > 0; i++) {
		CHECK_EQ(n, RECORD);
		CHECK(atoi(text) < SHARERS * RECORDS);
		seen[atoi(text)]++;
	}
	CHECK_EQ(n, 0);
	return NULL;
}

static void share(void *(*run)(void *))
{
	run_numbered(SHARERS, run);
}

TEST_LIMIT(a_shared_position_counts_every_byte_once, 60)
{
	const off_t size = (off_t)SHARERS * RECORDS * RECORD;

	enter_scratch();
	open_shared();
	share(write_records);
	CHECK_EQ(lseek(shared[0], 0, SEEK_CUR), size);
	CHECK_EQ(lseek(shared[0], 0, SEEK_END), size);
	CHECK_EQ(lseek(shared[0], 0, SEEK_SET), 0);
	share(read_records);
	for (int i = 0; i < SHARERS * RECORDS; i++)
		CHECK_EQ(seen[i], 1);
	leave_scratch();
}

/* Files at their size limit (RLIMIT_FSIZE). */

static atomic_int too_large, unexpected;
static pthread_t writer;

static void note_too_large(int signo)
{
	(void)signo;
	if (pthread_equal(pthread_self(), writer))
		too_large++;
	else
		unexpected++;
}

static void expect_too_large(long ret, int times)
{
	CHECK_EQ(ret, -1);
	CHECK_EQ(errno, EFBIG);
	CHECK_EQ(too_large, times);
}

static void *write_too_much(void *arg)
{
	char text[100] = "";
	struct iovec part = { text, sizeof(text) };
	int fd = open(".", O_TMPFILE | O_RDWR, 0600), n = 0;
	int in = open(".", O_TMPFILE | O_RDWR, 0600);

	writer = pthread_self();
	settle();
	CHECK_EQ(write(in, text, 50), 50);
	CHECK_EQ(write(fd, text, 100), 100);
	expect_too_large(write(fd, text, 100), ++n);
	usleep(1);
	expect_too_large(writev(fd, &part, 1), ++n);
	usleep(1);
	expect_too_large(pwrite(fd, text, 100, 200), ++n);
	usleep(1);
	expect_too_large(pwritev2(fd, &part, 1, -1, 0), ++n);
	usleep(1);
	expect_too_large(ftruncate(fd, 101), ++n);
	usleep(1);
	expect_too_large(sendfile(fd, in, &(off_t){ 0 }, 50), ++n);
	/* A write that doesn't make the file larger succeeds. */
	CHECK_EQ(pwrite(fd, text, 100, 50), 50);
	CHECK_EQ(too_large, n);
	return arg;
}

TEST(a_write_beyond_the_size_limit_raises_a_signal)
{
	struct sigaction action = { .sa_handler = note_too_large };
	struct rlimit limit, before;

	enter_scratch();
	CHECK_EQ(sigaction(SIGXFSZ, &action, NULL), 0);
	CHECK_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
	limit = before;
	limit.rlim_cur = 100;
	CHECK_EQ(setrlimit(RLIMIT_FSIZE, &limit), 0);
	/* The first thread starts under the limit, too. */
	join(start(write_too_much, NULL));
	CHECK_EQ(unexpected, 0);
	CHECK_EQ(setrlimit(RLIMIT_FSIZE, &before), 0);
	leave_scratch();
}

/* Terminals. */

static int master, terminal;

static void open_terminal(void)
{
	master = posix_openpt(O_RDWR | O_NOCTTY);
	CHECK(master >= 0);
	CHECK_EQ(grantpt(master) | unlockpt(master), 0);
	terminal = open(ptsname(master), O_RDWR | O_NOCTTY);
	CHECK(terminal >= 0);
}

/*
 * Sets when a read returns: after this many bytes, or after some tenths of a second
 * without a byte.
 */
static void read_when(cc_t bytes, cc_t tenths)
{
	struct termios mode;

	CHECK_EQ(tcgetattr(terminal, &mode), 0);
	cfmakeraw(&mode);
	mode.c_cc[VMIN] = bytes;
	mode.c_cc[VTIME] = tenths;
	CHECK_EQ(tcsetattr(terminal, TCSANOW, &mode), 0);
}

static void *type_two(void *arg)
{
	settle();
	CHECK_EQ(write(master, "ab", 2), 2);
	return arg;
}

static void *read_terminal(void *arg)
{
	pthread_t typist;
	char in[8];

	read_when(0, 1);
	CHECK_EQ(read(terminal, in, sizeof(in)), 0);
	read_when(0, 0);
	CHECK_EQ(read(terminal, in, sizeof(in)), 0);
	read_when(3, 1);
	typist = start(type_two, NULL);
	CHECK_EQ(read(terminal, in, sizeof(in)), 2);
	join(typist);
	read_when(1, 0);
	typist = start(type_two, NULL);
	CHECK(read(terminal, in, sizeof(in)) > 0);
	join(typist);
	return arg;
}

TEST(a_terminal_s_settings_end_a_read)
{
	open_terminal();
	join(start(read_terminal, NULL));
}

/*
 * Returns NULL if the read waited at the hang-up, and so failed. A read that begins
 * after the hang-up finds the end of the file.
 */
static void *read_to_the_end(void *arg)
{
	char byte;
	long ret = read(terminal, &byte, 1), next;

	CHECK(!ret || (ret == -1 && errno == EIO));
	/* The kernel wakes the reader first, and completes the hang-up then. */
	while ((next = read(terminal, &byte, 1)) == -1 && errno == EIO)
		sched_yield();
	CHECK_EQ(next, 0);
	CHECK_EQ(write(terminal, &byte, 1), -1);
	CHECK_EQ(errno, EIO);
	return ret ? NULL : arg;
}

TEST(a_terminal_that_hangs_up_is_an_error)
{
	pthread_t reader;
	int late = 0;

	do {
		open_terminal();
		reader = start(read_to_the_end, &late);
		settle();
		await_quiet();
		close(master);
		CHECK(late++ < 20);
	} while (join(reader));
}

static void *read_one(void *arg)
{
	char byte;

	(void)!read(terminal, &byte, 1);
	return arg;
}

static void *read_one_at_once(void *arg)
{
	fcntl(terminal, F_SETFL, O_RDWR | O_NONBLOCK);
	return read_one(arg);
}

static void *write_one(void *arg)
{
	(void)!write(terminal, "x", 1);
	return arg;
}

static void *set_mode(void *arg)
{
	struct termios mode;

	tcgetattr(terminal, &mode);
	tcsetattr(terminal, TCSADRAIN, &mode);
	return arg;
}

static void *take_over(void *arg)
{
	int group = getpgrp();

	ioctl(terminal, TIOCSPGRP, &group);
	return arg;
}

/*
 * Returns the exit status of a child that runs this thread, and whose process group
 * isn't the terminal's foreground group.
 */
static int status_in_background(void *(*run)(void *))
{
	int child = fork(), status = 0;

	CHECK(child >= 0);
	if (!child) {
		setpgid(0, 0);
		pthread_join(start(run, NULL), NULL);
		_exit(0);
	}
	setpgid(child, child);
	CHECK_EQ(waitpid(child, &status, WUNTRACED), child);
	if (WIFSTOPPED(status)) {
		CHECK_EQ(kill(child, SIGKILL), 0);
		CHECK_EQ(waitpid(child, NULL, 0), child);
	}
	return status;
}

static void expect_stops(void)
{
	struct termios mode;

	CHECK(setsid() > 0);
	CHECK_EQ(ioctl(terminal, TIOCSCTTY, 0), 0);
	CHECK_EQ(tcgetattr(terminal, &mode), 0);
	mode.c_lflag |= TOSTOP;
	CHECK_EQ(tcsetattr(terminal, TCSANOW, &mode), 0);
	CHECK_EQ(status_in_background(read_one), W_STOPCODE(SIGTTIN));
	CHECK_EQ(status_in_background(read_one_at_once), W_STOPCODE(SIGTTIN));
	fcntl(terminal, F_SETFL, O_RDWR);
	CHECK_EQ(status_in_background(write_one), W_STOPCODE(SIGTTOU));
	CHECK_EQ(status_in_background(set_mode), W_STOPCODE(SIGTTOU));
	CHECK_EQ(status_in_background(take_over), W_STOPCODE(SIGTTOU));
}

TEST(a_terminal_stops_a_background_process)
{
	int session;

	open_terminal();
	session = test_fork();
	if (!session) {
		expect_stops();
		/* The end of the session hangs the terminal up. */
		signal(SIGHUP, SIG_IGN);
		test_leave();
	}
	test_reap(session);
}

/* Sockets that wait for more than one byte. */

static const int four = 4;
static atomic_int asked, received;

static void *receive_four(void *arg)
{
	int fd = *(int *)arg;
	char in[16];
	struct iovec iov = { in, sizeof(in) };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };

	asked++;
	CHECK_EQ(recv(fd, in, sizeof(in), 0), 4);
	received++;
	asked++;
	CHECK_EQ(read(fd, in, sizeof(in)), 4);
	received++;
	asked++;
	CHECK_EQ(recvmsg(fd, &msg, 0), 4);
	received++;
	return arg;
}

/*
 * The receiver has to wait before the first half arrives. If it receives the first
 * half at once, Linux's TCP doesn't wake it for the second one, which is shorter
 * than SO_RCVLOWAT.
 */
static void send_halves(int from, int to)
{
	pthread_t receiver;

	asked = 0;
	received = 0;
	receiver = start(receive_four, &to);
	for (int i = 0; i < 3; i++) {
		while (asked == i)
			usleep(1000);
		await_quiet();
		CHECK_EQ(send(from, "ab", 2, 0), 2);
		settle();
		CHECK_EQ(received, i);
		CHECK_EQ(send(from, "cd", 2, 0), 2);
		while (received == i)
			usleep(1000);
	}
	join(receiver);
}

static void *accept_one(void *arg)
{
	return (void *)(intptr_t)accept(*(int *)arg, NULL, NULL);
}

TEST(a_receive_waits_for_so_rcvlowat_bytes)
{
	struct sockaddr_in addr;
	int pair[2], listener, client;
	pthread_t acceptor;

	CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
	CHECK_EQ(setsockopt(pair[0], SOL_SOCKET, SO_RCVLOWAT, &four,
			    sizeof(four)), 0);
	send_halves(pair[1], pair[0]);
	/* A connection inherits the options of its listener. */
	listener = listening_socket(&addr, 0, 1);
	CHECK_EQ(setsockopt(listener, SOL_SOCKET, SO_RCVLOWAT, &four,
			    sizeof(four)), 0);
	acceptor = start(accept_one, &listener);
	client = socket(AF_INET, SOCK_STREAM, 0);
	CHECK_EQ(connect(client, (struct sockaddr *)&addr, sizeof(addr)), 0);
	send_halves(client, (int)(intptr_t)join(acceptor));
}

static void *receive_nothing(void *arg)
{
	char byte;

	CHECK_EQ(recv(*(int *)arg, &byte, 1, 0), -1);
	CHECK_EQ(errno, EAGAIN);
	return arg;
}

/*
 * Sets a time limit through one descriptor; an accept through another one must obey
 * it.
 */
static void accept_with_limit(int listener, int setter, int option)
{
	struct sockaddr_in addr = { .sin_family = AF_INET };
	const int64_t soon[2] = { 0, 50000 };
	socklen_t size = sizeof(addr);
	int client, server;

	addr.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	CHECK_EQ(bind(listener, (struct sockaddr *)&addr, size), 0);
	CHECK_EQ(listen(listener, 1), 0);
	CHECK_EQ(getsockname(listener, (struct sockaddr *)&addr, &size), 0);
	CHECK_EQ(setsockopt(setter, SOL_SOCKET, option, soon, sizeof(soon)), 0);
	client = socket(AF_INET, SOCK_STREAM, 0);
	CHECK_EQ(connect(client, (struct sockaddr *)&addr, size), 0);
	server = (int)(intptr_t)join(start(accept_one, &listener));
	CHECK(server >= 0);
	join(start(receive_nothing, &server));
	close(listener);
	close(client);
	close(server);
}

TEST(a_connection_has_its_listener_s_time_limit)
{
	static const int options[] = { SO_RCVTIMEO_OLD, SO_RCVTIMEO_NEW };

	for (unsigned int i = 0; i < 4; i++) {
		int nonblock = i & 2 ? SOCK_NONBLOCK : 0;
		int listener = socket(AF_INET, SOCK_STREAM | nonblock, 0);
		int copy = dup(listener);

		accept_with_limit(copy, listener, options[i & 1]);
		close(listener);
		listener = socket(AF_INET, SOCK_STREAM | nonblock, 0);
		accept_with_limit(listener, listener, options[i & 1]);
	}
}

/* Descriptors that are closed while a call uses them. */

static int set;
static atomic_int waiting;

/* Wait until n other threads have begun to wait. */
static void settle_all(int n)
{
	while (waiting < n)
		usleep(1000);
	settle();
	await_quiet();
	waiting = 0;
}

static void *await_set(void *arg)
{
	struct epoll_event event;

	waiting++;
	CHECK_EQ(epoll_wait(set, &event, 1, *(int *)arg),
		 *(int *)arg < 0 || *(int *)arg > 1000);
	return arg;
}

/* A set that a thread waits for exists until the wait is over. */
TEST(an_epoll_set_that_is_closed_is_waited_for)
{
	struct epoll_event event = { .events = EPOLLIN };
	int limits[] = { 300, -1, 60000 }, fds[2], other;
	pthread_t waiters[6];

	for (int way = 0; way < 3; way++) {
		CHECK_EQ(pipe(fds), 0);
		set = epoll_create1(0);
		CHECK_EQ(epoll_ctl(set, EPOLL_CTL_ADD, fds[0], &event), 0);
		for (int i = 0; i < 6; i++)
			waiters[i] = start(await_set, &limits[i / 2]);
		settle_all(6);
		/* Then another file has the set's number, or the number is unused. */
		other = epoll_create1(0);
		if (way == 1)
			CHECK_EQ(dup2(other, set), set);
		else if (way == 2)
			CHECK_EQ(close_range((unsigned int)set,
					     (unsigned int)set, 0), 0);
		else
			close(set);
		join(waiters[0]);
		join(waiters[1]);
		CHECK_EQ(write(fds[1], "x", 1), 1);
		for (int i = 2; i < 6; i++)
			join(waiters[i]);
		close(other);
		close(set);
		close(fds[0]);
		close(fds[1]);
	}
}

static void *wait_and_be_cancelled(void *arg)
{
	struct epoll_event event;

	waiting++;
	epoll_wait(set, &event, 1, -1);
	return arg;
}

TEST(a_cancelled_wait_leaves_no_descriptor)
{
	unsigned int before = 0;
	pthread_t waiter;

	for (int i = 0; i < 4; i++) {
		set = epoll_create1(0);
		waiter = start(wait_and_be_cancelled, NULL);
		settle_all(1);
		close(set);
		CHECK_EQ(pthread_cancel(waiter), 0);
		CHECK(join(waiter) == PTHREAD_CANCELED);
		if (!i)
			before = count_fds();
	}
	CHECK_EQ(count_fds(), before);
}

/*
 * One transfer moves at most 2 GB. A small file that is mapped repeatedly serves as
 * the buffer.
 */

#define MOST		0x7ffff000L
#define ROOM		(3UL << 30)
#define CHUNK		(64UL << 20)

static char *room;

static void make_room(void)
{
	const int fd = memfd_create("room", 0);

	CHECK_EQ(ftruncate(fd, CHUNK), 0);
	room = mmap(NULL, ROOM, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	for (size_t at = 0; at < ROOM; at += CHUNK)
		CHECK(mmap(room + at, CHUNK, PROT_READ | PROT_WRITE,
			   MAP_SHARED | MAP_FIXED, fd, 0) == room + at);
	close(fd);
}

static void *send_all(void *arg)
{
	CHECK_EQ(send(*(int *)arg, room, SIZE_MAX, 0), MOST);
	return arg;
}

static void *receive_all(void *arg)
{
	CHECK_EQ(recv(*(int *)arg, room, ROOM, MSG_WAITALL), MOST);
	return arg;
}

TEST_LIMIT(a_transfer_has_an_upper_limit, 60)
{
	pthread_t sender, receiver;
	int fds[2];

	make_room();
	CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, fds), 0);
	sender = start(send_all, &fds[0]);
	receiver = start(receive_all, &fds[1]);
	join(sender);
	join(receiver);
}
