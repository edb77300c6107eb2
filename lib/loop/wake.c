/* SPDX-License-Identifier: MIT */
#include "wake.h"

#include "handle.h"
#include "loop.h"

#define AGAIN	1U	/* a flag in "running", where cbs are aligned */

void flexsc__wakes_init(struct wakes *wakes)
{
	static _Atomic uint64_t loops;

	/*
	 * An odd factor, so that numbers of different loops differ and don't look like
	 * addresses.
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

/* Called by the thread that set the mark, or by the owner on its behalf. */
static void wake_queue(struct wakes *wakes, struct flexsc_cb *cb)
{
	struct flexsc_cb *head = atomic_load_explicit(&wakes->queue,
						      memory_order_relaxed);

	/*
	 * W3: publishes the link; pairs with W4. Sequentially consistent because of the
	 * protocol in loop_notify().
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
	 * W1: publishes the waker's writes, even if the mark was already set. Acquires
	 * the end of the owner's use of cb->ret. Pairs with W2.
	 */
	if (__atomic_exchange_n(&cb->handle, mark, __ATOMIC_ACQ_REL) == mark)
		return;
	/*
	 * W5: either the callback is running, or this acquires its end; pairs with W6.
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

	/* A stop left some cbs undispatched. */
	if (wakes->oldest || !atomic_load_explicit(&wakes->queue,
						   memory_order_relaxed))
		return;
	/* W4: takes all cbs, newest first; reverse their order. */
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
	/* W2, as below. From here on a waker may queue the cb again. */
	__atomic_exchange_n(&cb->handle, 0, __ATOMIC_ACQ_REL);
	return cb;
}

void flexsc__wakes_run(struct wakes *wakes)
{
	struct flexsc_cb *cb = wakes->oldest;

	wakes->oldest = wake_next(cb);
	/*
	 * Stored before W2, so that a waker that sets the mark again sees it. Releases
	 * the effects of W6 for a waker that reads this value instead.
	 */
	atomic_store_explicit(&wakes->running, (uintptr_t)cb,
			      memory_order_release);
	/* W2: acquires what all wakers have written so far; pairs with W1. */
	__atomic_exchange_n(&cb->handle, 0, __ATOMIC_ACQ_REL);
	/* Doesn't use callback(), because a waker may have set the mark again. */
	cb->ret = 0;
	if (cb->callback)
		cb->callback(cb);
	/* W6: the callback no longer uses the cb; pairs with W5. */
	if (atomic_exchange(&wakes->running, 0) & AGAIN)
		wake_queue(wakes, cb);
}
