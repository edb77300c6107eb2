/* SPDX-License-Identifier: MIT */
#include "uring.h"

#include <errno.h>
#include <flexsc/ecb.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <unistd.h>

#include "lib/base/checks.h"
#include "lib/base/clock.h"
#include "lib/base/syscall.h"
#include "lib/files/private_fd.h"
#include "lib/engine/uring_kills.h"
#include "lib/engine/why.h"
#include "events/event/backend.h"
#include "events/event/ecb.h"
#include "events/event/slot.h"
#include "events/event/source.h"
#include "backends.h"
#include "notifier.h"
#include "ring.h"

#define REQUESTS	256U
#define COMPLETIONS_MAX	32768U
/*
 * A poll that ended this many times in a row has failed. Ends while the completion
 * queue was full don't count, because a full queue ends polls, too.
 */
#define ENDS_MAX	8
#define AGAIN		100000000U	/* ns until a full listening socket is
					 * retried */

/* Completions. */

/*
 * Can the file be polled? If not, io_uring would report it as always ready and end the
 * request; epoll returns an error.
 */
static bool evring_pollable(int fd)
{
	struct epoll_event event = { 0 };
	int set = epoll_create1(EPOLL_CLOEXEC);
	bool pollable;

	if (set < 0)
		return true;
	pollable = !epoll_ctl(set, EPOLL_CTL_ADD, fd, &event) ||
		   errno != EPERM;
	close(set);
	return pollable;
}

/* Deliver a last event, which reports that the poll has ended permanently. */
static void evring_poll_failed(struct flexsc_ecb *ecb, uint32_t index, int err)
{
	struct source *source = &ecb->sources[index];

	source->error = err;
	/*
	 * Deliver no event if the source is still being created, because the function
	 * that creates it returns the error; and none if the descriptor was closed.
	 */
	if (source->flags & SOURCE_BEGINS || err == -EBADF)
		return;
	ecb->slots[index].error = err;
	flexsc__source_raise(ecb, index, POLLERR);
}

static void evring_polled(struct flexsc_ecb *ecb, uint32_t index, int res,
			  bool more)
{
	const struct evring *evring = ecb->own;
	struct source *source = &ecb->sources[index];

	if (res >= 0 && !more && !evring_pollable(ecb->slots[index].fd))
		res = -EPERM;
	if (res < 0) {
		evring_poll_failed(ecb, index, res);
		return;
	}
	flexsc__source_raise(ecb, index, (uint32_t)res);
	source->ends = more || evring->crowded ? 0 : source->ends + 1;
	/*
	 * Poll again, because a full completion queue may have ended the poll. If the
	 * file itself ends every poll, its state no longer changes, so give up after
	 * ENDS_MAX polls.
	 */
	if (!more && source->ends < ENDS_MAX)
		flexsc__evring_poll(ecb, index);
}

static void evring_complete(struct flexsc_ecb *ecb, uint64_t name, int res,
			    bool more)
{
	enum evring_kind kind = (enum evring_kind)(name >> 60);
	uint32_t index = (uint32_t)name;

	if (kind == EVRING_BELL)
		((struct evring *)ecb->own)->listens = false;
	if (kind >= EVRING_BELL)
		return;
	if (!(ecb->sources[index].flags & SOURCE_USED) ||
	    name != flexsc__evring_name(ecb, kind, index)) {
		/*
		 * Close a connection that arrived while its listening socket was being
		 * forgotten.
		 */
		if (kind == EVRING_ACCEPT && res >= 0)
			close(res);
		return;
	}
	if (kind == EVRING_POLL)
		evring_polled(ecb, index, res, more);
	else
		flexsc__evring_accepted(ecb, index, res, more);
}

static struct io_uring_cqe *evring_peek(struct evring *evring)
{
	struct io_uring_cqe *cqe;

