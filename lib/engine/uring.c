/* SPDX-License-Identifier: MIT */
/*
 * The uring engine uses io_uring for each call that has an operation. Other calls run
 * inline at submission if they can't block, and otherwise on a pool of syscall threads
 * that is created on first use. So the loop never blocks. Owner only, except for wake.
 *
 * One io_uring_enter() submits a batch, collects results, and sleeps if there is no
 * other work.
 */
#include "uring.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "lib/base/bell.h"
#include "lib/base/compiler.h"
#include "lib/base/syscall.h"
#include "lib/files/private_fd.h"
#include "lib/loop/stats.h"
#include "lib/pool/pool.h"
#include "engine.h"
#include "sleep.h"
#include "uring_direct.h"
#include "uring_reap.h"
#include "uring_ops.h"
#include "why.h"

/* Let direct calls use every request that the kernel has consumed. */
static inline void uring_make_way(struct uring *uring)
{
	struct ring *ring = &uring->ring;

	ring->head = ring_head(ring);
	uring->direct_end = ring->head + ring->mask + 1;
}

/*
 * The kernel didn't consume the requests. If the ring has failed, give it up. Otherwise
 * the kernel may lack room for results, so take results from the ring.
 */
static COLD void uring_refused(struct flexsc_loop *loop)
{
	if (uring_of(loop)->ring.failed)
		flexsc__uring_fail(loop);
	else
		flexsc__uring_collect(loop);
}

/*
 * Let the poller consume requests. Kernels before 5.13 consume none while they hold back
 * results. So take results first.
 */
static COLD void uring_let_poll(struct flexsc_loop *loop)
{
	struct ring *ring = &uring_of(loop)->ring;

	if (ring_overflows(ring)) {
		flexsc__uring_collect(loop);
		flexsc__ring_enter(ring, 0);
	}
	flexsc__ring_await_room(ring);
}

/* The submission queue is full: make the kernel consume requests. */
static COLD void uring_make_room(struct flexsc_loop *loop)
{
	struct ring *ring = &uring_of(loop)->ring;

	if (uring_of(loop)->fixed)
		flexsc__uring_use_fixed(loop);
	if (flexsc__ring_submit(ring))
		flexsc__uring_collect(loop);
	if (ring->failed)
		flexsc__uring_rescue(loop);
	else if (ring->polled)
		uring_let_poll(loop);
}

static void uring_submit(struct flexsc_loop *loop)
{
	flexsc__uring_route(loop);
	if (ring_unsubmitted(&uring_of(loop)->ring) &&
	    flexsc__ring_submit(&uring_of(loop)->ring))
		uring_refused(loop);
	uring_make_way(uring_of(loop));
}

/*
 * Keep a read of the bell pending. It completes when a thread writes to the eventfd,
 * which ends the owner's sleep.
 */
static void uring_arm(struct flexsc_loop *loop)
{
	struct uring *uring = uring_of(loop);
	struct io_uring_sqe *sqe;

	if (uring->armed)
		return;
	sqe = uring_request(loop);
	io_uring_prep_read(sqe, uring->bell, &uring->rung,
			   sizeof(uring->rung), 0);
	io_uring_sqe_set_data64(sqe, WAKE);
	uring->armed = true;
}

/* Submit all requests, then poll for results. Returns how long to sleep afterwards. */
static COLD uint64_t uring_spin(struct flexsc_loop *loop, uint64_t ns)
{
	struct ring *ring = &uring_of(loop)->ring;

	if (ring_unsubmitted(ring) && flexsc__ring_submit(ring))
		uring_refused(loop);
	return flexsc__engine_spin(loop, ns);
}

/* Entering the kernel fails permanently: continue as a loop whose ring has failed. */
static COLD int uring_wait_failed(struct flexsc_loop *loop)
{
	flexsc__uring_fail(loop);
	return flexsc__uring_failed_wait(loop, 0);
}

static int uring_wait(struct flexsc_loop *loop, uint64_t ns)
{
	struct uring *uring = uring_of(loop);
	struct ring *ring = &uring->ring;
	int err = 0;

	flexsc__uring_route(loop);
	/*
	 * Don't sleep if there are results, or calls with bytes left to transfer.
	 * Routing may have entered the kernel, which may have stored results.
	 */
	if (ns && (io_uring_cq_ready(&ring->uring) | uring->again.count))
		ns = 0;
	if (ns && loop->options.poll_us)
		ns = uring_spin(loop, ns);
	if (ns) {
		uring_arm(loop);
		ns = flexsc__sleep_begin(loop, ns);
		if (ns) {
			err = flexsc__ring_enter(ring, ns);
			flexsc__sleep_end(loop);
			uring_make_way(uring);
			return unlikely(err) && ring->failed ?
				       uring_wait_failed(loop) : 0;
		}
	}
	if (ring_unsubmitted(ring) || ring_needs_enter(ring))
		err = flexsc__ring_enter(ring, 0);
	uring_make_way(uring);
	return unlikely(err) && ring->failed ? uring_wait_failed(loop) : 0;
}

