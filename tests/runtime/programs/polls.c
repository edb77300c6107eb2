/* SPDX-License-Identifier: MIT */
/*
 * Event loops by poll(), ppoll(), select() and pselect(): threads that wait for
 * any of several descriptors, which mostly have O_NONBLOCK. Tests are made with
 * each of the four calls. A loop makes some turns first, after which the runtime
 * leaves it at home; then it meets descriptors, signals and cancellations.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <poll.h>
#include <sys/select.h>
#include <sys/signalfd.h>
#include <sys/socket.h>

#include "bytes.h"
#include "handled.h"

#define MANY_FDS	8
#define TURNS		20
#define ROUNDS		50
#define SIGNALS		100
#define FOR_EVER	(-1)

enum kind { POLL, PPOLL, SELECT, PSELECT, KINDS };

struct loop {
	enum kind kind;
	const sigset_t *mask;	/* for ppoll() and pselect() */
	int count;
	int here[MANY_FDS], there[MANY_FDS];	/* pairs; "here" is waited for */
};

/* Returns what the call does; ready[i]: here[i] is ready. */
static int poll_all(const struct loop *loop, int ms, bool ready[])
{
	const struct timespec limit = { ms / 1000, ms % 1000 * 1000000 };
	struct pollfd fds[MANY_FDS];
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

static int wait_all(const struct loop *loop, int ms, bool ready[])
{
	if (loop->kind == POLL || loop->kind == PPOLL)
		return poll_all(loop, ms, ready);
	return select_all(loop, ms, ready);
}

/* The index of the pair that is ready; -1: none was for ms milliseconds. */
static int wait_for(const struct loop *loop, int ms)
{
	bool ready[MANY_FDS];
	int n = wait_all(loop, ms, ready);

	CHECK(n == 0 || n == 1);
	for (int i = 0; n && i < loop->count; i++)
		if (ready[i])
			return i;
	CHECK_EQ(n, 0);
	return -1;
}

/* The error of a wait without a time limit, which has to fail. */
static int wait_for_error(const struct loop *loop)
{
	bool ready[MANY_FDS];

	CHECK_EQ(wait_all(loop, FOR_EVER, ready), -1);
	return errno;
}

static void turn(const struct loop *loop, int which)
{
	say(loop->there[which]);
	CHECK_EQ(wait_for(loop, FOR_EVER), which);
	hear(loop->here[which]);
	hear_nothing(loop->here[which]);
}

static struct loop loop_of(enum kind kind, int type)
{
	struct loop loop = { .kind = kind, .count = MANY_FDS };

	for (int i = 0; i < loop.count; i++) {
		int pair[2];

		CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM | type, 0, pair), 0);
		loop.here[i] = pair[0];
		loop.there[i] = pair[1];
	}
	return loop;
}

/* A loop that the calling thread has made some turns of. */
static struct loop made_loop(enum kind kind)
{
	struct loop loop = loop_of(kind, SOCK_NONBLOCK);

	for (int i = 0; i < TURNS; i++)
		turn(&loop, i % MANY_FDS);
	return loop;
}

static void end_loop(const struct loop *loop)
{
	for (int i = 0; i < MANY_FDS; i++) {
		CHECK_EQ(close(loop->here[i]), 0);
		CHECK_EQ(close(loop->there[i]), 0);
	}
}

/* Run a loop's thread with each kind of wait. */
static void each_kind(void *(*run)(void *))
{
	for (intptr_t kind = POLL; kind < KINDS; kind++)
		join(start(run, (void *)kind));
}

static enum kind kind_of(void *arg)
{
	return (enum kind)(intptr_t)arg;
}

/* A loop that answers, and threads beside it that block. */

static void answer(const struct loop *loop, const bool ready[])
{
	for (int i = 0; i < loop->count; i++) {
		if (!ready[i])
			continue;
		hear(loop->here[i]);
		say(loop->here[i]);
	}
}

