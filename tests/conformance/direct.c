/* SPDX-License-Identifier: MIT */
/*
 * Calls that an engine takes without an entry (lib/loop/direct.h) in each state
 * that they can be in: not submitted, in the kernel, complete and not
 * dispatched. Each engine has to pass, whether it has such calls or not. The
 * descriptors are known to the library: that makes reads of them direct.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "../harness.h"

#define CALLS	64U

static unsigned int done;	/* callbacks, of all calls */

static void count_done(struct flexsc_cb *cb)
{
	((struct call *)cb)->runs++;
	done++;
}

static void init(struct call *calls, unsigned int n,
		 void (*callback)(struct flexsc_cb *cb))
{
	done = 0;
	memset(calls, 0, n * sizeof(*calls));
	for (unsigned int i = 0; i < n; i++)
		calls[i].cb.callback = callback;
}

/* A pair of connected sockets that have been read from. */
static void known_pair(struct flexsc_loop *loop, int p[2])
{
	char c;

	CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, p), 0);
	CHECK_EQ(write(p[1], "k", 1), 1);
	CHECK_EQ(DO(loop, SYS_read, p[0], &c, 1), 1);
}

static void feed(int fd, unsigned int n)
{
	char bytes[4096] = { 0 };

	while (n) {
		ssize_t wrote = write(fd, bytes, n < 4096 ? n : 4096);

		CHECK(wrote > 0);
		n -= (unsigned int)wrote;
	}
}

/* How many bytes can be read at once? Reads them. */
static unsigned int left(int fd)
{
	char bytes[4096];
	unsigned int n = 0;
	ssize_t got;

	while ((got = recv(fd, bytes, sizeof(bytes), MSG_DONTWAIT)) > 0)
		n += (unsigned int)got;
	return n;
}

static void check_each_once(const struct call *calls, unsigned int n)
{
	for (unsigned int i = 0; i < n; i++)
		CHECK_EQ(calls[i].runs, 1);
	CHECK_EQ(done, n);
}

/* Each call has read a byte, or was cancelled and has not; all bytes are there. */
static void check_bytes(const struct call *calls, unsigned int n, int fd,
			unsigned int fed)
{
	unsigned int read = 0;

	check_each_once(calls, n);
	for (unsigned int i = 0; i < n; i++) {
		CHECK(calls[i].cb.ret == 1 || is_cancelled(calls[i].cb.ret));
		read += calls[i].cb.ret == 1;
	}
	CHECK_EQ(read + left(fd), fed);
}

static void post_reads(struct flexsc_loop *loop, struct call *calls,
		       unsigned int n, int fd)
{
	static char byte;

	for (unsigned int i = 0; i < n; i++)
		POST(loop, &calls[i], SYS_read, fd, &byte, 1);
}

/* Cancelling. */

TEST(a_known_read_cancelled_before_it_starts_reads_nothing)
{
	struct flexsc_loop *loop = test_loop();
	struct call calls[CALLS];
	int p[2];

	known_pair(loop, p);
	feed(p[1], CALLS);
	init(calls, CALLS, count_done);
	post_reads(loop, calls, CALLS, p[0]);
	for (unsigned int i = 0; i < CALLS; i += 2)
		CHECK_EQ(flexsc_loop_cancel(loop, &calls[i].cb), 0);
	CHECK_EQ(flexsc_loop_cancel(loop, &calls[0].cb), -ENOENT);
	CHECK_EQ(flexsc_loop_run(loop), 0);
	for (unsigned int i = 0; i < CALLS; i++)
		CHECK_EQ(calls[i].cb.ret, i % 2 ? 1 : -ECANCELED);
	check_bytes(calls, CALLS, p[0], CALLS);
	CHECK_EQ(stats_of(loop).cancelled, CALLS / 2);
	CHECK_EQ(stats_of(loop).outstanding, 0);
	CHECK_EQ(flexsc_loop_destroy(loop), 0);
}

