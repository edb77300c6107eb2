/* SPDX-License-Identifier: MIT */
/*
 * Event loops: threads that wait for any of several non-blocking descriptors, by
 * each call that can do so. A loop first makes some turns, after which the runtime
 * leaves it on its host. Then come changes of descriptors, signals and
 * cancellations.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <linux/aio_abi.h>
#include <poll.h>
#include <semaphore.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#include "bytes.h"
#include "handled.h"

#define PAIRS		8
#define TURNS		20
#define ROUNDS		50
#define SIGNALS		100
#define FOR_EVER	(-1)

/*
 * The calls that wait. Odd ones take a signal mask. A request of asynchronous I/O is
 * a poll that completes once.
 */
enum kind {
	EPOLL_WAIT, EPOLL_PWAIT, POLL, PPOLL, SELECT, PSELECT, NO_REQUESTS,
	GETEVENTS = NO_REQUESTS, PGETEVENTS, KINDS
};

struct loop {
	enum kind kind;
	const sigset_t *mask;
	int count;
	/* pairs of sockets; the loop waits for "here" */
	int here[PAIRS], there[PAIRS];
	int set;
	aio_context_t context;
	struct iocb requests[PAIRS];
};

static bool has_set(const struct loop *loop)
{
	return loop->kind <= EPOLL_PWAIT;
}

static bool has_mask(const struct loop *loop)
{
	return loop->kind % 2;
}

static bool has_requests(const struct loop *loop)
{
	return loop->kind >= NO_REQUESTS;
}

/* Each of these waits, and returns the call's result. ready[i]: here[i] is ready. */

static int wait_for_set(const struct loop *loop, int ms, bool ready[])
{
	struct epoll_event events[PAIRS];
	int n;

	if (loop->kind == EPOLL_WAIT)
		n = epoll_wait(loop->set, events, PAIRS, ms);
	else
		n = epoll_pwait(loop->set, events, PAIRS, ms, loop->mask);
	for (int i = 0; i < n; i++)
		ready[events[i].data.u32] = true;
	return n;
}

static int poll_all(const struct loop *loop, int ms, bool ready[])
{
	const struct timespec limit = { ms / 1000, ms % 1000 * 1000000 };
	struct pollfd fds[PAIRS];
	int n;

	for (int i = 0; i < loop->count; i++)
		fds[i] = (struct pollfd){ loop->here[i], POLLIN, 0 };
	if (loop->kind == POLL)
		n = poll(fds, (nfds_t)loop->count, ms);
	else
		n = ppoll(fds, (nfds_t)loop->count, ms < 0 ? NULL : &limit,
			  loop->mask);
	for (int i = 0; n >= 0 && i < loop->count; i++)
		ready[i] = fds[i].revents;
	return n;
}

static int select_all(const struct loop *loop, int ms, bool ready[])
{
	const struct timespec limit = { ms / 1000, ms % 1000 * 1000000 };
	struct timeval rest = { ms / 1000, ms % 1000 * 1000 };
	int n, end = 0;
	fd_set fds;

	FD_ZERO(&fds);
	for (int i = 0; i < loop->count; i++) {
		FD_SET(loop->here[i], &fds);
		if (end <= loop->here[i])
			end = loop->here[i] + 1;
	}
	if (loop->kind == SELECT)
		n = select(end, &fds, NULL, NULL, ms < 0 ? NULL : &rest);
	else
		n = pselect(end, &fds, NULL, NULL, ms < 0 ? NULL : &limit,
			    loop->mask);
	for (int i = 0; n >= 0 && i < loop->count; i++)
		ready[i] = FD_ISSET(loop->here[i], &fds);
	return n;
}

