// SPDX-License-Identifier: MIT
/*
 * Other threads close or replace descriptors while calls of this loop wait for their
 * files. Each call has begun to wait, or has done a part. So it has to end as if the
 * descriptor had stayed open, and it must not touch the file that has got the
 * number.
 */
#include "tests/harness/harness.h"

#include <flexsc/fd.h>
#include <linux/close_range.h>

#define ROUNDS		40U
#define CLOSERS		3U
#define LONG		(256U << 10)	/* bytes: more than a pipe or a socket holds */
#define BYTES		600U	/* of each stream */
#define MANY_FDS	300

enum { STREAM, READ, SET, PIPE, SOCKET, CONNECTIONS, SUBJECTS };

struct subject {
	int fd;	/* the number that the calls use, and that closers close */
	int peer;
};

struct stream {
	struct flexsc_cb cb;
	struct flexsc_buffers *buffers;
	unsigned int got, ended;
};

struct round {
	struct subject subjects[SUBJECTS];
	struct stream stream;
	struct call read, wait, write, send, accepts[4];
	struct epoll_event event;
	char byte;
	unsigned int done;
	pthread_t reader[2], feeder;
	int decoy[2];	/* takes the closed numbers; it holds other bytes */
};

static struct round now;
static pthread_barrier_t barrier;
static char sent[LONG];
static struct sockaddr_storage address;
static socklen_t address_size;

static void stream_shot(struct flexsc_cb *cb)
{
	struct stream *stream = (struct stream *)cb;
	unsigned char *data;

	if (cb->ret > 0) {
		data = flexsc_buffers_data(stream->buffers, cb);
		for (int64_t i = 0; i < cb->ret; i++)
			CHECK_EQ(data[i], (unsigned char)stream->got++);
		CHECK_EQ(flexsc_buffers_return(stream->buffers, data), 0);
	}
	if (!flexsc_cb_more(cb))
		stream->ended = 1;
}

static void subject(unsigned int which, int fd, int peer)
{
	now.subjects[which] = (struct subject){ fd, peer };
}

static void make_pair(unsigned int which, int type)
{
	int p[2];

	CHECK_EQ(socketpair(AF_UNIX, type | SOCK_CLOEXEC, 0, p), 0);
	subject(which, p[0], p[1]);
}

static void make_subjects(void)
{
	struct epoll_event event = { .events = EPOLLIN, .data.u32 = 7 };
	int p[2], fd;

	make_pair(STREAM, SOCK_STREAM);
	make_pair(READ, SOCK_STREAM);
	make_pair(SOCKET, SOCK_STREAM);
	CHECK_EQ(pipe2(p, O_CLOEXEC), 0);
	subject(PIPE, p[1], p[0]);
	CHECK_EQ(pipe2(p, O_CLOEXEC), 0);
	CHECK_EQ(write(p[1], "XXXXXXXX", 8), 8);
	memcpy(now.decoy, p, sizeof(p));
	fd = epoll_create1(EPOLL_CLOEXEC);
	CHECK_EQ(pipe2(p, O_CLOEXEC), 0);
	CHECK_EQ(epoll_ctl(fd, EPOLL_CTL_ADD, p[0], &event), 0);
	subject(SET, fd, p[1]);
	now.accepts[0].cb.ret = p[0];
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	address_size = sizeof(sa_family_t);
	address.ss_family = AF_UNIX;
	CHECK_EQ(bind(fd, (struct sockaddr *)&address, address_size), 0);
	address_size = sizeof(address);
	CHECK_EQ(getsockname(fd, (struct sockaddr *)&address, &address_size), 0);
	CHECK_EQ(listen(fd, 16), 0);
	subject(CONNECTIONS, fd, -1);
}

/* Reads up to the end of the file. There is an end only if no duplicate remains open. */
static void *read_long(void *arg)
{
	const int fd = *(const int *)arg;
	char *got = malloc(LONG + 1);
	size_t n = 0;
	ssize_t ret;

	while ((ret = read(fd, got + n, LONG + 1 - n)) > 0)
		n += (size_t)ret;
	CHECK_EQ(ret, 0);
	CHECK_EQ(n, LONG);
	CHECK(!memcmp(got, sent, LONG));
	free(got);
	return NULL;
}