	/*
	 * When the queue is empty, the kernel moves overflowed completions to it, and
	 * clears the overflow flag. After that, only a full queue shows that
	 * completions had overflowed.
	 */
	evring->crowded |=
		io_uring_cq_has_overflow(&evring->ring) ||
		io_uring_cq_ready(&evring->ring) == evring->completions;
	return io_uring_peek_cqe(&evring->ring, &cqe) ? NULL : cqe;
}

/* Take all completions that have arrived. Returns true if there were any. */
static bool evring_reap(struct flexsc_ecb *ecb)
{
	struct evring *evring = ecb->own;
	struct io_uring_cqe *cqe;
	bool any = false;

	evring->crowded = false;
	while ((cqe = evring_peek(evring))) {
		uint64_t name = cqe->user_data;
		int res = cqe->res;
		bool more = cqe->flags & IORING_CQE_F_MORE;

		io_uring_cqe_seen(&evring->ring, cqe);
		evring_complete(ecb, name, res, more);
		any = true;
	}
	return any;
}

/*
 * Reap completions and submit the requests that follow from them, until no completion
 * is left.
 */
static void evring_settle(struct flexsc_ecb *ecb)
{
	struct evring *evring = ecb->own;
	bool any;

	do {
		int err = flexsc__evring_submit(evring);

		any = evring_reap(ecb);
		/*
		 * The kernel has no room for completions, and none could be taken to make
		 * room. So every later submission would fail, too.
		 */
		if (err == -EBUSY && !any)
			evring->failed = err;
	} while (any ||
		 (!evring->failed && io_uring_sq_ready(&evring->ring)));
}

static bool evring_notifies(const struct flexsc_ecb *ecb)
{
	return ecb->handler && !(ecb->flags & FLEXSC_ECB_BATCHED) &&
	       __atomic_load_n(&ecb->control->notify, __ATOMIC_RELAXED);
}

/* Returns -errno if SIGURG can't be armed, so that completions won't notify. */
static int evring_look(struct flexsc_ecb *ecb)
{
	struct evring *evring = ecb->own;
	int err;

	RULE(ecb->control->critical);
	flexsc__evring_hush(ecb);
	evring_settle(ecb);
	if (!evring_notifies(ecb))
		return evring->failed;
	err = flexsc__evring_notify(ecb);
	for (;;) {
		io_uring_cq_eventfd_toggle(&evring->ring, true);
		/*
		 * A full barrier between the stores (the toggle, "critical")
		 * and the load of the completions. The kernel writes a
		 * completion and then checks whether to count it for the
		 * eventfd. So at least one side sees the other's store.
		 */
		__atomic_fetch_add(&ecb->control->critical, 0,
				   __ATOMIC_SEQ_CST);
		if (!io_uring_cq_ready(&evring->ring))
			break;
		flexsc__evring_hush(ecb);
		evring_settle(ecb);
	}
	return err;
}

static void evring_collect(struct flexsc_ecb *ecb)
{
	evring_look(ecb);
}

static bool evring_stirs(const struct flexsc_ecb *ecb)
{
	const struct evring *evring = ecb->own;

	return io_uring_cq_ready(&evring->ring) ||
	       io_uring_cq_has_overflow(&evring->ring);
}

/* The backend. */

/*
 * Watch a slot's descriptor. Submitting the request yields at once the
 * descriptor's first state, or the error that prevents watching.
 */
static int evring_begin(struct flexsc_ecb *ecb, uint32_t index)
{
	int err;

	ecb->sources[index].flags |= SOURCE_BEGINS;
	evring_collect(ecb);
	ecb->sources[index].flags &= (uint8_t)~SOURCE_BEGINS;
	err = ecb->sources[index].error;
	if (!err)
		err = ((struct evring *)ecb->own)->failed;
	if (!err)
		return (int)index;
	if (ecb->sources[index].flags & SOURCE_ACCEPTS)
		flexsc__evring_unlisten(ecb, index);
	flexsc__slot_revoke(ecb, index);
	return err;
}