static bool uring_stirs(const struct flexsc_loop *loop)
{
	const struct ring *ring = &uring_of(loop)->ring;

	return io_uring_cq_ready(&ring->uring) || ring_needs_enter(ring);
}

static void uring_wake(struct flexsc_loop *loop)
{
	count_shared(&loop->stats->mode_switches, 1);
	bell_ring(uring_of(loop)->bell);
}

/*
 * The kernel writes to the eventfd when a result arrives, and when the owner has to
 * enter the kernel to produce one (IORING_SETUP_DEFER_TASKRUN).
 */
static int uring_attach(struct flexsc_loop *loop, int fd)
{
	return io_uring_register_eventfd(&uring_of(loop)->ring.uring, fd);
}

/*
 * The owner has to submit two kinds of requests again without a report by the eventfd:
 * requests that the kernel couldn't consume for lack of memory, and remainders of
 * partial transfers.
 */
static bool uring_is_silent(const struct flexsc_loop *loop)
{
	return ring_unsubmitted(&uring_of(loop)->ring) ||
	       uring_of(loop)->again.count;
}

static void cancel_request(struct flexsc_loop *loop, uint64_t name,
			   uint64_t own_name)
{
	struct io_uring_sqe *sqe = uring_request(loop);

	io_uring_prep_cancel64(sqe, name, 0);
	io_uring_sqe_set_data64(sqe, own_name);
}

static void uring_cancel(struct flexsc_loop *loop, uint32_t index)
{
	uint64_t name = name_of(loop, index);

	if (call_of(loop, index)->route == BY_POOL)
		flexsc__pool_cancel(loop_pool(loop), index);
	else
		cancel_request(loop, name, name | CANCEL);
}

/* A poller looks up descriptors at any time after the submission. */
static void uring_settle(struct flexsc_loop *loop)
{
	if (uring_of(loop)->ring.polled)
		flexsc__ring_await_consumed(&uring_of(loop)->ring);
}

/* Opening and closing. */

/*
 * Query the operations that the kernel supports (IORING_REGISTER_PROBE) instead of
 * deriving them from its version. This also shows whether a filter forbids
 * io_uring_register() or io_uring_enter().
 */
static int uring_probe(struct uring *uring)
{
	struct io_uring_probe *probe;
	long err;

	probe = calloc(1, sizeof(*probe) + GROUPS * sizeof(probe->ops[0]));
	if (!probe)
		return -ENOMEM;
	err = io_uring_register_probe(&uring->ring.uring, probe, GROUPS);
	for (unsigned int op = 0; !err && op < probe->ops_len; op++)
		if (probe->ops[op].flags & IO_URING_OP_SUPPORTED)
			uring->operations |= 1ULL << op;
	free(probe);
	uring->known = flexsc__uring_known(uring->operations);
	return err ? (int)err : flexsc__ring_submit(&uring->ring);
}

/*
 * Bind io_uring's workers, which make calls that may block. With a poller, the workers
 * are the poller's. Before Linux 6.6 the kernel can't bind those, and they run on any
 * core. So ignore an error.
 */
static void uring_bind_workers(struct flexsc_loop *loop, struct uring *uring)
{
	if (loop->options.kernel_cores)
		io_uring_register_iowq_aff(&uring->ring.uring,
					   sizeof(loop->kernel_cores),
					   &loop->kernel_cores);
}

static int uring_set_up(struct flexsc_loop *loop, struct uring *uring)
{
	unsigned int workers[2] = { 0, loop->options.max_threads };
	int err = uring_probe(uring);

	if (err)
		return err;
	uring->bell = flexsc__private_fd(eventfd(0, EFD_CLOEXEC));
	if (uring->bell < 0)
		return -errno;
	/*
	 * Ignore an error: the limit on io-wq workers is desirable, but not
	 * required.
	 */
	io_uring_register_iowq_max_workers(&uring->ring.uring, workers);
	uring_bind_workers(loop, uring);
	if (uring->ring.polled)
		stats_set(&loop->stats_cores->poller,
			  uring->ring.member.core + 1);
	if (uring->ring.unpolled)
		flexsc__unpolled_why(uring->ring.unpolled, loop->why,
				     sizeof(loop->why));
	return 0;
}

static int uring_explain(struct flexsc_loop *loop, int err)
{
	switch (err) {
	case -EMFILE:
	case -ENFILE:
		return err;
	case -ERANGE:
		return -EINVAL;
	default:
		flexsc__uring_why(err, loop->why, sizeof(loop->why));
		return -EOPNOTSUPP;
	}
}

#ifndef IORING_FEAT_MIN_TIMEOUT
#define IORING_FEAT_MIN_TIMEOUT	(1U << 15)	/* Linux 6.12 */
#endif

/*
 * With a poller, a turn runs at most so many callbacks of one kind. Its end publishes the
 * requests that they posted. The poller publishes results only when it has executed all
 * requests that it found. So if a turn published a whole batch, the owner and the poller
 * would work by turns instead of at the same time. Of 1 to 16, all values gain alike.
 */
#define POLLED_MOST	8