/* Sends more of the stream while others close it. */
static void *feed(void *arg)
{
	for (unsigned int i = 1; i < BYTES; i++) {
		const unsigned char byte = (unsigned char)i;

		CHECK_EQ(write(now.subjects[STREAM].peer, &byte, 1), 1);
	}
	return arg;
}

/* How a subject is closed: by all closers repeatedly, or by one of them once. */
enum { REPLACED, CLOSED, CLOSED_RANGE, WAYS };

static unsigned int way_of(unsigned int which, unsigned int round)
{
	return (which + round) % WAYS;
}

static void close_one(struct flexsc_loop *loop, unsigned int which,
		      unsigned int round, unsigned int self)
{
	const int fd = now.subjects[which].fd;
	const unsigned int way = way_of(which, round);

	if (way == REPLACED)
		CHECK_EQ(DO(loop, SYS_dup3, now.decoy[0], fd, O_CLOEXEC), fd);
	else if ((which + round / WAYS) % CLOSERS != self)
		return;
	else if (way == CLOSED)
		CHECK_EQ(DO(loop, SYS_close, fd), 0);
	else
		CHECK_EQ(DO(loop, SYS_close_range, fd, fd, 0), 0);
}

static void *closer(void *arg)
{
	const unsigned int self = (unsigned int)(uintptr_t)arg;
	struct flexsc_loop *loop = test_loop();

	for (unsigned int round = 0; round < MANY(ROUNDS); round++) {
		pthread_barrier_wait(&barrier);
		for (unsigned int i = 0; i < SUBJECTS; i++)
			close_one(loop, (self * 2 + i) % SUBJECTS, round, self);
		pthread_barrier_wait(&barrier);
	}
	CHECK_EQ(flexsc_loop_destroy(loop), 0);
	return NULL;
}

static void post_all(struct flexsc_loop *loop, struct flexsc_buffers *buffers)
{
	const struct subject *s = now.subjects;

	now.stream = (struct stream){ .cb.callback = stream_shot,
				      .buffers = buffers };
	now.read = now.wait = now.write = now.send = (struct call)CALL_INIT;
	CHECK_EQ(flexsc_loop_recv_multishot(loop, &now.stream.cb, s[STREAM].fd,
					    buffers), 0);
	POST(loop, &now.read, SYS_read, s[READ].fd, &now.byte, 1);
	POST(loop, &now.wait, SYS_epoll_pwait, s[SET].fd, &now.event, 1, -1);
	POST(loop, &now.write, SYS_write, s[PIPE].fd, sent, LONG);
	POST(loop, &now.send, SYS_sendto, s[SOCKET].fd, sent, LONG);
	for (unsigned int i = 0; i < 4; i++) {
		now.accepts[i] = (struct call)CALL_INIT;
		POST(loop, &now.accepts[i], SYS_accept4, s[CONNECTIONS].fd);
	}
	/*
	 * The stream has begun when a byte has arrived, the other calls when all
	 * threads are idle.
	 */
	CHECK_EQ(write(s[STREAM].peer, "", 1), 1);
	CHECK(run_until(loop, &now.stream.got, 1, 10000));
	run_until_idle(loop);
}

static void await(struct flexsc_loop *loop, struct call *call, int64_t ret)
{
	CHECK(run_until(loop, &call->runs, 1, 10000));
	CHECK_EQ(call->cb.ret, ret);
}

/* Makes connections until each accept has got one. */
static void connect_all(struct flexsc_loop *loop)
{
	int fds[4];

	for (unsigned int i = 0; i < 4; i++) {
		fds[i] = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
		CHECK_EQ(connect(fds[i], (struct sockaddr *)&address,
				 address_size), 0);
	}
	for (unsigned int i = 0; i < 4; i++) {
		struct call *call = &now.accepts[i];

		CHECK(run_until(loop, &call->runs, 1, 10000));
		CHECK(call->cb.ret >= 0);
		CHECK_EQ(close((int)call->cb.ret), 0);
		CHECK_EQ(close(fds[i]), 0);
	}
}