static int evring_watch(struct flexsc_ecb *ecb,
			const struct flexsc_ecb_watch *watch)
{
	int index = flexsc__slot_give(ecb, watch);
	int err = 0;

	if (index < 0 || watch->type == FLEXSC_EVT_USER)
		return index;
	if (watch->flags & FLEXSC_WATCH_ACCEPT)
		err = flexsc__evring_listen(ecb, (uint32_t)index, watch);
	else
		flexsc__evring_poll(ecb, (uint32_t)index);
	if (!err)
		return evring_begin(ecb, (uint32_t)index);
	flexsc__slot_revoke(ecb, (uint32_t)index);
	return err;
}

/* A slot has become free: a connection may be waiting for one. */
static void evring_dropped(struct flexsc_ecb *ecb, uint32_t index)
{
	flexsc__slot_dropped(ecb, index);
	if (!flexsc__evring_full(ecb))
		return;
	flexsc__evring_accept(ecb);
	evring_collect(ecb);
}

/*
 * Close a slot's descriptor after cancelling its poll, in the same system call. If the
 * ring has failed, close it by close(2).
 */
static void evring_close_fd(struct flexsc_ecb *ecb, uint32_t index)
{
	int fd = ecb->slots[index].fd;

	io_uring_prep_close(flexsc__evring_request(ecb, EVRING_OTHER, 0), fd);
	/*
	 * The completions of the close and of the cancellation must not notify the
	 * owner.
	 */
	flexsc__evring_hush(ecb);
	flexsc__evring_submit(ecb->own);
	if (((struct evring *)ecb->own)->failed)
		raw_syscall(SYS_close, (uint32_t)fd, 0, 0, 0, 0, 0);
}

static int evring_forget(struct flexsc_ecb *ecb, uint32_t index, bool close)
{
	struct source *source = &ecb->sources[index];

	flexsc__evring_room(ecb, 2);
	if (source->flags & SOURCE_ACCEPTS)
		flexsc__evring_unlisten(ecb, index);
	else if (ecb->slots[index].fd >= 0)
		flexsc__evring_cancel(ecb, EVRING_POLL, index);
	if (close)
		evring_close_fd(ecb, index);
	flexsc__slot_revoke(ecb, index);
	flexsc__evring_accept(ecb);
	evring_collect(ecb);
	return 0;
}

static int evring_flush(struct flexsc_ecb *ecb)
{
	struct evring *evring = ecb->own;

	flexsc__source_flush(ecb);
	flexsc__evring_accept(ecb);
	/*
	 * A batched ring delivers completions only on request. Request them here,
	 * because the wait may return without sleeping.
	 */
	if (ecb->flags & FLEXSC_ECB_BATCHED && ecb->control->waiting)
		io_uring_get_events(&evring->ring);
	return evring_look(ecb);
}

static struct __kernel_timespec evring_left(uint64_t now, uint64_t until)
{
	uint64_t left = until > now ? until - now : 0;

	return (struct __kernel_timespec){
		.tv_sec = (int64_t)(left / SECOND),
		.tv_nsec = (long long)(left % SECOND),
	};
}

/*
 * Keep a read of the eventfd "bell" pending: a thread that writes to it then ends the
 * wait.
 */
static void evring_listen_to_bell(struct flexsc_ecb *ecb)
{
	struct evring *evring = ecb->own;

	if (evring->listens)
		return;
	io_uring_prep_read(flexsc__evring_request(ecb, EVRING_BELL, 0),
			   evring->bell, &evring->rung, sizeof(evring->rung),
			   0);
	evring->listens = true;
}

/*
 * Retry full listening sockets every AGAIN ns, because no event reports that a
 * descriptor is free again. Returns the time of the next retry; UINT64_MAX: none is
 * needed.
 */