TEST(a_close_cancelled_before_it_starts_closes_nothing)
{
	struct flexsc_loop *loop = test_loop();
	struct call calls[2];
	int p[2];

	known_pair(loop, p);
	init(calls, 2, count_done);
	POST(loop, &calls[0], SYS_close, p[0]);
	POST(loop, &calls[1], SYS_close, p[1]);
	CHECK_EQ(flexsc_loop_cancel_fd(loop, p[0]), 1);
	CHECK_EQ(flexsc_loop_run(loop), 0);
	check_each_once(calls, 2);
	CHECK_EQ(calls[0].cb.ret, -ECANCELED);
	CHECK_EQ(calls[1].cb.ret, 0);
	CHECK(fcntl(p[0], F_GETFD) >= 0);
	CHECK_EQ(fcntl(p[1], F_GETFD), -1);
	CHECK_EQ(flexsc_loop_destroy(loop), 0);
}

/* The cb is the program's again as soon as its callback has run. */
TEST(a_cb_may_be_posted_anew_right_after_it_was_cancelled)
{
	struct flexsc_loop *loop = test_loop();
	struct call calls[2];
	int p[2];

	known_pair(loop, p);
	feed(p[1], 2);
	init(calls, 2, count_done);
	post_reads(loop, calls, 2, p[0]);
	CHECK_EQ(flexsc_loop_cancel(loop, &calls[1].cb), 0);
	CHECK(flexsc_loop_dispatch(loop) > 0);
	CHECK_EQ(calls[1].runs, 1);
	post_reads(loop, &calls[1], 1, p[0]);
	CHECK_EQ(flexsc_loop_run(loop), 0);
	CHECK_EQ(calls[1].runs, 2);
	CHECK_EQ(calls[1].cb.ret, 1);
	CHECK_EQ(done, 3);
	CHECK_EQ(flexsc_loop_destroy(loop), 0);
}

TEST(known_reads_that_wait_are_cancelled)
{
	struct flexsc_loop *loop = test_loop();
	struct call calls[CALLS];
	int p[2];

	NEEDS_WAITING_ENGINE();
	known_pair(loop, p);
	init(calls, CALLS, count_done);
	post_reads(loop, calls, CALLS, p[0]);
	run_for(loop, 20);
	for (unsigned int i = 0; i < CALLS / 2; i++)
		CHECK_EQ(flexsc_loop_cancel(loop, &calls[i].cb), 0);
	CHECK(run_until(loop, &done, CALLS / 2, 5000));
	CHECK_EQ(flexsc_loop_cancel_fd(loop, p[0]), CALLS / 2);
	CHECK_EQ(flexsc_loop_cancel_fd(loop, p[0]), 0);
	CHECK_EQ(flexsc_loop_run(loop), 0);
	check_bytes(calls, CALLS, p[0], 0);
	CHECK_EQ(stats_of(loop).cancelled, CALLS);
	CHECK_EQ(flexsc_loop_destroy(loop), 0);
}

static struct flexsc_loop *the_loop;
static struct call *the_calls;

static void cancel_all(struct flexsc_cb *cb)
{
	count_done(cb);
	for (unsigned int i = 0; done == 1 && i < CALLS; i++)
		flexsc_loop_cancel(the_loop, &the_calls[i].cb);
}

/* Some of them are complete by then, and nobody has looked at them. */
TEST(a_callback_cancels_the_rest_of_its_batch)
{
	struct flexsc_loop *loop = test_loop();
	struct call calls[CALLS];
	int p[2];

	known_pair(loop, p);
	feed(p[1], CALLS);
	init(calls, CALLS, cancel_all);
	the_loop = loop;
	the_calls = calls;
	post_reads(loop, calls, CALLS, p[0]);
	CHECK_EQ(flexsc_loop_run(loop), 0);
	check_bytes(calls, CALLS, p[0], CALLS);
	CHECK_EQ(flexsc_loop_destroy(loop), 0);
}

static int the_fd, cancelled;

