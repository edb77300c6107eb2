/* SPDX-License-Identifier: MIT */
/*
 * Event loops by io_getevents() and io_pgetevents(): threads that submit requests
 * of asynchronous I/O and wait for any of them. The requests here are polls of
 * sockets that don't wait, which are complete when another thread wants it. A loop
 * makes some turns first, after which the runtime leaves it at home.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <gnu/libc-version.h>
#include <linux/aio_abi.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#include "bytes.h"
#include "handled.h"

#define PAIRS		4
#define TURNS		20
#define ROUNDS		50
#define SIGNALS		100

struct loop {
	aio_context_t context;
	bool with_mask;		/* wait by io_pgetevents() */
	const sigset_t *mask;
	int here[PAIRS], there[PAIRS];
	struct iocb requests[PAIRS];
};

struct pgetevents_mask {
	const sigset_t *mask;
	size_t size;
};

/* Returns what the call does; which[i]: the pair whose request is complete. */
static int wait_for(const struct loop *loop, long least, long most, long ms,
		    int which[])
{
	const struct pgetevents_mask mask = { loop->mask, 8 };
	struct timespec limit = { ms / 1000, ms % 1000 * 1000000 };
	struct io_event events[PAIRS];
	long n;

	if (loop->with_mask)
		n = syscall(SYS_io_pgetevents, loop->context, least, most,
			    events, ms < 0 ? NULL : &limit, &mask);
	else
		n = syscall(SYS_io_getevents, loop->context, least, most,
			    events, ms < 0 ? NULL : &limit);
	for (long i = 0; i < n; i++)
		which[i] = (int)events[i].data;
	return (int)n;
}

static int wait_for_one(const struct loop *loop)
{
	int which = -1;

	CHECK_EQ(wait_for(loop, 1, PAIRS, -1, &which), 1);
	return which;
}

static void submit(struct loop *loop, int i)
{
	struct iocb *request = &loop->requests[i];

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
	submit(loop, i);
	say(loop->there[i]);
	CHECK_EQ(wait_for_one(loop), i);
	hear(loop->here[i]);
}

static struct loop loop_of(bool with_mask)
{
	struct loop loop = { .with_mask = with_mask };

	if (syscall(SYS_io_setup, PAIRS, &loop.context))
		SKIP("no asynchronous I/O here: %s", strerror(errno));
	for (int i = 0; i < PAIRS; i++) {
		int pair[2];

		CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0,
				    pair), 0);
		loop.here[i] = pair[0];
		loop.there[i] = pair[1];
	}
	return loop;
}

/* A loop that the calling thread has made some turns of. */
static struct loop made_loop(bool with_mask)
{
	struct loop loop = loop_of(with_mask);

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
	CHECK_EQ(syscall(SYS_io_destroy, loop->context), 0);
	close_pairs(loop);
}

static void each_kind(void *(*run)(void *))
{
	for (intptr_t with_mask = 0; with_mask < 2; with_mask++)
		join(start(run, (void *)with_mask));
}

static void *wait_for_more(void *arg)
{
	struct loop loop = made_loop(arg);
	int which[PAIRS];

	for (int i = 0; i < TURNS; i++) {
		CHECK_EQ(wait_for(&loop, 1, PAIRS, 0, which), 0);
		CHECK_EQ(wait_for(&loop, 0, PAIRS, -1, which), 0);
		submit(&loop, 0);
		submit(&loop, 1);
		say(loop.there[1]);
		/* One request is complete when the time is over, and two were wanted. */
		CHECK_EQ(wait_for(&loop, 2, PAIRS, 3, which), 1);
		CHECK_EQ(which[0], 1);
		CHECK_EQ(wait_for(&loop, 1, PAIRS, 3, which), 0);
		submit(&loop, 2);
		say(loop.there[0]);
		say(loop.there[2]);
		CHECK_EQ(wait_for(&loop, 2, 2, -1, which), 2);
		CHECK_EQ(which[0] + which[1], 2);
		for (int k = 0; k < 3; k++)
			hear(loop.here[k]);
	}
	end_loop(&loop);
	return NULL;
}