static void end_all(struct flexsc_loop *loop)
{
	struct subject *s = now.subjects;

	for (unsigned int i = 0; i < 2; i++)
		now.reader[i] = test_thread(read_long,
				&s[i ? SOCKET : PIPE].peer);
	await(loop, &now.write, LONG);
	await(loop, &now.send, LONG);
	CHECK_EQ(write(s[READ].peer, "r", 1), 1);
	await(loop, &now.read, 1);
	CHECK_EQ(now.byte, 'r');
	CHECK_EQ(write(s[SET].peer, "s", 1), 1);
	await(loop, &now.wait, 1);
	CHECK_EQ(now.event.data.u32, 7);
	connect_all(loop);
	CHECK(run_until(loop, &now.stream.got, BYTES, 10000));
	CHECK_EQ(pthread_join(now.feeder, NULL), 0);
	CHECK_EQ(now.stream.ended, 0);
	CHECK_EQ(close(s[STREAM].peer), 0);
	CHECK(run_until(loop, &now.stream.ended, 1, 10000));
	for (unsigned int i = 0; i < 2; i++)
		CHECK_EQ(pthread_join(now.reader[i], NULL), 0);
}

/* No call has read from the decoy, or written to it. */
static void check_decoy(unsigned int round)
{
	char bytes[9];

	CHECK_EQ(read(now.decoy[0], bytes, 9), 8);
	CHECK_EQ(close(now.decoy[0]), 0);
	CHECK_EQ(close(now.decoy[1]), 0);
	for (unsigned int i = 0; i < SUBJECTS; i++) {
		if (way_of(i, round) == REPLACED)
			CHECK_EQ(close(now.subjects[i].fd), 0);
		if (i != STREAM && now.subjects[i].peer >= 0)
			CHECK_EQ(close(now.subjects[i].peer), 0);
	}
}

/*
 * A call waits for a descriptor in an epoll set. The descriptor gets data, and is
 * closed. The call is woken, and completes before it would wait with the duplicate.
 * The only running syscall thread is busy until the descriptor is closed.
 */
TEST(closed_when_data_has_come)
{
	static char random[1 << 20];
	struct call read = CALL_INIT, busy = CALL_INIT;
	struct flexsc_loop *loop, *other = test_loop();
	char list[16], byte;

	NEEDS_WAITING_ENGINE();
	snprintf(list, sizeof(list), "%d", first_core());
	loop = NEW_LOOP(.kernel_cores = list);
	make_pair(READ, SOCK_STREAM);
	/*
	 * The duplicate's number will be above all numbers that calls have waited
	 * for.
	 */
	while (dup(0) < MANY_FDS)
		;
	POST(loop, &read, SYS_read, now.subjects[READ].fd, &byte, 1);
	run_until_idle(loop);
	POST(loop, &busy, SYS_getrandom, random, sizeof(random), 0);
	CHECK(flexsc_loop_dispatch(loop) >= 0);
	CHECK_EQ(write(now.subjects[READ].peer, "r", 1), 1);
	CHECK_EQ(DO(other, SYS_close, now.subjects[READ].fd), 0);
	await(loop, &read, 1);
	await(loop, &busy, sizeof(random));
	CHECK_EQ(byte, 'r');
	CHECK_EQ(close(now.subjects[READ].peer), 0);
	CHECK_EQ(flexsc_loop_destroy(other), 0);
	CHECK_EQ(flexsc_loop_destroy(loop), 0);
}

/* Calls that close a descriptor and fail, or that leave it open in the other threads. */
static const struct leaves {
	long nr;
	int first;		/* DECOY: an open descriptor; GONE: a closed one */
	unsigned int flags;
	int64_t ret;
	bool limited;	/* RLIMIT_NOFILE is set to the descriptor's number */
} leaves[] = {
#define DECOY	(-2)
#define GONE	(-3)
#define ITSELF	(-4)
	{ SYS_dup3, -1, O_CLOEXEC, -EBADF, false },
	{ SYS_dup3, GONE, O_CLOEXEC, -EBADF, false },
	{ SYS_dup3, DECOY, O_NONBLOCK, -EINVAL, false },
	{ SYS_dup3, DECOY, ~0U, -EINVAL, false },
	{ SYS_dup3, DECOY, O_CLOEXEC, -EBADF, true },
#ifdef SYS_dup2
	{ SYS_dup2, GONE, 0, -EBADF, false },
#endif
	{ SYS_close_range, INT32_MAX, 0, -EINVAL, false },
	{ SYS_close_range, ITSELF, 1U << 31, -EINVAL, false },
	{ SYS_close_range, ITSELF, CLOSE_RANGE_CLOEXEC, 0, false },
	{ SYS_close_range, ITSELF, CLOSE_RANGE_UNSHARE | CLOSE_RANGE_CLOEXEC, 0,
	  false },
	{ SYS_close_range, ITSELF, CLOSE_RANGE_UNSHARE, 0, false },
};