static void cancel_fd(struct flexsc_cb *cb)
{
	count_done(cb);
	if (done == 1)
		cancelled = flexsc_loop_cancel_fd(the_loop, the_fd);
}

/* A call that is complete isn't pending: it isn't counted. */
TEST(a_callback_cancels_what_is_left_on_a_descriptor)
{
	struct flexsc_loop *loop = test_loop();
	struct call calls[CALLS];
	int64_t ended = 0;
	int p[2];

	known_pair(loop, p);
	feed(p[1], CALLS / 2);
	if (!strcmp(test_engine(), "sync"))
		feed(p[1], CALLS / 2);
	init(calls, CALLS, cancel_fd);
	the_loop = loop;
	the_fd = p[0];
	post_reads(loop, calls, CALLS, p[0]);
	CHECK_EQ(flexsc_loop_run(loop), 0);
	for (unsigned int i = 0; i < CALLS; i++)
		ended += is_cancelled(calls[i].cb.ret);
	CHECK(cancelled >= ended);
	/* Only calls that raced with this one were counted and had a result. */
	if (!strcmp(test_engine(), "uring") && !getenv("FLEXSC_TEST_SQPOLL"))
		CHECK_EQ(cancelled, CALLS / 2);
	check_each_once(calls, CALLS);
	CHECK_EQ(flexsc_loop_destroy(loop), 0);
}

/* Ends of a loop, and stops. */

TEST(a_loop_is_destroyed_with_calls_in_each_state)
{
	struct flexsc_loop *loop = test_loop();
	struct call calls[3 * CALLS];
	int p[2], q[2];

	NEEDS_WAITING_ENGINE();
	known_pair(loop, p);
	known_pair(loop, q);
	init(calls, 3 * CALLS, count_done);
	/* In the kernel; complete; not submitted. */
	post_reads(loop, calls, CALLS, p[0]);
	feed(q[1], CALLS);
	post_reads(loop, calls + CALLS, CALLS, q[0]);
	CHECK_EQ(flexsc_loop_submit(loop), 0);
	CHECK_EQ(flexsc_loop_wait(loop, 5 * SECOND), 1);
	post_reads(loop, calls + 2 * CALLS, CALLS, p[0]);
	CHECK_EQ(done, 0);
	CHECK_EQ(flexsc_loop_destroy(loop), 0);
	check_each_once(calls, 3 * CALLS);
	for (unsigned int i = 0; i < 3 * CALLS; i++)
		CHECK(i / CALLS == 1 ? calls[i].cb.ret == 1 ||
					       is_cancelled(calls[i].cb.ret) :
				       is_cancelled(calls[i].cb.ret));
}

static void stop_at_ten(struct flexsc_cb *cb)
{
	count_done(cb);
	if (done == 10)
		CHECK_EQ(flexsc_loop_stop(the_loop), 0);
}

TEST(what_a_stop_leaves_comes_in_the_next_run)
{
	struct flexsc_loop *loop = test_loop();
	struct call calls[CALLS];

	the_loop = loop;
	init(calls, CALLS, stop_at_ten);
	for (unsigned int i = 0; i < CALLS; i++)
		POST(loop, &calls[i], SYS_close, -1);
	CHECK_EQ(flexsc_loop_run(loop), 0);
	CHECK_EQ(done, 10);
	CHECK_EQ(stats_of(loop).outstanding, CALLS - 10);
	/* A wait finds them, too. */
	CHECK_EQ(flexsc_loop_wait(loop, 5 * SECOND), 1);
	CHECK_EQ(done, 10);
	CHECK_EQ(flexsc_loop_run(loop), 0);
	check_each_once(calls, CALLS);
	for (unsigned int i = 0; i < CALLS; i++)
		CHECK_EQ(calls[i].cb.ret, -EBADF);
	CHECK_EQ(flexsc_loop_destroy(loop), 0);
}