static int get_events(const struct loop *loop, long least, long most, int ms,
		      bool ready[])
{
	const struct {
		const sigset_t *mask;
		size_t size;
	} mask = { loop->mask, 8 };
	struct timespec limit = { ms / 1000, ms % 1000 * 1000000 };
	struct io_event events[PAIRS];
	long n;

	if (loop->kind == PGETEVENTS)
		n = syscall(SYS_io_pgetevents, loop->context, least, most,
			    events, ms < 0 ? NULL : &limit, &mask);
	else
		n = syscall(SYS_io_getevents, loop->context, least, most,
			    events, ms < 0 ? NULL : &limit);
	for (long i = 0; i < n; i++)
		ready[events[i].data] = true;
	return (int)n;
}

static int wait_all(const struct loop *loop, int ms, bool ready[])
{
	memset(ready, 0, PAIRS * sizeof(*ready));
	if (has_set(loop))
		return wait_for_set(loop, ms, ready);
	if (has_requests(loop))
		return get_events(loop, 1, PAIRS, ms, ready);
	if (loop->kind <= PPOLL)
		return poll_all(loop, ms, ready);
	return select_all(loop, ms, ready);
}

/* Returns the index of the ready pair; -1: no pair was ready for ms milliseconds. */
static int wait_for(const struct loop *loop, int ms)
{
	bool ready[PAIRS];
	int n = wait_all(loop, ms, ready);

	CHECK(n == 0 || n == 1);
	for (int i = 0; n && i < PAIRS; i++)
		if (ready[i])
			return i;
	CHECK_EQ(n, 0);
	return -1;
}

/* Returns the error of a wait without a time limit, which has to fail. */
static int wait_for_error(const struct loop *loop)
{
	bool ready[PAIRS];

	CHECK_EQ(wait_all(loop, FOR_EVER, ready), -1);
	return errno;
}

/* Adds here[i] to the next wait. */
static void request(struct loop *loop, int i)
{
	struct iocb *request = &loop->requests[i];

	if (!has_requests(loop))
		return;
	*request = (struct iocb){
		.aio_lio_opcode = IOCB_CMD_POLL,
		.aio_fildes = (uint32_t)loop->here[i],
		.aio_buf = POLLIN,
		.aio_data = (uint64_t)i,
	};
	CHECK_EQ(syscall(SYS_io_submit, loop->context, 1L, &request), 1);
}

static void turn(struct loop *loop, int i)
{
	request(loop, i);
	send_byte(loop->there[i]);
	CHECK_EQ(wait_for(loop, FOR_EVER), i);
	receive_byte(loop->here[i]);
	receive_nothing(loop->here[i]);
}

static void control(const struct loop *loop, int what, int i, uint32_t events)
{
	struct epoll_event event = { .events = events,
				     .data.u32 = (uint32_t)i };

	CHECK_EQ(epoll_ctl(loop->set, what, loop->here[i], &event), 0);
}

static struct loop loop_of(enum kind kind, int type)
{
	struct loop loop = { .kind = kind, .count = PAIRS, .set = -1 };

	if (has_set(&loop))
		loop.set = epoll_create1(EPOLL_CLOEXEC);
	if (has_requests(&loop))
		CHECK_EQ(syscall(SYS_io_setup, PAIRS, &loop.context), 0);
	for (int i = 0; i < PAIRS; i++) {
		int pair[2];

		CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM | type, 0, pair), 0);
		loop.here[i] = pair[0];
		loop.there[i] = pair[1];
		if (has_set(&loop))
			control(&loop, EPOLL_CTL_ADD, i, EPOLLIN);
	}
	return loop;
}

/* Returns a loop in which the calling thread has made some turns. */
static struct loop made_loop(enum kind kind)
{
	struct loop loop = loop_of(kind, SOCK_NONBLOCK);

	for (int i = 0; i < TURNS; i++)
		turn(&loop, i % PAIRS);
	return loop;
}

static void close_pairs(const struct loop *loop)
{
	for (int i = 0; i < PAIRS; i++) {
		CHECK_EQ(close(loop->here[i]), 0);
		CHECK_EQ(close(loop->there[i]), 0);
	}
}