TEST(a_wait_is_for_as_many_as_it_says)
{
	each_kind(wait_for_more);
}

/* A loop that answers, and threads beside it that block. */

static void *answer(void *arg)
{
	struct loop *loop = arg;
	int which[PAIRS];

	for (int i = 0; i < PAIRS; i++)
		submit(loop, i);
	for (int left = PAIRS * ROUNDS; left;) {
		int n = wait_for(loop, 1, PAIRS, -1, which);

		CHECK(n > 0);
		left -= n;
		while (n-- > 0) {
			hear(loop->here[which[n]]);
			submit(loop, which[n]);
			say(loop->here[which[n]]);
		}
	}
	return NULL;
}

static void *ask(void *arg)
{
	int fd = *(int *)arg;

	CHECK_EQ(fcntl(fd, F_SETFL, O_RDWR), 0);
	for (int i = 0; i < ROUNDS; i++) {
		say(fd);
		hear(fd);
	}
	return NULL;
}

TEST(a_loop_answers_threads_that_block)
{
	for (int with_mask = 0; with_mask < 2; with_mask++) {
		struct loop loop = loop_of(with_mask);
		pthread_t threads[PAIRS], thread = start(answer, &loop);

		for (int i = 0; i < PAIRS; i++)
			threads[i] = start(ask, &loop.there[i]);
		for (int i = 0; i < PAIRS; i++)
			join(threads[i]);
		join(thread);
		end_loop(&loop);
	}
}

static void *block_by_turns(void *arg)
{
	struct loop loop = made_loop(arg);
	int pair[2];
	char byte;

	CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
	for (int i = 0; i < 5 * TURNS; i++) {
		turn(&loop, i % PAIRS);
		say(pair[1]);
		CHECK_EQ(read(pair[0], &byte, 1), 1);
		if (i % TURNS == 0)
			usleep(1000);
	}
	CHECK_EQ(close(pair[0]) + close(pair[1]), 0);
	end_loop(&loop);
	return NULL;
}

TEST(a_loop_may_block_by_turns)
{
	each_kind(block_by_turns);
}

/* The end of a context that a thread waits for. */

static void *wait_until_the_end(void *arg)
{
	struct loop *loop = arg, own = made_loop(loop->with_mask);
	int which[PAIRS];

	end_loop(&own);
	stage++;
	CHECK_EQ(wait_for(loop, 1, PAIRS, -1, which), -1);
	CHECK_EQ(errno, EINVAL);
	return NULL;
}

TEST(a_wait_ends_with_what_it_waits_for)
{
	for (int i = 0; i < TURNS; i++) {
		struct loop loop = loop_of(i % 2);
		pthread_t thread;

		stage = 0;
		submit(&loop, 0);
		thread = start(wait_until_the_end, &loop);
		while (stage < 1)
			usleep(100);
		usleep(1000);
		CHECK_EQ(syscall(SYS_io_destroy, loop.context), 0);
		join(thread);
		close_pairs(&loop);
	}
}

/* Signals. */

static void *wait_interrupted(void *arg)
{
	struct loop loop = made_loop(arg);
	int which[PAIRS];

	mine = 7;
	while (stage < TURNS) {
		CHECK_EQ(wait_for(&loop, 1, PAIRS, -1, which), -1);
		CHECK_EQ(errno, EINTR);
		CHECK_EQ(where, 7);
		stage++;
	}
	block(SIG_BLOCK, SIGUSR1);
	turn(&loop, 0);
	end_loop(&loop);
	return NULL;
}

/* A signal that comes before the wait doesn't end it, so more are sent. */
TEST(a_handler_ends_the_wait)
{
	install(SIGUSR1, SA_RESTART);
	for (intptr_t with_mask = 0; with_mask < 2; with_mask++) {
		pthread_t thread;

		stage = 0;
		thread = start(wait_interrupted, (void *)with_mask);
		while (stage < TURNS) {
			CHECK_EQ(pthread_kill(thread, SIGUSR1), 0);
			usleep(1000);
		}
		join(thread);
	}
}