TEST(a_wait_that_finds_no_call_says_so)
{
	struct flexsc_loop *loop = test_loop();
	struct call calls[1];
	int p[2];

	NEEDS_WAITING_ENGINE();
	known_pair(loop, p);
	init(calls, 1, count_done);
	post_reads(loop, calls, 1, p[0]);
	CHECK_EQ(flexsc_loop_wait(loop, 10 * MS), 0);
	feed(p[1], 1);
	CHECK_EQ(flexsc_loop_wait(loop, 5 * SECOND), 1);
	CHECK_EQ(done, 0);
	CHECK_EQ(flexsc_loop_dispatch(loop), 1);
	check_each_once(calls, 1);
	CHECK_EQ(flexsc_loop_wait(loop, 0), 0);
	CHECK_EQ(flexsc_loop_destroy(loop), 0);
}

TEST(a_forked_child_leaves_its_parents_calls_alone)
{
	struct flexsc_loop *loop = test_loop();
	struct call calls[CALLS], other = CALL_INIT;
	int child, p[2];

	known_pair(loop, p);
	feed(p[1], CALLS);
	init(calls, CALLS, count_done);
	post_reads(loop, calls, CALLS, p[0]);
	child = test_fork();
	if (!child) {
		CHECK_EQ(flexsc_loop_call(loop, &other.cb,
					  ARGS(SYS_close, -1)), -ESTALE);
		CHECK_EQ(flexsc_loop_cancel(loop, &calls[0].cb), -ESTALE);
		CHECK_EQ(flexsc_loop_destroy(loop), 0);
		CHECK_EQ(done, 0);
		test_leave();
	}
	test_reap(child);
	CHECK_EQ(flexsc_loop_run(loop), 0);
	check_bytes(calls, CALLS, p[0], CALLS);
	CHECK_EQ(flexsc_loop_destroy(loop), 0);
}

/* Many calls. */

#define MOST	5000U	/* more than a ring takes, or a turn */

static struct call many[4 * MOST];

TEST(more_calls_than_a_ring_takes_are_posted_at_once)
{
	struct flexsc_loop *loop = test_loop();
	struct call other = CALL_INIT;
	int p[2];

	known_pair(loop, p);
	for (unsigned int round = 0; round < 4; round++) {
		init(many, MOST, count_done);
		for (unsigned int i = 0; i < MOST; i++) {
			POST(loop, &many[i], SYS_close, -1 - (int)(i % 7));
			if (i % 1000 == round)
				CHECK_EQ(flexsc_loop_submit(loop), 0);
		}
		POST(loop, &other, SYS_getppid);
		CHECK_EQ(flexsc_loop_run(loop), 0);
		check_each_once(many, MOST);
		for (unsigned int i = 0; i < MOST; i++)
			CHECK_EQ(many[i].cb.ret, -EBADF);
	}
	CHECK_EQ(other.runs, 4);
	CHECK_EQ(stats_of(loop).outstanding, 0);
	CHECK_EQ(flexsc_loop_destroy(loop), 0);
}

/* More results come at once than the kernel has room for. */
TEST_LIMIT(more_reads_wait_than_results_have_room, 60)
{
	struct flexsc_loop *loop = test_loop();
	unsigned int n = 4 * MOST;
	int p[2];

	NEEDS_WAITING_ENGINE();
	known_pair(loop, p);
	init(many, n, count_done);
	for (unsigned int i = 0; i < n; i += MOST) {
		post_reads(loop, many + i, MOST, p[0]);
		CHECK_EQ(flexsc_loop_submit(loop), 0);
	}
	for (unsigned int i = 0; i < 16; i++)
		CHECK_EQ(flexsc_loop_cancel(loop, &many[i * 1000].cb), 0);
	feed(p[1], n - 16);
	CHECK_EQ(flexsc_loop_run(loop), 0);
	check_bytes(many, n, p[0], n - 16);
	CHECK_EQ(flexsc_loop_destroy(loop), 0);
}

static unsigned int posted;