static void end_loop(const struct loop *loop)
{
	close_pairs(loop);
	if (has_set(loop))
		CHECK_EQ(close(loop->set), 0);
	if (has_requests(loop))
		CHECK_EQ(syscall(SYS_io_destroy, loop->context), 0);
}

/* The end of the kinds that work here: asynchronous I/O may be missing. */
static enum kind end_of_kinds(void)
{
	aio_context_t context = 0;

	if (syscall(SYS_io_setup, 1, &context))
		return NO_REQUESTS;
	CHECK_EQ(syscall(SYS_io_destroy, context), 0);
	return KINDS;
}

static void need_requests(void)
{
	if (end_of_kinds() < KINDS)
		SKIP("asynchronous I/O doesn't work here: %s", strerror(errno));
}

static enum kind kind_of(void *arg)
{
	return (enum kind)(intptr_t)arg;
}

/* Runs a loop's thread with each kind from "first" up to "end", exclusively. */
static void each_kind(void *(*run)(void *), enum kind first, enum kind end)
{
	for (enum kind kind = first; kind < end; kind++)
		join(start(run, (void *)(intptr_t)kind));
}

/* A loop that answers, beside threads that block. */

static void *answer_all(void *arg)
{
	struct loop *loop = arg, own = made_loop(loop->kind);
	bool ready[PAIRS];

	end_loop(&own);
	for (int i = 0; i < PAIRS; i++)
		request(loop, i);
	for (int left = PAIRS * ROUNDS; left;) {
		int n = wait_all(loop, FOR_EVER, ready);

		CHECK(n > 0);
		left -= n;
		for (int i = 0; i < PAIRS; i++) {
			if (!ready[i])
				continue;
			receive_byte(loop->here[i]);
			request(loop, i);
			send_byte(loop->here[i]);
		}
	}
	return arg;
}

static void *ask(void *arg)
{
	int fd = *(int *)arg;

	CHECK_EQ(fcntl(fd, F_SETFL, O_RDWR), 0);
	for (int i = 0; i < ROUNDS; i++) {
		send_byte(fd);
		receive_byte(fd);
	}
	return arg;
}

TEST_LIMIT(a_loop_answers_threads_that_block, 60)
{
	for (enum kind kind = 0, end = end_of_kinds(); kind < end; kind++) {
		struct loop loop = loop_of(kind, SOCK_NONBLOCK);
		pthread_t threads[PAIRS], thread = start(answer_all, &loop);

		for (int i = 0; i < PAIRS; i++)
			threads[i] = start(ask, &loop.there[i]);
		join_all(threads, PAIRS);
		join(thread);
		end_loop(&loop);
	}
}

/* A thread is an event loop and a blocking thread in turn. */

struct blocks {
	enum kind kind;
	int pair[2];
};

static void *read_by_turns(void *arg)
{
	const struct blocks *blocks = arg;
	struct loop loop = made_loop(blocks->kind);
	char byte;

	for (int i = 0; i < TURNS; i++) {
		CHECK_EQ(read(blocks->pair[1], &byte, 1), 1);
		for (int j = 0; j <= i; j++)
			turn(&loop, j % PAIRS);
		send_byte(blocks->pair[1]);
	}
	end_loop(&loop);
	return NULL;
}

TEST(a_loop_may_block_by_turns)
{
	enum kind kinds = end_of_kinds();
	pthread_t threads[KINDS];
	struct blocks blocks[KINDS];

	for (enum kind i = 0; i < kinds; i++) {
		blocks[i].kind = i;
		CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, blocks[i].pair), 0);
		threads[i] = start(read_by_turns, &blocks[i]);
	}
	for (int turn = 0; turn < TURNS; turn++) {
		for (enum kind i = 0; i < kinds; i++)
			send_byte(blocks[i].pair[0]);
		for (enum kind i = 0; i < kinds; i++)
			receive_byte(blocks[i].pair[0]);
	}
	for (enum kind i = 0; i < kinds; i++)
		join(threads[i]);
}

