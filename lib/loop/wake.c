/* SPDX-License-Identifier: MIT */
#include "wake.h"

#include "handle.h"
#include "loop.h"

#define AGAIN	1U	/* a flag in "running": the low bit of a cb's address is 0 */

void flexsc__wakes_init(struct wakes *wakes)
{
	static _Atomic uint64_t loops;

	/*
	 * The multiplication by an odd constant makes the numbers of different loops
	 * differ, and look unlike addresses.
	 */
	wakes->number = 0x9e3779b97f4a7c15 * ++loops;
}

static uint64_t wake_mark(const struct wakes *wakes, const struct flexsc_cb *cb)
{
	return handle_make(HANDLE_WOKEN,
			   handle_index((uintptr_t)cb + wakes->number));
}

bool flexsc__wakes_has(const struct wakes *wakes, const struct flexsc_cb *cb)
{
	return __atomic_load_n(&cb->handle, __ATOMIC_RELAXED) ==
	       wake_mark(wakes, cb);
}

static struct flexsc_cb *wake_next(const struct flexsc_cb *cb)
{
	return (struct flexsc_cb *)(uintptr_t)cb->ret;
}

static void wake_set_next(struct flexsc_cb *cb, struct flexsc_cb *next)
{
	cb->ret = (int64_t)(uintptr_t)next;
}

/*
 * Queue the cb. Called by the thread that set the mark, or by the owner on behalf of
 * that thread.
 */
static void wake_queue(struct wakes *wakes, struct flexsc_cb *cb)
{
	struct flexsc_cb *head = atomic_load_explicit(&wakes->queue,
						      memory_order_relaxed);

	/*
	 * W3: publishes the link; pairs with W4. Sequentially consistent, as the
	 * protocol in loop_notify() requires.
	 */
	do {
		wake_set_next(cb, head);
	} while (!atomic_compare_exchange_weak(&wakes->queue, &head, cb));
}

static void wake_cb(struct wakes *wakes, struct flexsc_cb *cb)
{
	uint64_t mark = wake_mark(wakes, cb);
	uintptr_t running = (uintptr_t)cb;

	/*
	 * W1: publishes what the waker has written before, even if the mark was set
	 * already. It also acquires the owner's last use of cb->ret as a link, so that
	 * this waker can store a new link in cb->ret. Pairs with W2.
	 */
	if (__atomic_exchange_n(&cb->handle, mark, __ATOMIC_ACQ_REL) == mark)
		return;
	/*
	 * W5: if the callback is running, this sets AGAIN, and the owner queues the cb
	 * later. Otherwise this acquires what the callback's last run did to the cb, and
	 * this thread queues the cb. Pairs with W6.
	 */
	if (!atomic_compare_exchange_strong(&wakes->running, &running,
					    running | AGAIN))
		wake_queue(wakes, cb);
}

int flexsc_loop_wake(struct flexsc_loop *loop, struct flexsc_cb *cb)
{
	int err = flexsc__post_check(loop, NULL);

	if (err)
		return err;
	loop_visit(loop);
	if (cb)
		wake_cb(&loop->wakes, cb);
	else
		atomic_store(&loop->nudged, true);
	loop_notify(loop);
	loop_leave(loop);
	return 0;
}

void flexsc__wakes_take(struct wakes *wakes)
{
	struct flexsc_cb *cb, *next;

	/*
	 * Cbs that remain from an earlier turn come first: flexsc_loop_stop() ended
	 * that turn.
	 */
	if (wakes->oldest || !atomic_load_explicit(&wakes->queue,
						   memory_order_relaxed))
		return;
	/* W4: acquires all cbs. The queue has the newest first, so reverse it. */
	cb = atomic_exchange_explicit(&wakes->queue, NULL, memory_order_acquire);
	for (; cb; cb = next) {
		next = wake_next(cb);
		wake_set_next(cb, wakes->oldest);
		wakes->oldest = cb;
	}
}

struct flexsc_cb *flexsc__wakes_next(struct wakes *wakes)
{
	struct flexsc_cb *cb = wakes->oldest;

	wakes->oldest = wake_next(cb);
	cb->ret = 0;
	/*
	 * W2, as in flexsc__wakes_run(). From here on a waker may queue the cb
	 * again.
	 */
	__atomic_exchange_n(&cb->handle, 0, __ATOMIC_ACQ_REL);
	return cb;
}

void flexsc__wakes_run(struct wakes *wakes)
{
	struct flexsc_cb *cb = wakes->oldest;

	wakes->oldest = wake_next(cb);
	/*
	 * This store comes before W2, because a waker that sets the mark after W2 must
	 * see that the callback runs. The store is a release, because a waker that
	 * reads this value must also acquire what W6 published earlier.
	 */
	atomic_store_explicit(&wakes->running, (uintptr_t)cb,
			      memory_order_release);
	/* W2: acquires what all wakers have written so far; pairs with W1. */
	__atomic_exchange_n(&cb->handle, 0, __ATOMIC_ACQ_REL);
	/*
	 * callback() can't be used here, because it also writes cb->flags. A waker may
	 * have made the cb pending again since W2.
	 */
	cb->ret = 0;
	if (cb->callback)
		cb->callback(cb);
	/* W6: publishes that the callback no longer uses the cb; pairs with W5. */
	if (atomic_exchange(&wakes->running, 0) & AGAIN)
		wake_queue(wakes, cb);
}