static int uring_open(struct flexsc_loop *loop)
{
	const unsigned int needed = IORING_FEAT_NODROP | IORING_FEAT_FAST_POLL |
				    IORING_FEAT_RW_CUR_POS |
				    IORING_FEAT_EXT_ARG;
	struct uring *uring = calloc(1, sizeof(*uring));
	int err;

	if (!uring)
		return -ENOMEM;
	err = flexsc__ring_init(&uring->ring, &loop->options,
			&loop->stats->mode_switches);
	if (err) {
		free(uring);
		return uring_explain(loop, err);
	}
	if ((uring->ring.uring.features & needed) == needed) {
		err = uring_set_up(loop, uring);
	} else {
		snprintf(loop->why, sizeof(loop->why),
			 "the kernel's io_uring is older than 5.11: it lacks "
			 "time limits on waiting");
		err = -EOPNOTSUPP;
	}
	if (err) {
		flexsc__ring_fini(&uring->ring);
		free(uring);
		return loop->why[0] ? err : uring_explain(loop, err);
	}
	loop->engine_data = uring;
	/* IORING_FEAT_MIN_TIMEOUT shows Linux 6.12, which doesn't need FD_OLD_WORKER. */
	loop->makes_ready = uring->ring.uring.features & IORING_FEAT_MIN_TIMEOUT;
	loop->group_mask = GROUPS - 1;
	if (uring->ring.polled)
		loop->most = POLLED_MOST;
	uring->loop = loop;
	uring->make_room = uring_make_room;
	uring->counted = uring->ring.tail;
	uring_make_way(uring);
	flexsc__uring_posts(loop);
	return 0;
}

/*
 * End the pending read of the bell, because the kernel must not write to the read's
 * buffer, "rung", after that memory is freed.
 */
static void uring_disarm(struct flexsc_loop *loop)
{
	struct ring *ring = &uring_of(loop)->ring;

	while (uring_of(loop)->armed && !ring->failed) {
		cancel_request(loop, WAKE, IGNORE);
		flexsc__ring_enter(ring, 1000000);
		flexsc__uring_collect(loop);
	}
	if (ring->failed)
		flexsc__uring_rescue(loop);
}

COLD void flexsc__uring_quit(struct flexsc_loop *loop, int err)
{
	struct ring *ring;

	if (loop->engine != &flexsc__engine_uring)
		return;
	ring = &uring_of(loop)->ring;
	uring_disarm(loop);
	if (!ring->failed)
		ring->failed = err;
	flexsc__uring_fail(loop);
}

/*
 * Called when the ring has failed: never free this memory, because the kernel may write
 * to its buffer "rung" until the owner's thread ends.
 */
static COLD void uring_leave(struct uring *uring)
{
	static struct uring *_Atomic left;

	uring->left = atomic_exchange(&left, uring);
}

static void uring_close(struct flexsc_loop *loop)
{
	struct uring *uring = uring_of(loop);

	uring_disarm(loop);
	if (uring->watches)
		flexsc__guard_unwatch(&uring->watcher);
	flexsc__ring_fini(&uring->ring);
	flexsc__private_fd_close(uring->bell);
	flexsc__uring_fixed_fini(uring);
	free(uring->sorted);
	if (uring->armed)
		uring_leave(uring);
	else
		free(uring);
}

static void uring_forked(struct flexsc_loop *loop)
{
	struct uring *uring = uring_of(loop);

	flexsc__private_fd_close(uring->ring.uring.ring_fd);
	flexsc__private_fd_close(uring->bell);
	flexsc__uring_fixed_fini(uring);
	free(uring->sorted);
	free(uring);
}

const struct engine flexsc__engine_uring = {
	.name = "uring",
	.open = uring_open,
	.submit = uring_submit,
	.wait = uring_wait,
	.stirs = uring_stirs,
	.wake = uring_wake,
	.attach = uring_attach,
	.is_silent = uring_is_silent,
	.cancel = uring_cancel,
	.settle = uring_settle,
	.reach = flexsc__uring_reach,
	.withdraw = flexsc__uring_withdraw,
	.cancels_anywhere = flexsc__uring_cancels_anywhere,
	.tend = flexsc__uring_tend,
	.dispatch = flexsc__uring_dispatch,
	.complete = flexsc__uring_complete,
	.collect = flexsc__uring_collect,
	.shadow = flexsc__uring_shadow,
	.fix = flexsc__uring_fix,
	.unfix = flexsc__uring_unfix,
	.accepts_many = flexsc__uring_accepts_many,
	.buffers_lend = flexsc__uring_buffers_lend,
	.buffers_unlend = flexsc__uring_buffers_unlend,
	.buffer_put = flexsc__uring_buffer_put,
	.close = uring_close,
	.forked = uring_forked,
};

const struct engine flexsc__engine_uring_failed = {
	.name = "threads",
	.open = uring_open,
	.submit = flexsc__uring_failed_submit,
	.wait = flexsc__uring_failed_wait,
	.wake = flexsc__engine_ring,
	.cancel = flexsc__uring_failed_cancel,
	.unfix = flexsc__uring_unfix,
	.buffers_unlend = flexsc__uring_buffers_unlend,
	.buffer_put = flexsc__uring_buffer_put,
	.close = uring_close,
	.forked = uring_forked,
};