/* Time limits. */

/*
 * Waits on a carrier, and later on the host: for one descriptor, for all, and for
 * none, a sleep.
 */
static void *time_out(void *arg)
{
	static const int counts[] = { 1, PAIRS, 0 };
	struct loop loop = loop_of(kind_of(arg), SOCK_NONBLOCK);

	for (int i = 0; i < 6; i++) {
		const int ms = i ? 5 * i : 0;
		uint64_t begin = now_ns();

		loop.count = counts[i % 3];
		CHECK_EQ(wait_for(&loop, ms), -1);
		CHECK(now_ns() - begin >= (uint64_t)ms * MS);
		loop.count = PAIRS;
		for (int j = 0; i > 1 && j < TURNS; j++)
			turn(&loop, j % PAIRS);
	}
	end_loop(&loop);
	return NULL;
}

TEST(waits_time_out)
{
	each_kind(time_out, 0, end_of_kinds());
}

/* Descriptors that are closed or removed while the loop waits. */

static void *wait_for_close(void *arg)
{
	struct loop *loop = arg, own = made_loop(loop->kind);
	bool ready[PAIRS];
	int n;

	end_loop(&own);
	stage++;
	/* The closed descriptor may or may not be reported as ready. */
	n = wait_all(loop, FOR_EVER, ready);
	CHECK(n > 0 && ready[0]);
	receive_byte(loop->here[0]);
	/* From now on, the closed descriptor's number is invalid. */
	n = wait_all(loop, has_set(loop) ? 0 : FOR_EVER, ready);
	if (has_set(loop))
		CHECK_EQ(n, 0);
	else if (loop->kind <= PPOLL)
		CHECK(n == 1 && ready[1]);
	else
		CHECK(n == -1 && errno == EBADF);
	return NULL;
}

TEST(one_is_closed_and_others_stay)
{
	for (enum kind kind = 0; kind < NO_REQUESTS; kind++) {
		struct loop loop = loop_of(kind, SOCK_NONBLOCK);
		pthread_t thread;

		stage = 0;
		thread = start(wait_for_close, &loop);
		while (stage < 1)
			usleep(100);
		await_quiet();
		CHECK_EQ(close(loop.here[1]), 0);
		settle();
		send_byte(loop.there[0]);
		join(thread);
		loop.here[1] = dup(loop.here[0]);
		end_loop(&loop);
	}
}

/* Signals. */

static struct loop signalled;

static void tell_loop(int signo)
{
	int err = errno;

	(void)signo;
	handled++;
	send_byte(signalled.there[handled % PAIRS]);
	errno = err;
}

/* The handler writes a byte, which ends the wait: programs often do that. */
static void *make_and_hear(void *arg)
{
	bool ready[PAIRS];

	signalled = made_loop(kind_of(arg));
	for (int i = 1; i <= SIGNALS; i++) {
		int n;

		request(&signalled, i % PAIRS);
		stage++;
		do
			n = wait_all(&signalled, FOR_EVER, ready);
		while (n < 0 && errno == EINTR);
		CHECK_EQ(n, 1);
		CHECK(ready[i % PAIRS]);
		receive_byte(signalled.here[i % PAIRS]);
	}
	return NULL;
}

TEST_LIMIT(no_signal_is_missed, 60)
{
	struct sigaction action = { .sa_handler = tell_loop,
				    .sa_flags = SA_RESTART };

	CHECK_EQ(sigaction(SIGUSR1, &action, NULL), 0);
	for (enum kind kind = 0, end = end_of_kinds(); kind < end; kind++) {
		pthread_t thread;

		stage = 0;
		handled = 0;
		thread = start(make_and_hear, (void *)(intptr_t)kind);
		for (int i = 0; i < SIGNALS; i++) {
			while (stage <= i)
				sched_yield();
			CHECK_EQ(pthread_kill(thread, SIGUSR1), 0);
		}
		join(thread);
		CHECK_EQ(handled, SIGNALS);
		end_loop(&signalled);
	}
}

