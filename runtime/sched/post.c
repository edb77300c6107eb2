/* SPDX-License-Identifier: MIT */
#include "post.h"

#include "lib/base/poll.h"
#include "lib/loop/loop.h"
#include "carrier.h"
#include "runqueue.h"

/* Called on the carrier on which the wait began, or on its heir. */
void flexsc__post_wait_ends(struct uthread *u, long ret)
{
	struct carrier *c = kthread_self()->carrier;

	RULE(c == carrier_heir(u->carrier));
	u->ret = ret;
	atomic_store_explicit(&u->wait, WAIT_NOT, memory_order_relaxed);
	flexsc__runqueue_put(c, u);
}

static void post_failed(struct uthread *u, long err)
{
	u->cb.ret = err;
	u->cb.callback(&u->cb);
}

bool flexsc__post_begin(struct carrier *c, struct uthread *u,
			void (*over)(struct flexsc_cb *cb))
{
	u->cb.callback = over;
	/* Don't wait for an entry: a call that occupies one may itself wait for u. */
	if (!flexsc__loop_has_entry(c->loop)) {
		post_failed(u, NO_ENTRY);
		return false;
	}
	post_wait_begins(u, WAIT_CALL);
	return true;
}

/* Post u's call. A posted poll() always has one descriptor (calls/polling.c). */
static int post(struct flexsc_loop *loop, struct uthread *u)
{
	const uint64_t *args = u->args;

	if (u->nr == POLL_NR)
		return flexsc__call_poll(loop, &u->cb,
					 (struct pollfd *)(uintptr_t)args[0]);
	return flexsc_loop_call(loop, &u->cb, u->nr, args[0], args[1], args[2],
				args[3], args[4], args[5]);
}

void flexsc__post_call(struct carrier *c, struct uthread *u)
{
	int err = post(c->loop, u);

	if (err)
		post_failed(u, err);
	else
		flexsc__post_done(c, u);
}

void flexsc__post_done(struct carrier *c, struct uthread *u)
{
	/* If there is no memory for the time limit, u makes the call on its host. */
	if (u->ns && flexsc_loop_deadline(c->loop, &u->cb, u->ns))
		flexsc_loop_cancel(c->loop, &u->cb);
	if (atomic_load(&u->wanted) || u->handled)
		flexsc_loop_cancel(c->loop, &u->cb);
}