static void *answer_all(void *arg)
{
	struct loop *loop = arg, own = made_loop(loop->kind);
	bool ready[MANY_FDS];

	end_loop(&own);
	for (int left = MANY_FDS * ROUNDS; left;) {
		int n = wait_all(loop, FOR_EVER, ready);

		CHECK(n > 0);
		answer(loop, ready);
		left -= n;
	}
	return arg;
}

static void *ask(void *arg)
{
	int fd = *(int *)arg;

	CHECK_EQ(fcntl(fd, F_SETFL, O_RDWR), 0);
	for (int i = 0; i < ROUNDS; i++) {
		say(fd);
		hear(fd);
	}
	return arg;
}

TEST_LIMIT(a_loop_answers_threads_that_block, 60)
{
	for (int kind = POLL; kind < KINDS; kind++) {
		struct loop loop = loop_of((enum kind)kind, SOCK_NONBLOCK);
		pthread_t threads[MANY_FDS], thread = start(answer_all, &loop);

		for (int i = 0; i < MANY_FDS; i++)
			threads[i] = start(ask, &loop.there[i]);
		for (int i = 0; i < MANY_FDS; i++)
			join(threads[i]);
		join(thread);
		end_loop(&loop);
	}
}

/* A thread may be an event loop now, and block then. */

static void *block_by_turns(void *arg)
{
	struct loop loop = made_loop(kind_of(arg)), other;
	char byte;

	other = loop_of(loop.kind, 0);
	for (int i = 0; i < 5 * TURNS; i++) {
		turn(&loop, i % MANY_FDS);
		say(other.there[0]);
		CHECK_EQ(read(other.here[0], &byte, 1), 1);
		if (i % TURNS == 0)
			usleep(1000);
	}
	end_loop(&other);
	end_loop(&loop);
	return NULL;
}

TEST(a_loop_may_block_by_turns)
{
	each_kind(block_by_turns);
}

struct told {
	struct loop *loop;
	int fd;
};

static void *block_after_all(void *arg)
{
	struct told *told = arg;
	struct loop own = made_loop(told->loop->kind);

	stage++;
	hear(told->fd);
	for (int i = 0; i < TURNS; i++)
		turn(&own, i % MANY_FDS);
	stage++;
	hear(told->fd);
	end_loop(&own);
	return NULL;
}

TEST(a_loop_may_block_in_the_end)
{
	for (int kind = POLL; kind < KINDS; kind++) {
		struct loop loop = loop_of((enum kind)kind, 0);
		struct told told = { &loop, loop.here[0] };
		pthread_t thread;

		stage = 0;
		thread = start(block_after_all, &told);
		for (int i = 1; i <= 2; i++) {
			while (stage < i)
				usleep(100);
			settle();
			say(loop.there[0]);
		}
		join(thread);
		end_loop(&loop);
	}
}

/* Without O_NONBLOCK: what the wait has found is there, for the only reader. */
static void *hear_what_blocks(void *arg)
{
	struct loop loop = loop_of(kind_of(arg), 0);

	for (int i = 0; i < 5 * TURNS; i++) {
		say(loop.there[i % MANY_FDS]);
		CHECK_EQ(wait_for(&loop, FOR_EVER), i % MANY_FDS);
		hear(loop.here[i % MANY_FDS]);
	}
	CHECK_EQ(wait_for(&loop, 0), -1);
	end_loop(&loop);
	return NULL;
}

TEST(descriptors_may_be_such_that_wait)
{
	each_kind(hear_what_blocks);
}

/* A thread that waits for one descriptor isn't an event loop. */
static void *shrink_and_grow(void *arg)
{
	struct loop loop = made_loop(kind_of(arg));

	for (int i = 0; i < 5 * TURNS; i++) {
		loop.count = 1 + i % 3;
		turn(&loop, loop.count - 1);
		CHECK_EQ(wait_for(&loop, 0), -1);
	}
	loop.count = 1;
	for (int i = 0; i < TURNS; i++)
		turn(&loop, 0);
	loop.count = 2;
	turn(&loop, 1);
	end_loop(&loop);
	return NULL;
}