/*
 * Waits on a carrier, and then on the host. With a mask, the signal can arrive only
 * during the wait.
 */
static void *wait_interrupted(void *arg)
{
	struct loop loop = loop_of(kind_of(arg), SOCK_NONBLOCK);
	const int masked = has_mask(&loop) ? SIG_BLOCK : SIG_UNBLOCK;
	sigset_t open;

	mine = 7;
	pthread_sigmask(SIG_BLOCK, NULL, &open);
	for (int n = TURNS; n <= 2 * TURNS; n += TURNS) {
		block(masked, SIGUSR1);
		loop.mask = &open;
		while (stage < n) {
			CHECK_EQ(wait_for_error(&loop), EINTR);
			CHECK_EQ(where, 7);
			stage++;
		}
		block(SIG_BLOCK, SIGUSR1);
		loop.mask = NULL;
		for (int i = 0; i < TURNS; i++)
			turn(&loop, i % PAIRS);
	}
	end_loop(&loop);
	return NULL;
}

/* A signal that arrives before the wait doesn't end it, so more signals are sent. */
TEST(a_handler_ends_the_wait)
{
	install(SIGUSR1, SA_RESTART);
	for (enum kind kind = 0, end = end_of_kinds(); kind < end; kind++) {
		pthread_t thread;

		stage = 0;
		thread = start(wait_interrupted, (void *)(intptr_t)kind);
		while (stage < 2 * TURNS) {
			CHECK_EQ(pthread_kill(thread, SIGUSR1), 0);
			usleep(1000);
		}
		join(thread);
	}
}

static void *wait_with_mask(void *arg)
{
	struct loop loop = made_loop(kind_of(arg));
	sigset_t open;

	block(SIG_BLOCK, SIGUSR1);
	pthread_sigmask(SIG_BLOCK, NULL, &open);
	sigdelset(&open, SIGUSR1);
	handled = 0;
	for (int i = 0; i < TURNS; i++) {
		CHECK_EQ(pthread_kill(pthread_self(), SIGUSR1), 0);
		loop.mask = NULL;
		CHECK_EQ(wait_for(&loop, 0), -1);
		CHECK_EQ(handled, i);
		loop.mask = &open;
		CHECK_EQ(wait_for_error(&loop), EINTR);
		CHECK_EQ(handled, i + 1);
		loop.mask = NULL;
		turn(&loop, i % PAIRS);
	}
	end_loop(&loop);
	return NULL;
}

TEST(a_mask_holds_for_a_wait)
{
	install(SIGUSR1, 0);
	for (enum kind kind = EPOLL_PWAIT, end = end_of_kinds(); kind < end;
	     kind += 2)
		join(start(wait_with_mask, (void *)(intptr_t)kind));
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
	struct loop loop = made_loop(kind_of(arg));

	pthread_cleanup_push(clean, &loop);
	stage++;
	wait_for(&loop, FOR_EVER);
	pthread_cleanup_pop(0);
	return NULL;
}

/* A wait that finds a descriptor ready is a cancellation point. */
static void *busy_cancelled(void *arg)
{
	struct loop loop = made_loop(kind_of(arg));

	pthread_cleanup_push(clean, &loop);
	send_byte(loop.there[2]);
	stage++;
	for (;;)
		CHECK_EQ(wait_for(&loop, FOR_EVER), 2);
	pthread_cleanup_pop(0);
	return NULL;
}

/* A receive that fails with EAGAIN is a cancellation point. */
static void *receive_cancelled(void *arg)
{
	struct loop loop = made_loop(kind_of(arg));
	char byte;

	pthread_cleanup_push(clean, &loop);
	stage++;
	for (;;)
		CHECK(recv(loop.here[0], &byte, 1, 0) < 0);
	pthread_cleanup_pop(0);
	return NULL;
}