static uint64_t evring_retry(struct flexsc_ecb *ecb, uint64_t now)
{
	struct evring *evring = ecb->own;

	if (!flexsc__evring_full(ecb))
		return UINT64_MAX;
	if (now >= evring->again) {
		flexsc__evring_accept(ecb);
		evring->again = now + AGAIN;
	}
	return evring->again;
}

static int evring_wait(struct flexsc_ecb *ecb, uint32_t groups)
{
	struct evring *evring = ecb->own;
	uint64_t until = ecb->control->deadline;
	uint64_t now = time_monotonic();
	uint64_t again = evring_retry(ecb, now);
	struct __kernel_timespec left;
	struct io_uring_cqe *cqe;
	int err;

	if (until > again)
		until = again;
	left = evring_left(now, until);
	evring_listen_to_bell(ecb);
	/*
	 * Submit first: if a call both submits and waits, it returns the number of
	 * submissions instead of -EINTR.
	 */
	flexsc__evring_submit(evring);
	err = evring->failed ? evring->failed :
			       io_uring_wait_cqe_timeout(
				       &evring->ring, &cqe,
				       until == UINT64_MAX ? NULL : &left);
	if (err < 0)
		flexsc__evring_error(evring, err);
	evring_collect(ecb);
	return err < 0 && err != -ETIME && err != -EAGAIN ? err : 0;
}

static void evring_kick(struct flexsc_ecb *ecb, uint32_t groups)
{
	const struct flexsc_event_control *control = ecb->control;
	const uint64_t one = 1;

	if (control_wakes(control, groups))
		raw_syscall(SYS_write,
			    (uint32_t)((struct evring *)ecb->own)->bell,
			    PTR(&one), sizeof(one), 0, 0, 0);
	else if (control_notifies(control, groups))
		flexsc__notifier_send(ecb);
}

static void evring_end_ring(struct io_uring *ring)
{
	fds_forget((uint32_t)ring->ring_fd);
	io_uring_queue_exit(ring);
}

static int evring_make_ring(struct io_uring *ring, struct io_uring_params *params)
{
	int err;

	flexsc__private_fd_begin();
	err = io_uring_queue_init_params(REQUESTS, ring, params);
	ring->ring_fd = flexsc__private_fd_made(err ? -1 : ring->ring_fd);
	if (err)
		return err;
	ring->enter_ring_fd = ring->ring_fd;
	/*
	 * Enter the ring once as a test: a filter may allow creating a ring, but forbid
	 * entering it.
	 */
	err = (int)raw_syscall(SYS_io_uring_enter, (uint64_t)ring->ring_fd, 0, 0, 0,
			       0, 0);
	if (err)
		evring_end_ring(ring);
	return err;
}

static int evring_open_ring(struct flexsc_ecb *ecb, struct evring *evring)
{
	struct io_uring_params params = {
		.flags = IORING_SETUP_CQSIZE | IORING_SETUP_CLAMP,
		.cq_entries = 2 * ecb->events,
	};
	int err;

	if (params.cq_entries > COMPLETIONS_MAX)
		params.cq_entries = COMPLETIONS_MAX;
	if (params.cq_entries < 2 * REQUESTS)
		params.cq_entries = 2 * REQUESTS;
	if (ecb->flags & FLEXSC_ECB_BATCHED)
		params.flags |= IORING_SETUP_SINGLE_ISSUER |
				IORING_SETUP_DEFER_TASKRUN;
	err = flexsc__uring_kills() ?
		      -EPERM : evring_make_ring(&evring->ring, &params);
	if (err) {
		flexsc__uring_why(err, ecb->why, sizeof(ecb->why));
		return err == -EMFILE || err == -ENFILE || err == -ENOMEM ?
			       err : -EOPNOTSUPP;
	}
	evring->completions = params.cq_entries;
	return 0;
}