static int first_of(const struct leaves *how)
{
	switch (how->first) {
	case DECOY:
		return now.subjects[PIPE].peer;
	case GONE:
		return MANY_FDS;
	case ITSELF:
		return now.subjects[PIPE].fd;
	default:
		return how->first;
	}
}

/* Runs in a separate thread, because that thread may get its own descriptor table. */
static void *try_to_close(void *arg)
{
	const struct leaves *how = arg;
	struct flexsc_loop *loop = test_loop();
	const int fd = now.subjects[PIPE].fd;
	struct rlimit most, low;

	CHECK_EQ(getrlimit(RLIMIT_NOFILE, &most), 0);
	low = most;
	low.rlim_cur = how->limited ? (rlim_t)fd : most.rlim_cur;
	CHECK_EQ(setrlimit(RLIMIT_NOFILE, &low), 0);
	CHECK_EQ(DO(loop, how->nr, first_of(how), fd, how->flags), how->ret);
	CHECK_EQ(setrlimit(RLIMIT_NOFILE, &most), 0);
	CHECK_EQ(flexsc_loop_destroy(loop), 0);
	return NULL;
}

/* The calls that use the descriptor can still be cancelled by its number. */
WAITING_TEST(a_descriptor_that_is_not_closed_keeps_its_name)
{
	for (size_t i = 0; i < sizeof(leaves) / sizeof(leaves[0]); i++) {
		struct call call = CALL_INIT;
		pthread_t thread;
		int p[2];

		CHECK_EQ(pipe2(p, O_CLOEXEC), 0);
		subject(PIPE, p[1], p[0]);
		POST(loop, &call, SYS_write, p[1], sent, LONG);
		run_until_idle(loop);
		CHECK_EQ(pthread_create(&thread, NULL, try_to_close,
					(void *)(uintptr_t)&leaves[i]), 0);
		CHECK_EQ(pthread_join(thread, NULL), 0);
		if (flexsc_loop_cancel_fd(loop, p[1]) != 1)
			test_fail(__FILE__, __LINE__,
				  "case %zu: its calls can't be cancelled", i);
		CHECK(run_until(loop, &call.runs, 1, 10000));
		CHECK_EQ(close(p[0]), 0);
		CHECK_EQ(close(p[1]), 0);
	}
}

#define RACES		1500U
#define FILLERS		128U
#define PIECE		(65536U + 4096U)	/* more than a pipe holds */

static int raced[2][2];	/* pipes; one's descriptor is replaced by the other's */
static atomic_uint begins;	/* the round that has begun, or RACES_END */

#define RACES_END	UINT32_MAX

static bool begins_round(unsigned int round)
{
	unsigned int now;

	while ((now = atomic_load(&begins)) != round && now != RACES_END)
		sched_yield();
	return now == round;
}

static void *replace_in_time(void *arg)
{
	struct flexsc_loop *loop = NEW_LOOP(.engine = "sync");

	for (unsigned int round = 1; begins_round(round); round++) {
		for (volatile unsigned int i = 0; i < round * 7919 % 20011; i++)
			;
		CHECK_EQ(DO(loop, SYS_dup3, raced[1][1], raced[0][1], O_CLOEXEC),
			 raced[0][1]);
		pthread_barrier_wait(&barrier);
	}
	CHECK_EQ(flexsc_loop_destroy(loop), 0);
	return arg;
}

static void drain(size_t n[2])
{
	static char got[PIECE];
	ssize_t ret;

	for (unsigned int i = 0; i < 2; i++)
		while ((ret = read(raced[i][0], got, sizeof(got))) > 0)
			n[i] += (size_t)ret;
}