static void *turn_uncancelled(void *arg)
{
	struct loop loop = made_loop(kind_of(arg));

	CHECK_EQ(pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, NULL), 0);
	stage++;
	while (stage < 2)
		turn(&loop, 0);
	turn(&loop, 1);
	end_loop(&loop);
	return NULL;
}

static void cancel(void *(*run)(void *), enum kind kind)
{
	pthread_t thread;

	stage = 0;
	thread = start(run, (void *)(intptr_t)kind);
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

	for (unsigned int i = 0; turns_left(i, NO_REQUESTS * TURNS / 2); i++) {
		cancel(wait_cancelled, i % NO_REQUESTS);
		cancel(busy_cancelled, i % NO_REQUESTS);
		cancel(receive_cancelled, i % NO_REQUESTS);
		cancel(turn_uncancelled, i % NO_REQUESTS);
		CHECK_EQ(cleaned, 3 * (i + 1));
		/* By now the runtime has opened all descriptors of its own. */
		if (!i)
			fds = count_fds();
	}
	CHECK_EQ(count_fds(), fds);
}

/* O_NONBLOCK is a flag of the file: it can be changed through each descriptor. */

static void *hear_slowly(void *arg)
{
	struct loop *out = arg, loop = made_loop(EPOLL_WAIT);
	int copy = dup(loop.here[0]), no = 0;

	*out = loop;
	for (int i = 0; i < 3; i++) {
		CHECK_EQ(i % 2 ? ioctl(copy, FIONBIO, &no) :
				 fcntl(copy, F_SETFL, O_RDWR), 0);
		stage++;
		receive_byte(loop.here[0]);
		CHECK_EQ(fcntl(loop.here[0], F_SETFL, O_RDWR | O_NONBLOCK), 0);
		turn(&loop, 0);
	}
	CHECK_EQ(close(copy), 0);
	return NULL;
}

TEST(a_descriptor_that_becomes_blocking_waits)
{
	struct loop loop;
	pthread_t thread = start(hear_slowly, &loop);

	for (int i = 0; i < 3; i++) {
		while (stage <= i)
			usleep(100);
		settle();
		send_byte(loop.there[0]);
	}
	join(thread);
	end_loop(&loop);
}

static void wait_by_copy(int fd)
{
	int copy = dup(fd);

	CHECK_EQ(fcntl(copy, F_SETFL, O_RDWR), 0);
	CHECK_EQ(close(copy), 0);
}

static void wait_by_pidfd(int fd)
{
	int self = (int)syscall(SYS_pidfd_open, getpid(), 0);
	int copy = (int)syscall(SYS_pidfd_getfd, self, fd, 0);

	CHECK_EQ(fcntl(copy >= 0 ? copy : fd, F_SETFL, O_RDWR), 0);
	close(copy);
	close(self);
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

/* As with a duplicate, but a message passes the descriptor. */
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
	struct loop loop = made_loop(EPOLL_WAIT);
	int *passed = (int *)CMSG_DATA(&control.header);

	*passed = fd;
	CHECK_EQ(sendmsg(loop.there[0], &message, 0), 1);
	*passed = -1;
	vec.iov_base = &(char){ 0 };
	CHECK_EQ(recvmsg(loop.here[0], &message, 0), 1);
	CHECK(*passed >= 0 && *passed != fd);
	CHECK_EQ(fcntl(*passed, F_SETFL, O_RDWR), 0);
	CHECK_EQ(close(*passed), 0);
	end_loop(&loop);
}

#define WAYS		4
static void (*const make_wait[WAYS])(int) = {
	wait_by_copy, wait_by_pidfd, wait_by_child, wait_by_message,
};

static void *hear_cancelled(void *arg)
{
	struct loop loop = made_loop(kind_of(arg));

	make_wait[cleaned % WAYS](loop.here[0]);
	pthread_cleanup_push(clean, &loop);
	stage++;
	receive_byte(loop.here[0]);
	pthread_cleanup_pop(0);
	return NULL;
}