TEST(a_list_shrinks_and_grows)
{
	each_kind(shrink_and_grow);
}

/* Time limits. */

static uint64_t now(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return (uint64_t)time.tv_sec * SECOND + (uint64_t)time.tv_nsec;
}

static void *time_out(void *arg)
{
	struct loop loop = made_loop(kind_of(arg));
	struct timeval rest = { 10, 0 };
	bool ready[MANY_FDS];
	uint64_t begin;
	fd_set fds;

	for (int ms = 0; ms < 5; ms++) {
		begin = now();
		CHECK_EQ(wait_all(&loop, ms, ready), 0);
		CHECK(now() - begin >= (uint64_t)ms * MS);
		turn(&loop, ms);
	}
	/* A wait for no descriptors is a sleep. */
	loop.count = 0;
	begin = now();
	CHECK_EQ(wait_all(&loop, 3, ready), 0);
	CHECK(now() - begin >= 3 * MS);
	/* select() stores what is left of its time limit. */
	FD_ZERO(&fds);
	FD_SET(loop.here[0], &fds);
	say(loop.there[0]);
	CHECK_EQ(select(loop.here[0] + 1, &fds, NULL, NULL, &rest), 1);
	CHECK(rest.tv_sec < 10 && rest.tv_sec > 5);
	end_loop(&loop);
	return NULL;
}

TEST(waits_time_out)
{
	each_kind(time_out);
}

/* Descriptors that go while the loop waits. */

static void *wait_until_told(void *arg)
{
	struct loop *loop = arg, own = made_loop(loop->kind);
	bool ready[MANY_FDS];
	int n;

	end_loop(&own);
	stage++;
	/* The closed descriptor may be among the ready ones, or not. */
	n = wait_all(loop, FOR_EVER, ready);
	CHECK(n > 0 && ready[0]);
	hear(loop->here[0]);
	/* The closed descriptor's number means nothing any more. */
	n = wait_all(loop, FOR_EVER, ready);
	if (loop->kind == POLL || loop->kind == PPOLL)
		CHECK(n == 1 && ready[1]);
	else
		CHECK(n == -1 && errno == EBADF);
	return NULL;
}

TEST(one_is_closed_and_others_stay)
{
	for (int kind = POLL; kind < KINDS; kind++) {
		struct loop loop = loop_of((enum kind)kind, SOCK_NONBLOCK);
		pthread_t thread;

		stage = 0;
		thread = start(wait_until_told, &loop);
		while (stage < 1)
			usleep(100);
		settle();
		CHECK_EQ(close(loop.here[1]), 0);
		settle();
		say(loop.there[0]);
		join(thread);
		loop.here[1] = dup(loop.here[0]);
		end_loop(&loop);
	}
}

static void *fork_a_loop(void *arg)
{
	struct loop loop = made_loop(kind_of(arg));

	for (int i = 0; i < 3; i++) {
		int child = test_fork();

		if (!child) {
			struct loop own = made_loop(loop.kind);

			CHECK_EQ(wait_for(&loop, FOR_EVER), i);
			hear(loop.here[i]);
			end_loop(&own);
			test_leave();
		}
		say(loop.there[i]);
		test_reap(child);
		CHECK_EQ(wait_for(&loop, 0), -1);
		turn(&loop, i);
	}
	end_loop(&loop);
	return NULL;
}

TEST(a_child_has_the_loop_too)
{
	each_kind(fork_a_loop);
}

/* Signals. */