static void post_two(struct flexsc_cb *cb)
{
	struct call *call = (struct call *)cb;

	call->runs++;
	done++;
	for (unsigned int i = 0; i < 2 && posted < 4 * MOST; i++) {
		POST(the_loop, &many[posted], SYS_close, -1);
		posted++;
	}
	/* Some submit in the middle, whether there is room or not. */
	if (done % 777 == 0)
		CHECK_EQ(flexsc_loop_submit(the_loop), 0);
}

TEST(callbacks_post_while_results_are_taken)
{
	struct flexsc_loop *loop = test_loop();

	the_loop = loop;
	init(many, 4 * MOST, post_two);
	posted = 700;
	for (unsigned int i = 0; i < posted; i++)
		POST(loop, &many[i], SYS_close, -1);
	CHECK_EQ(flexsc_loop_run(loop), 0);
	check_each_once(many, 4 * MOST);
	CHECK_EQ(flexsc_loop_destroy(loop), 0);
}

static void post_many(struct flexsc_cb *cb)
{
	count_done(cb);
	for (; posted < MOST; posted++) {
		POST(the_loop, &many[posted], SYS_close, -1);
		if (posted % 1500 == 0)
			CHECK_EQ(flexsc_loop_submit(the_loop), 0);
	}
}

TEST(one_callback_posts_more_than_a_ring_takes)
{
	struct flexsc_loop *loop = test_loop();

	the_loop = loop;
	init(many, MOST, post_many);
	posted = CALLS;
	for (unsigned int i = 0; i < posted; i++)
		POST(loop, &many[i], SYS_close, -1);
	CHECK_EQ(flexsc_loop_run(loop), 0);
	check_each_once(many, MOST);
	CHECK_EQ(flexsc_loop_destroy(loop), 0);
}

static unsigned int ticks;

static void tick(struct flexsc_cb *cb)
{
	ticks++;
	flexsc_loop_stop(the_loop);
}

static void post_again(struct flexsc_cb *cb)
{
	done++;
	POST(the_loop, (struct call *)cb, SYS_close, -1);
}

/* Calls that never end to come keep neither timers nor wake-ups waiting. */
TEST(a_timer_comes_among_calls_that_never_end)
{
	struct flexsc_loop *loop = test_loop();
	struct flexsc_cb timer = { .callback = tick }, wake = timer;

	the_loop = loop;
	init(many, MOST, post_again);
	for (unsigned int i = 0; i < MOST; i++)
		POST(loop, &many[i], SYS_close, -1);
	CHECK_EQ(flexsc_loop_timer(loop, &timer, 5 * MS), 0);
	CHECK_EQ(flexsc_loop_run(loop), 0);
	CHECK_EQ(ticks, 1);
	CHECK_EQ(flexsc_loop_wake(loop, &wake), 0);
	CHECK_EQ(flexsc_loop_run(loop), 0);
	CHECK_EQ(ticks, 2);
	CHECK(done > 0);
	for (unsigned int i = 0; i < MOST; i++)
		many[i].cb.callback = count_done;
	CHECK_EQ(flexsc_loop_run(loop), 0);
	CHECK_EQ(stats_of(loop).outstanding, 0);
	CHECK_EQ(flexsc_loop_destroy(loop), 0);
}

/* Deadlines, chains. */

TEST(deadlines_end_known_reads)
{
	struct flexsc_loop *loop = test_loop();
	struct call calls[CALLS];
	int p[2];

	NEEDS_WAITING_ENGINE();
	known_pair(loop, p);
	init(calls, CALLS, count_done);
	post_reads(loop, calls, CALLS, p[0]);
	for (unsigned int i = 0; i < CALLS; i++)
		CHECK_EQ(flexsc_loop_deadline(loop, &calls[i].cb,
					      i % 2 ? 20 * MS : 100 * SECOND),
			 0);
	CHECK(run_until(loop, &done, CALLS / 2, 5000));
	feed(p[1], CALLS / 2);
	CHECK_EQ(flexsc_loop_run(loop), 0);
	check_each_once(calls, CALLS);
	for (unsigned int i = 0; i < CALLS; i++)
		CHECK_EQ(calls[i].cb.ret, i % 2 ? -ETIME : 1);
	CHECK_EQ(flexsc_loop_destroy(loop), 0);
}

