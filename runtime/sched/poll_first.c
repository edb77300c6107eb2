/* SPDX-License-Identifier: MIT */
#include "poll_first.h"

#include <errno.h>
#include <poll.h>

#include "lib/files/private_fd.h"
#include "lib/loop/loop.h"
#include "carrier.h"
#include "closings.h"
#include "post.h"

/* Time limit of the accept() that follows a poll, in ns. */
#define ATTEMPT_NS	5000000U

_Atomic uint32_t flexsc__poll_first_stuck;

static bool has_copy(const struct uthread *u)
{
	return u->args == u->poll_first.args;
}

bool flexsc__poll_first_keeps_file(const struct uthread *u)
{
	return has_copy(u) || u->closings == closings_of(closings_fd(u));
}

/* If the count of closings is unchanged after copying, the copy has the right file. */
bool flexsc__poll_first_copy(struct uthread *u)
{
	int copy;

	if (has_copy(u))
		return true;
	copy = flexsc__private_fd_copy((int)u->args[0]);
	if (copy < 0)
		return false;
	if (!flexsc__poll_first_keeps_file(u)) {
		flexsc__private_fd_close(copy);
		return false;
	}
	for (unsigned int i = 1; i < 6; i++)
		u->poll_first.args[i] = u->args[i];
	u->poll_first.args[0] = (uint64_t)copy;
	u->args = u->poll_first.args;
	return true;
}

void flexsc__poll_first_drop_copy(struct uthread *u, const uint64_t *args)
{
	if (u->args != args)
		flexsc__private_fd_close((int)u->args[0]);
	u->args = args;
}

static void wait_ends(struct uthread *u, long ret)
{
	if (has_copy(u))
		flexsc__private_fd_close((int)u->args[0]);
	flexsc__post_wait_ends(u, ret);
}

/* Called when a call has ended that no further poll follows. */
static void last_over(struct flexsc_cb *cb)
{
	wait_ends(waiter_of(cb), cb->ret);
}

/*
 * Called when the accept() that follows a poll has ended. -ETIME: another thread has
 * taken the connection, so poll again.
 */
static void attempt_over(struct flexsc_cb *cb)
{
	struct uthread *u = waiter_of(cb);

	if (cb->ret == -ETIME)
		flexsc__poll_first(kthread_self()->carrier, u);
	else
		wait_ends(u, cb->ret);
}

static void post(struct carrier *c, struct uthread *u,
		 void (*over)(struct flexsc_cb *cb))
{
	if (flexsc__post_begin(c, u, over))
		flexsc__post_call(c, u);
}

/* Called when the poll has ended: post the call. */
static void poll_over(struct flexsc_cb *cb)
{
	struct uthread *u = waiter_of(cb);
	struct carrier *c = kthread_self()->carrier;

	if (cb->ret < 0) {
		wait_ends(u, cb->ret);
		return;
	}
	__atomic_store_n(&u->carrier, c, __ATOMIC_RELAXED);
	if (poll_first_is_needed(u)) {
		u->ns = ATTEMPT_NS;
		post(c, u, attempt_over);
	} else {
		post(c, u, last_over);
	}
}

void flexsc__poll_first(struct carrier *c, struct uthread *u)
{
	int err = NO_ENTRY;

	/*
	 * Without a copy, don't poll: the program may close the descriptor during the
	 * poll, and the call would then use another file, or none.
	 */
	if (!flexsc__poll_first_copy(u)) {
		post(c, u, last_over);
		return;
	}
	/* The wait may have begun on another carrier, of which c is the heir. */
	__atomic_store_n(&u->carrier, c, __ATOMIC_RELAXED);
	u->poll_first.poll = (struct pollfd){
		.fd = (int)u->args[0],
		.events = poll_first_is_connect(u) ? POLLOUT : POLLIN,
	};
	/* No call that comes here has a time limit set by the program. */
	u->ns = 0;
	u->cb.callback = poll_over;
	if (flexsc__loop_has_entry(c->loop))
		err = flexsc__call_poll(c->loop, &u->cb, &u->poll_first.poll);
	if (err)
		wait_ends(u, err);
	else
		flexsc__post_done(c, u);
}

/*
 * Called when an accept() that flexsc__poll_first_instead() cancelled has ended: poll,
 * unless there is a result or u is wanted on its host.
 */
static void accept_over(struct flexsc_cb *cb)
{
	struct uthread *u = waiter_of(cb);

	if (cb->ret == -ECANCELED && !atomic_load(&u->wanted) && !u->handled)
		flexsc__poll_first(kthread_self()->carrier, u);
	else
		wait_ends(u, cb->ret);
}

void flexsc__poll_first_instead(struct carrier *c, struct uthread *u)
{
	/* The call polls already, or will poll after its attempt. */
	if (u->cb.callback == poll_over || u->cb.callback == attempt_over)
		return;
	if (!flexsc__poll_first_copy(u))
		return;
	u->cb.callback = accept_over;
	flexsc_loop_cancel(c->loop, &u->cb);
}