TEST(a_receive_that_becomes_blocking_is_cancelled)
{
	for (int i = 0; i < TURNS; i++) {
		cancel(hear_cancelled, EPOLL_WAIT);
		CHECK_EQ(cleaned, i + 1);
	}
}

/* Asynchronous I/O: waits for several requests. */

static void *wait_for_more(void *arg)
{
	struct loop loop = made_loop(kind_of(arg));
	bool ready[PAIRS] = { false };

	for (int i = 0; i < TURNS; i++) {
		CHECK_EQ(get_events(&loop, 1, PAIRS, 0, ready), 0);
		CHECK_EQ(get_events(&loop, 0, PAIRS, -1, ready), 0);
		request(&loop, 0);
		request(&loop, 1);
		send_byte(loop.there[1]);
		/*
		 * At the end of the time limit one request is complete, of two that
		 * were waited for.
		 */
		CHECK_EQ(get_events(&loop, 2, PAIRS, 3, ready), 1);
		CHECK(ready[1]);
		CHECK_EQ(get_events(&loop, 1, PAIRS, 3, ready), 0);
		request(&loop, 2);
		send_byte(loop.there[0]);
		send_byte(loop.there[2]);
		CHECK_EQ(get_events(&loop, 2, 2, -1, ready), 2);
		for (int k = 0; k < 3; k++) {
			CHECK(ready[k]);
			ready[k] = false;
			receive_byte(loop.here[k]);
		}
	}
	end_loop(&loop);
	return NULL;
}

TEST(a_wait_waits_for_as_many_requests_as_asked_for)
{
	need_requests();
	each_kind(wait_for_more, GETEVENTS, KINDS);
}

static void *wait_until_the_end(void *arg)
{
	struct loop *loop = arg, own = made_loop(loop->kind);

	end_loop(&own);
	stage++;
	CHECK_EQ(wait_for_error(loop), EINVAL);
	return NULL;
}

TEST(a_wait_ends_when_its_last_request_completes)
{
	need_requests();
	for (int i = 0; i < 6; i++) {
		struct loop loop = loop_of(GETEVENTS + i % 2, SOCK_NONBLOCK);
		pthread_t thread;

		stage = 0;
		request(&loop, 0);
		thread = start(wait_until_the_end, &loop);
		while (stage < 1)
			usleep(100);
		usleep(1000);
		CHECK_EQ(syscall(SYS_io_destroy, loop.context), 0);
		join(thread);
		close_pairs(&loop);
	}
}

/*
 * A loop that makes hand-overs leaves its host if the engine can wait on its behalf
 * and the runtime makes the hand-overs. Its earlier waits needed the host.
 */

static struct loop served;
static sem_t handed;

static void *answer_what_is_handed_over(void *arg)
{
	for (;;) {
		sem_wait(&handed);
		if (over)
			return arg;
		send_byte(served.there[0]);
	}
}

static bool stays_on_host(void)
{
	const char *engine = getenv("FLEXSC_TEST_ENGINE");

	return preloaded() && !strcmp(engine, "uring") && !getenv("FLEXSC_PATCH") &&
	       kernel_thread() == syscall(SYS_gettid);
}

static void *hand_over(void *arg)
{
	struct loop first;

	CHECK_EQ(becomes_carried(), preloaded());
	first = made_loop(kind_of(arg));
	served = made_loop(EPOLL_WAIT);
	do {
		sem_post(&handed);
		CHECK_EQ(wait_for(&served, FOR_EVER), 0);
		receive_byte(served.here[0]);
	} while (stays_on_host());
	end_loop(&first);
	end_loop(&served);
	return NULL;
}

TEST(a_loop_that_hands_over_leaves_its_host)
{
	pthread_t thread;

	sem_init(&handed, 0, 0);
	thread = start(answer_what_is_handed_over, NULL);
	each_kind(hand_over, EPOLL_WAIT, end_of_kinds());
	over = true;
	sem_post(&handed);
	join(thread);
}