/* As programs do, the handler writes a byte, which ends the wait. */

static struct loop signalled;

static void tell_loop(int signo)
{
	int err = errno;

	(void)signo;
	handled++;
	say(signalled.there[0]);
	errno = err;
}

static void *hear_signals(void *arg)
{
	int which[PAIRS];

	signalled = made_loop(arg);
	stage++;
	for (int i = 0; i < SIGNALS; i++) {
		int n;

		submit(&signalled, 0);
		do
			n = wait_for(&signalled, 1, PAIRS, -1, which);
		while (n < 0 && errno == EINTR);
		CHECK_EQ(n, 1);
		hear(signalled.here[0]);
		stage++;
	}
	return NULL;
}

TEST(no_signal_is_missed)
{
	struct sigaction action = { .sa_handler = tell_loop,
				    .sa_flags = SA_RESTART };

	CHECK_EQ(sigaction(SIGUSR1, &action, NULL), 0);
	for (intptr_t with_mask = 0; with_mask < 2; with_mask++) {
		pthread_t thread;

		stage = 0;
		thread = start(hear_signals, (void *)with_mask);
		for (int i = 0; i < SIGNALS; i++) {
			while (stage <= i)
				sched_yield();
			CHECK_EQ(pthread_kill(thread, SIGUSR1), 0);
		}
		join(thread);
		end_loop(&signalled);
	}
	CHECK_EQ(handled, 2 * SIGNALS);
}

static void *wait_with_mask(void *arg)
{
	struct loop loop = made_loop(true);
	int which[PAIRS];
	sigset_t open;

	block(SIG_BLOCK, SIGUSR1);
	pthread_sigmask(SIG_BLOCK, NULL, &open);
	sigdelset(&open, SIGUSR1);
	for (int i = 0; i < TURNS; i++) {
		CHECK_EQ(pthread_kill(pthread_self(), SIGUSR1), 0);
		loop.mask = NULL;
		CHECK_EQ(wait_for(&loop, 1, PAIRS, 0, which), 0);
		CHECK_EQ(handled, i);
		loop.mask = &open;
		CHECK_EQ(wait_for(&loop, 1, PAIRS, -1, which), -1);
		CHECK_EQ(errno, EINTR);
		CHECK_EQ(handled, i + 1);
		loop.mask = NULL;
		turn(&loop, i % PAIRS);
	}
	end_loop(&loop);
	return arg;
}

TEST(a_mask_holds_for_a_wait)
{
	install(SIGUSR1, 0);
	join(start(wait_with_mask, NULL));
}

/* Cancellation: syscall(2) is no cancellation point. */

static void *wait_cancelled(void *arg)
{
	struct loop *loop = arg;

	for (int i = 0; i < TURNS; i++)
		turn(loop, i % PAIRS);
	submit(loop, 0);
	stage++;
	CHECK_EQ(wait_for_one(loop), 0);
	stage++;
	pthread_testcancel();
	return NULL;
}

TEST(a_wait_is_over_before_a_cancellation)
{
	if (strverscmp(gnu_get_libc_version(), "2.41") >= 0)
		SKIP("from glibc 2.41 on the cancellation interrupts the wait");
	for (int with_mask = 0; with_mask < 2; with_mask++) {
		struct loop loop = loop_of(with_mask);
		pthread_t thread;

		stage = 0;
		thread = start(wait_cancelled, &loop);
		while (stage < 1)
			usleep(100);
		usleep(1000);
		CHECK_EQ(pthread_cancel(thread), 0);
		settle();
		CHECK_EQ(stage, 1);
		say(loop.there[0]);
		CHECK_EQ(join(thread), PTHREAD_CANCELED);
		CHECK_EQ(stage, 2);
		end_loop(&loop);
	}
}