static int chain_err;

static void chain_now(struct flexsc_cb *cb)
{
	count_done(cb);
	chain_err = flexsc_loop_chain(the_loop, 0);
}

TEST(chains_follow_known_calls)
{
	struct flexsc_loop *loop = test_loop();
	struct call calls[4];
	int p[2];

	known_pair(loop, p);
	feed(p[1], 1);
	init(calls, 4, count_done);
	post_reads(loop, calls, 1, p[0]);
	CHECK_EQ(flexsc_loop_chain(loop, FLEXSC_CHAIN_ARG(0)), 0);
	POST(loop, &calls[1], SYS_dup, -1);
	POST(loop, &calls[2], SYS_close, -1);
	CHECK_EQ(flexsc_loop_chain(loop, 0), 0);
	POST(loop, &calls[3], SYS_getppid);
	CHECK_EQ(flexsc_loop_run(loop), 0);
	check_each_once(calls, 4);
	CHECK_EQ(calls[0].cb.ret, 1);
	CHECK(calls[1].cb.ret > 1);	/* a copy of descriptor 1 */
	CHECK_EQ(calls[2].cb.ret, -EBADF);
	CHECK_EQ(calls[3].cb.ret, -ECANCELED);
	/* Nothing is pending that could be followed. */
	CHECK_EQ(flexsc_loop_chain(loop, 0), -ESRCH);
	the_loop = loop;
	init(calls, 2, chain_now);
	POST(loop, &calls[0], SYS_close, -1);
	CHECK_EQ(flexsc_loop_run(loop), 0);
	CHECK_EQ(chain_err, -ESRCH);
	/* One that completes between the chain and the post is followed. */
	init(calls, 2, count_done);
	POST(loop, &calls[0], SYS_close, -1);
	CHECK_EQ(flexsc_loop_chain(loop, 0), 0);
	CHECK(run_until(loop, &done, 1, 5000));
	POST(loop, &calls[1], SYS_getppid);
	CHECK_EQ(flexsc_loop_run(loop), 0);
	CHECK_EQ(calls[1].cb.ret, -ECANCELED);
	CHECK_EQ(flexsc_loop_destroy(loop), 0);
}

/* What io_uring must not get, though it would have got it a moment ago. */

/* The uring engine makes this change before the batch's other calls. */
TEST(a_read_posted_after_o_nonblock_does_not_wait)
{
	struct flexsc_loop *loop = test_loop();
	struct call calls[2];
	int p[2];
	char c;

	if (!strcmp(test_engine(), "threads"))
		SKIP("two calls of a batch run in any order");
	known_pair(loop, p);
	init(calls, 2, count_done);
	CHECK_EQ(flexsc_loop_call3(loop, &calls[0].cb, SYS_fcntl,
				   (uint64_t)p[0], F_SETFL,
				   O_RDWR | O_NONBLOCK), 0);
	POST(loop, &calls[1], SYS_read, p[0], &c, 1);
	CHECK_EQ(flexsc_loop_run(loop), 0);
	check_each_once(calls, 2);
	CHECK_EQ(calls[1].cb.ret, -EAGAIN);
	CHECK_EQ(flexsc_loop_destroy(loop), 0);
}

#define LONG	1000000U

