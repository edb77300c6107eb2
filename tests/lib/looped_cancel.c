/* SPDX-License-Identifier: MIT */
/* Looped multi-calls that end early: cancelled, late, forked, or closed with the loop. */
#include "looped.h"

/* Cancels a call of a chain whose first call waits. */
static void cancel(unsigned int which)
{
	struct waiting chain;
	struct call *calls = chain.calls;

	post_waiting(&chain);
	run_for(loop, 5);
	CHECK_EQ(flexsc_loop_cancel(loop, &calls[which].cb), 0);
	/* The calls behind it end, although the first one still waits. */
	CHECK_EQ(await_call(loop, &calls[5]), -ECANCELED);
	end_waiting(&chain);
	if (which)
		CHECK_EQ(calls[0].cb.ret, 1);
	else
		CHECK(is_cancelled(calls[0].cb.ret));
	for (unsigned int i = 1; i < 6; i++) {
		CHECK_EQ(calls[i].cb.ret, i < which ? 0 : -ECANCELED);
		CHECK_EQ(exists(i), i < which);
	}
	CHECK_EQ(stats_of(loop).cancelled, 6 - which);
}

static void cancel_first(void)
{
	cancel(0);
}

static void cancel_middle(void)
{
	cancel(3);
}

static void cancel_last(void)
{
	cancel(5);
}

LOOPED_(cancelling_the_first_call_ends_the_chain, cancel_first)
LOOPED_(cancelling_a_middle_call_ends_the_later_calls, cancel_middle)
LOOPED_(cancelling_the_last_call_leaves_the_others, cancel_last)

/* The calls may be anywhere in the pool, and the results are those of some order. */
LOOPED(chains_are_cancelled_at_any_time)
{
	enum { CHAINS = 50 };
	static struct file_read files[CHAINS];
	unsigned int fds = count_fds();

	for (unsigned int round = 0; round < 40; round++) {
		for (unsigned int i = 0; i < CHAINS; i++)
			post_read(&files[i]);
		CHECK_EQ(flexsc_loop_submit(loop), 0);
		for (unsigned int i = 0; i < CHAINS; i++) {
			struct file_read *file = &files[i];
			struct call *which = (i + round) % 2 ? &file->opened :
							      &file->got;

			flexsc_loop_cancel(loop, &which->cb);
		}
		CHECK_EQ(flexsc_loop_run(loop), 0);
		for (unsigned int i = 0; i < CHAINS; i++) {
			const struct file_read *file = &files[i];

			CHECK_EQ(file->closed.runs, 1);
			CHECK(file->got.cb.ret > 0 ||
			      is_cancelled(file->got.cb.ret));
			/* The file is closed, if it was opened. */
			CHECK_EQ(file->closed.cb.ret,
				 file->opened.cb.ret >= 0 ? 0 : -EBADF);
		}
	}
	CHECK_EQ(count_fds(), fds);
}

LOOPED(a_deadline_passes_while_the_call_waits_for_its_turn)
{
	struct waiting chain;
	struct call *calls = chain.calls;

	post_waiting(&chain);
	CHECK_EQ(flexsc_loop_deadline(loop, &calls[3].cb, MS), 0);
	CHECK_EQ(await_call(loop, &calls[5]), -ECANCELED);
	end_waiting(&chain);
	CHECK_EQ(calls[2].cb.ret, 0);
	CHECK_EQ(calls[3].cb.ret, -ETIME);
	CHECK_EQ(calls[4].cb.ret, -ECANCELED);
	CHECK(exists(2) && !exists(3));
}

LOOPED(a_cancelled_call_can_be_replaced)
{
	struct waiting chain;
	struct call *calls = chain.calls, other = CALL_INIT;

	post_waiting(&chain);
	run_for(loop, 5);
	CHECK_EQ(post_after(loop, &calls[1], 0, &other, ARGS(SYS_getppid)), -EBUSY);
	CHECK_EQ(flexsc_loop_cancel(loop, &calls[2].cb), 0);
	CHECK_EQ(post_after(loop, &calls[1], 0, &other, ARGS(SYS_getppid)), 0);
	end_waiting(&chain);
	CHECK_EQ(other.cb.ret, getppid());
	CHECK_EQ(calls[1].cb.ret, 0);
	CHECK_EQ(calls[5].cb.ret, -ECANCELED);
}

/*
 * The call behind a cancelled one that starts after any result waits for the rest of the
 * chain, also if a callback precedes it.
 */
LOOPED(a_cancelled_call_lets_nothing_overtake)
{
	struct call first = quiet_call(), calls[4];
	int p[2];
	char c;

	NEEDS_WAITING_ENGINE();
	enter_scratch();
	CHECK_EQ(pipe2(p, O_CLOEXEC), 0);
	POST(loop, &first, SYS_read, p[0], &c, 1);
	for (unsigned int i = 0; i < 4; i++) {
		calls[i] = i ? (struct call)CALL_INIT : quiet_call();
		POST_AFTER(loop, i ? &calls[i - 1] : &first,
			   i == 3 ? FLEXSC_CHAIN_ALWAYS : 0, &calls[i], SYS_mkdirat,
			   AT_FDCWD, names[i], 0700);
	}
	run_for(loop, 5);
	CHECK_EQ(flexsc_loop_cancel(loop, &calls[0].cb), 0);
	CHECK_EQ(await_call(loop, &calls[2]), -ECANCELED);
	run_for(loop, 5);
	CHECK(!exists(3));
	CHECK_EQ(write(p[1], "x", 1), 1);
	CHECK_EQ(flexsc_loop_run(loop), 0);
	CHECK_EQ(first.cb.ret, 1);
	CHECK_EQ(calls[3].cb.ret, 0);
	CHECK_EQ(calls[3].runs, 1);
	CHECK(!exists(0) && !exists(1) && !exists(2) && exists(3));
}

LOOPED(closing_the_loop_ends_a_chain)
{
	struct waiting chain;
	struct call *calls = chain.calls;

	post_waiting(&chain);
	run_for(loop, 5);
	flexsc_loop_destroy(loop);
	loop = NULL;
	CHECK(is_cancelled(calls[0].cb.ret));
	CHECK_EQ(calls[5].cb.ret, -ECANCELED);
	CHECK_EQ(calls[5].runs, 1);
	CHECK(!exists(1));
}

LOOPED(a_fork_leaves_the_chain_to_the_parent)
{
	struct waiting chain;
	struct call *calls = chain.calls;
	int status;
	pid_t child;

	post_waiting(&chain);
	CHECK_EQ(flexsc_loop_submit(loop), 0);
	child = fork();
	if (!child)
		_exit(flexsc_loop_cancel(loop, &calls[3].cb) != -ESTALE);
	CHECK_EQ(waitpid(child, &status, 0), child);
	CHECK_EQ(status, 0);
	CHECK(!exists(1));
	end_waiting(&chain);
	for (unsigned int i = 1; i < 6; i++)
		CHECK_EQ(calls[i].cb.ret, 0);
	CHECK(exists(5));
}