static void race(struct flexsc_loop *loop, int zeros, unsigned int fillers)
{
	static char filled[65536];
	struct call write = CALL_INIT, others[FILLERS];
	size_t n[2] = { 0, 0 };

	POST(loop, &write, SYS_write, raced[0][1], sent, PIECE);
	for (unsigned int i = 0; i < fillers; i++) {
		others[i] = (struct call)CALL_INIT;
		POST(loop, &others[i], SYS_pread64, zeros, filled, sizeof(filled),
		     0);
	}
	atomic_fetch_add(&begins, 1);
	while (!write.runs) {
		CHECK(flexsc_loop_dispatch(loop) >= 0);
		drain(n);
	}
	pthread_barrier_wait(&barrier);
	drain(n);
	CHECK_EQ(write.cb.ret, PIECE);
	if (n[0] != PIECE && n[1] != PIECE)
		test_fail(__FILE__, __LINE__, "the write was split: %zu and %zu bytes", n[0], n[1]);
	for (unsigned int i = 0; i < fillers; i++)
		CHECK(run_until(loop, &others[i].runs, 1, 10000));
}

/*
 * A write begins while another thread replaces its descriptor by another file. All
 * of the write goes to a single one of the two files. Some engines make reads before
 * the write, which gives that thread time.
 */
WAITING_TEST_LIMIT(a_write_that_races_a_close_has_one_file, 40)
{
	const int zeros = memfd_create("zeros", MFD_CLOEXEC);
	pthread_t closer;

	CHECK_EQ(ftruncate(zeros, 65536), 0);
	CHECK_EQ(pthread_barrier_init(&barrier, NULL, 2), 0);
	closer = test_thread(replace_in_time, NULL);
	for (unsigned int round = 0; turns_left(round, MANY(RACES)); round++) {
		for (unsigned int i = 0; i < 2; i++) {
			CHECK_EQ(pipe2(raced[i], O_CLOEXEC), 0);
			CHECK_EQ(fcntl(raced[i][0], F_SETFL, O_NONBLOCK), 0);
			flexsc_fd_forget(raced[i][1]);
		}
		race(loop, zeros, round % FILLERS);
		for (unsigned int i = 0; i < 4; i++)
			CHECK_EQ(close(raced[i / 2][i % 2]), 0);
	}
	atomic_store(&begins, RACES_END);
	CHECK_EQ(pthread_join(closer, NULL), 0);
	CHECK_EQ(close(zeros), 0);
}

WAITING_TEST_LIMIT(torture, 60)
{
	struct flexsc_buffers *buffers;
	pthread_t closers[CLOSERS];
	unsigned int fds = 0;
	int events;

	for (unsigned int i = 0; i < LONG; i++)
		sent[i] = (char)(i * 7 / 64 + i % 63);
	CHECK_EQ(flexsc_buffers_create(loop, &buffers, 1024, 64), 0);
	CHECK_EQ(pthread_barrier_init(&barrier, NULL, CLOSERS + 1), 0);
	for (unsigned int i = 0; i < CLOSERS; i++)
		closers[i] = test_thread(closer, (void *)(uintptr_t)i);
	for (unsigned int round = 0; round < MANY(ROUNDS); round++) {
		make_subjects();
		events = (int)now.accepts[0].cb.ret;
		post_all(loop, buffers);
		now.feeder = test_thread(feed, NULL);
		pthread_barrier_wait(&barrier);
		run_for(loop, 1);
		pthread_barrier_wait(&barrier);
		end_all(loop);
		check_decoy(round);
		CHECK_EQ(close(events), 0);
		/* The loop allocates in the first rounds what it keeps. */
		CHECK_EQ(DO(loop, SYS_getpid), getpid());
		if (round == 2)
			fds = count_fds();
		CHECK(round <= 2 || count_fds() <= fds + 1);
	}
	for (unsigned int i = 0; i < CLOSERS; i++)
		CHECK_EQ(pthread_join(closers[i], NULL), 0);
	CHECK_EQ(flexsc_buffers_destroy(buffers), 0);
}