static int evring_open_area(struct flexsc_ecb *ecb)
{
	void *area;

	ecb->area = FLEXSC_ECB_SLOTS_OFFSET +
		    ecb->events * sizeof(struct flexsc_event_slot);
	area = mmap(NULL, ecb->area, PROT_READ | PROT_WRITE,
		    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (area == MAP_FAILED)
		return -ENOMEM;
	ecb->control = area;
	ecb->slots = (void *)((char *)area + FLEXSC_ECB_SLOTS_OFFSET);
	return 0;
}

static void evring_discard(struct flexsc_ecb *ecb)
{
	struct evring *evring = ecb->own;

	flexsc__evring_discard_listeners(evring);
	evring_end_ring(&evring->ring);
	munmap(ecb->control, ecb->area);
	free(evring);
}

static void evring_close(struct flexsc_ecb *ecb)
{
	struct evring *evring = ecb->own;

	flexsc__evring_unlisten_all(ecb);
	flexsc__evring_hush(ecb);
	if (ecb->flags & FLEXSC_ECB_BATCHED)
		io_uring_submit_and_get_events(&evring->ring);
	evring_settle(ecb);
	flexsc__evring_disown(ecb);
	flexsc__evring_notify_close(evring);
	flexsc__private_fd_close(evring->bell);
	evring_discard(ecb);
}

static int evring_open(struct flexsc_ecb *ecb)
{
	struct evring *evring = calloc(1, sizeof(*evring));
	int err;

	if (!evring)
		return -ENOMEM;
	evring->event_fd = -1;
	evring->bell = flexsc__private_fd(eventfd(0, EFD_CLOEXEC));
	err = evring->bell < 0 ? -errno : evring_open_area(ecb);
	if (!err)
		err = evring_open_ring(ecb, evring);
	if (!err) {
		ecb->own = evring;
		return 0;
	}
	if (ecb->control)
		munmap(ecb->control, ecb->area);
	ecb->control = NULL;
	if (evring->bell >= 0)
		flexsc__private_fd_close(evring->bell);
	free(evring);
	return err;
}

/*
 * Map zeroes in place of memory of the ring in the child: if the child is in a critical
 * section, it still reads that memory.
 */
static void evring_unshare(void *area, size_t size)
{
	(void)mmap(area, size, PROT_READ | PROT_WRITE,
		   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1,
		   0);
}

static void evring_forked(struct flexsc_ecb *ecb)
{
	struct evring *evring = ecb->own;
	const struct io_uring *ring = &evring->ring;

	/*
	 * Unmap first: the mapping would keep the ring alive, and with it all files
	 * that the parent polls.
	 */
	evring_unshare(ring->sq.ring_ptr, ring->sq.ring_sz);
	if (ring->cq.ring_ptr != ring->sq.ring_ptr)
		evring_unshare(ring->cq.ring_ptr, ring->cq.ring_sz);
	evring_unshare(ring->sq.sqes,
		       ring->sq.ring_entries * sizeof(struct io_uring_sqe));
	/*
	 * From this word, which is zero now, liburing 2.9 computes how much
	 * io_uring_queue_exit() unmaps.
	 */
	*ring->sq.kring_entries = ring->sq.ring_entries;
	evring->failed = -ESTALE;
	flexsc__private_fd_close(evring->ring.ring_fd);
	/* The ring's number may belong to another file of the child: don't close it. */
	evring->ring.ring_fd = -1;
	flexsc__private_fd_close(evring->bell);
	flexsc__evring_notify_close(evring);
	flexsc__evring_disown(ecb);
}

const struct backend flexsc__backend_uring = {
	.name = "uring",
	.open = evring_open,
	.watch = evring_watch,
	.forget = evring_forget,
	.dropped = evring_dropped,
	.flush = evring_flush,
	.wait = evring_wait,
	.collect = evring_collect,
	.stirs = evring_stirs,
	.kick = evring_kick,
	.hush = flexsc__evring_hush,
	.unmask = flexsc__notifier_unmask,
	.close = evring_close,
	.forked = evring_forked,
	.discard = evring_discard,
};