static void *hear_signals(void *arg)
{
	struct loop loop = made_loop(kind_of(arg));
	struct signalfd_siginfo info;
	int fd, old = loop.here[1];
	sigset_t user;

	block(SIG_BLOCK, SIGUSR1);
	sigemptyset(&user);
	sigaddset(&user, SIGUSR1);
	fd = signalfd(-1, &user, SFD_NONBLOCK);
	loop.here[1] = fd;
	for (int i = 0; i < TURNS; i++) {
		turn(&loop, 0);
		CHECK_EQ(pthread_kill(pthread_self(), SIGUSR1), 0);
		CHECK_EQ(wait_for(&loop, FOR_EVER), 1);
		CHECK_EQ(read(fd, &info, sizeof(info)), sizeof(info));
		CHECK_EQ(info.ssi_signo, SIGUSR1);
	}
	CHECK_EQ(close(fd), 0);
	loop.here[1] = old;
	end_loop(&loop);
	return NULL;
}

TEST(a_signalfd_is_in_the_list)
{
	each_kind(hear_signals);
}

static struct loop signalled;

static void tell_loop(int signo)
{
	int err = errno;

	(void)signo;
	handled++;
	say(signalled.there[handled % MANY_FDS]);
	errno = err;
}

/* As programs do, the handler writes a byte, which ends the wait. */
static void *make_and_hear(void *arg)
{
	bool ready[MANY_FDS];

	signalled = made_loop(kind_of(arg));
	stage++;
	for (int i = 1; i <= SIGNALS; i++) {
		int n;

		do
			n = wait_all(&signalled, FOR_EVER, ready);
		while (n < 0 && errno == EINTR);
		CHECK_EQ(n, 1);
		CHECK(ready[i % MANY_FDS]);
		hear(signalled.here[i % MANY_FDS]);
		stage++;
	}
	return NULL;
}

TEST_LIMIT(no_signal_is_missed, 60)
{
	struct sigaction action = { .sa_handler = tell_loop,
				    .sa_flags = SA_RESTART };

	CHECK_EQ(sigaction(SIGUSR1, &action, NULL), 0);
	for (intptr_t kind = POLL; kind < KINDS; kind++) {
		pthread_t thread;

		stage = 0;
		handled = 0;
		thread = start(make_and_hear, (void *)kind);
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

static void *wait_interrupted(void *arg)
{
	struct loop loop = made_loop(kind_of(arg));

	mine = 7;
	while (stage < TURNS) {
		CHECK_EQ(wait_for_error(&loop), EINTR);
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
	for (intptr_t kind = POLL; kind < KINDS; kind++) {
		pthread_t thread;

		stage = 0;
		thread = start(wait_interrupted, (void *)kind);
		while (stage < TURNS) {
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
		turn(&loop, i % MANY_FDS);
	}
	end_loop(&loop);
	return NULL;
}

TEST(a_mask_holds_for_a_wait)
{
	install(SIGUSR1, 0);
	join(start(wait_with_mask, (void *)(intptr_t)PPOLL));
	join(start(wait_with_mask, (void *)(intptr_t)PSELECT));
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

/* A wait that finds a descriptor ready is a cancellation point, too. */
static void *busy_cancelled(void *arg)
{
	struct loop loop = made_loop(kind_of(arg));

	pthread_cleanup_push(clean, &loop);
	say(loop.there[2]);
	stage++;
	for (;;)
		CHECK_EQ(wait_for(&loop, FOR_EVER), 2);
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

static void cancel(void *(*run)(void *), intptr_t kind)
{
	pthread_t thread;

	stage = 0;
	thread = start(run, (void *)kind);
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

	for (int i = 0; i < KINDS * TURNS; i++) {
		cancel(wait_cancelled, i % KINDS);
		cancel(busy_cancelled, i % KINDS);
		cancel(turn_uncancelled, i % KINDS);
		CHECK_EQ(cleaned, 2 * (i + 1));
		/* The runtime has opened all descriptors of its own by now. */
		if (!i)
			fds = count_fds();
	}
	CHECK_EQ(count_fds(), fds);
}