/* A write that is going on goes on with a copy, if it began before. */
TEST(a_close_in_the_batch_of_a_long_write_takes_nothing_away)
{
	static char bytes[LONG];
	struct flexsc_loop *loop = test_loop();
	struct iovec all = { bytes, LONG };
	struct call calls[2];
	int p[2];
	unsigned int got = 0;

	NEEDS_WAITING_ENGINE();
	if (!strcmp(test_engine(), "threads"))
		SKIP("two calls of a batch run in any order");
	known_pair(loop, p);
	CHECK_EQ(DO(loop, SYS_write, p[1], "w", 1), 1);
	CHECK_EQ(left(p[0]), 1);
	init(calls, 2, count_done);
	POST(loop, &calls[0], SYS_writev, p[1], &all, 1);
	POST(loop, &calls[1], SYS_close, p[1]);
	for (unsigned int i = 0; i < 10000 && done < 2; i++) {
		CHECK(flexsc_loop_dispatch(loop) >= 0);
		got += left(p[0]);
		flexsc_loop_wait(loop, MS);
	}
	check_each_once(calls, 2);
	CHECK_EQ(calls[0].cb.ret, LONG);
	CHECK_EQ(calls[1].cb.ret, 0);
	CHECK_EQ(got + left(p[0]), LONG);
	CHECK_EQ(fcntl(p[1], F_GETFD), -1);
	CHECK_EQ(flexsc_loop_destroy(loop), 0);
}

/* Operations of many kinds are sorted on their way; each keeps its own. */
TEST(a_mixed_batch_gives_each_call_its_own_result)
{
	struct flexsc_loop *loop = test_loop();
	char bytes[CALLS];
	int p[2];

	known_pair(loop, p);
	for (unsigned int round = 0; round < 50; round++) {
		init(many, 5 * CALLS, count_done);
		feed(p[1], 3 * CALLS);
		for (unsigned int i = 0; i < CALLS; i++) {
			struct call *c = &many[5 * i];

			POST(loop, &c[0], SYS_close, -1);
			POST(loop, &c[1], SYS_read, p[0], &bytes[i], 1);
			POST(loop, &c[2], SYS_recvfrom, p[0], &bytes[i], 2);
			POST(loop, &c[3], SYS_fsync, p[0]);
			POST(loop, &c[4], SYS_getppid);
			if (i % 9 == 0)
				CHECK_EQ(flexsc_loop_cancel(loop, &c[3].cb), 0);
		}
		CHECK_EQ(flexsc_loop_run(loop), 0);
		check_each_once(many, 5 * CALLS);
		for (unsigned int i = 0; i < CALLS; i++) {
			const struct call *c = &many[5 * i];

			CHECK_EQ(c[0].cb.ret, -EBADF);
			CHECK_EQ(c[1].cb.ret, 1);
			CHECK(c[2].cb.ret == 2 || c[2].cb.ret == 1);
			CHECK_EQ(c[3].cb.ret, i % 9 ? -EINVAL : -ECANCELED);
			CHECK_EQ(c[4].cb.ret, getppid());
		}
		left(p[0]);
	}
	CHECK_EQ(flexsc_loop_destroy(loop), 0);
}

TEST(known_calls_are_counted)
{
	struct flexsc_loop *loop = test_loop();
	struct flexsc_stats before, after;
	struct call calls[CALLS];
	bool uring = !strcmp(test_engine(), "uring");

	CHECK_EQ(DO(loop, SYS_close, -1), -EBADF);
	before = stats_of(loop);
	init(calls, CALLS, count_done);
	for (unsigned int i = 0; i < CALLS; i++)
		POST(loop, &calls[i], SYS_close, -1);
	CHECK_EQ(stats_of(loop).outstanding, CALLS);
	CHECK_EQ(flexsc_loop_cancel(loop, &calls[5].cb), 0);
	CHECK_EQ(flexsc_loop_run(loop), 0);
	after = stats_of(loop);
	CHECK_EQ(after.posted - before.posted, CALLS);
	CHECK_EQ(after.completed - before.completed, CALLS);
	CHECK_EQ(after.cancelled - before.cancelled, 1);
	CHECK_EQ(after.batches - before.batches, 1);
	CHECK_EQ(after.batched - before.batched, CALLS);
	if (uring)
		CHECK_EQ(after.by_uring - before.by_uring, CALLS - 1);
	CHECK_EQ(after.outstanding, 0);
	CHECK_EQ(flexsc_loop_destroy(loop), 0);
}
