/* SPDX-License-Identifier: MIT */
/*
 * Listening sockets: a multishot accept for each. While events of a socket's group may
 * not be delivered, or no slot or descriptor is free, the socket doesn't accept, and
 * connections stay in its backlog.
 *
 *	idle -> accepting	its group may be delivered, and "full" isn't set
 *	accepting -> idle	its request ended, or was cancelled
 *
 * The kernel may accept a connection before it sees the cancellation. If no slot is
 * free, that connection is kept as a spare one, and delivered once a slot is free.
 */
#include "uring.h"

#include <errno.h>
#include <flexsc/ecb.h>
#include <poll.h>
#include <sys/mman.h>
#include <unistd.h>

#include "lib/base/checks.h"
#include "events/event/ecb.h"
#include "events/event/slot.h"
#include "events/event/source.h"
#include "ring.h"

struct acceptor {
	struct acceptor *next;
	uint32_t index;		/* the listening socket's slot */
	bool accepting;		/* a request is pending */
	bool full;		/* the last attempt found no free slot or
				 * descriptor */
	bool reported;		/* an event has reported "full"; cleared by the
				 * next connection */
	struct flexsc_ecb_watch watch;
	uint32_t spares, spares_max;
	int spare[];
};

static size_t acceptor_size(uint32_t spares)
{
	return sizeof(struct acceptor) + spares * sizeof(int);
}

static struct acceptor *acceptor_of(const struct flexsc_ecb *ecb,
				    uint32_t index)
{
	RULE(ecb->sources[index].flags & SOURCE_ACCEPTS);
	return ecb->sources[index].own;
}

/* Report an error by an event of the listening socket itself. */
static void acceptor_report(struct flexsc_ecb *ecb,
			  const struct acceptor *acceptor, int err)
{
	ecb->slots[acceptor->index].error = err;
	ecb->sources[acceptor->index].type = FLEXSC_EVT_OVERFLOW;
	flexsc__source_raise(ecb, acceptor->index, 0);
}

/* Stop accepting permanently, even if resources become free. */
static void acceptor_fail(struct flexsc_ecb *ecb,
			  const struct acceptor *acceptor, int err)
{
	struct source *source = &ecb->sources[acceptor->index];

	source->error = err;
	/*
	 * Deliver no event if the source is still being created, because the function
	 * that creates it returns the error; and none if the descriptor was closed.
	 */
	if (!(source->flags & SOURCE_BEGINS) && err != -EBADF)
		acceptor_report(ecb, acceptor, err);
}

/* Stop accepting until a slot or a descriptor is free. */
static void acceptor_fill(struct flexsc_ecb *ecb, struct acceptor *acceptor,
			  int err)
{
	acceptor->full = true;
	if (acceptor->accepting)
		flexsc__evring_cancel(ecb, EVRING_ACCEPT, acceptor->index);
	if (acceptor->reported)
		return;
	acceptor->reported = true;
	ecb->control->overflows++;
	acceptor_report(ecb, acceptor, err);
}

/* Give a slot to a connection; false: no slot is free. */
static bool acceptor_deliver(struct flexsc_ecb *ecb, struct acceptor *acceptor,
			     int fd)
{
	const struct flexsc_ecb_watch watch = {
		.fd = fd,
		.want = acceptor->watch.accept_want,
		.type = FLEXSC_EVT_IPACCEPT,
		.group = acceptor->watch.group,
		.data = acceptor->watch.accept_data,
	};
	int index = flexsc__slot_give(ecb, &watch);

	if (index < 0)
		return false;
	ecb->sources[index].later = (uint8_t)acceptor->watch.accept_group;
	flexsc__source_raise(ecb, (uint32_t)index, 0);
	flexsc__evring_poll(ecb, (uint32_t)index);
	acceptor->reported = false;
	return true;
}

static bool acceptor_may(const struct flexsc_ecb *ecb,
			 const struct acceptor *acceptor)
{
	return !acceptor->full && !ecb->sources[acceptor->index].error &&
	       control_deliverable(ecb->control) &
		       1U << acceptor->watch.group;
}

static void acceptor_request(struct flexsc_ecb *ecb, struct acceptor *acceptor)
{
	struct io_uring_sqe *sqe =
		flexsc__evring_request(ecb, EVRING_ACCEPT, acceptor->index);

	io_uring_prep_multishot_accept(sqe, acceptor->watch.fd, NULL, NULL,
				       (int)acceptor->watch.accept_flags);
	acceptor->accepting = true;
}

static void acceptor_connected(struct flexsc_ecb *ecb,
			       struct acceptor *acceptor, int fd)
{
	if (!acceptor->spares && acceptor_deliver(ecb, acceptor, fd))
		return;
	RULE(acceptor->spares < acceptor->spares_max);
	acceptor->spare[acceptor->spares++] = fd;
	acceptor_fill(ecb, acceptor, -ENOSPC);
}

void flexsc__evring_accepted(struct flexsc_ecb *ecb, uint32_t index, int res,
			     bool more)
{
	struct acceptor *acceptor = acceptor_of(ecb, index);

	if (!more)
		acceptor->accepting = false;
	if (res >= 0)
		acceptor_connected(ecb, acceptor, res);
	else if (res == -EMFILE || res == -ENFILE || res == -ENOBUFS ||
		 res == -ENOMEM)
		acceptor_fill(ecb, acceptor, res);
	else if (res == -EINVAL || res == -ENOTSOCK || res == -EBADF ||
		 res == -EOPNOTSUPP)
		acceptor_fail(ecb, acceptor, res);
	/*
	 * Other errors are temporary: a connection was aborted, or the request
	 * was cancelled. Accept again.
	 */
	if (!acceptor->accepting && acceptor_may(ecb, acceptor))
		acceptor_request(ecb, acceptor);
}

/* Deliver the spare connections; false: some found no free slot. */
static bool acceptor_empty(struct flexsc_ecb *ecb, struct acceptor *acceptor)
{
	uint32_t done = 0;

	while (done < acceptor->spares &&
	       acceptor_deliver(ecb, acceptor, acceptor->spare[done]))
		done++;
	acceptor->spares -= done;
	for (uint32_t i = 0; done && i < acceptor->spares; i++)
		acceptor->spare[i] = acceptor->spare[i + done];
	return !acceptor->spares;
}

bool flexsc__evring_full(const struct flexsc_ecb *ecb)
{
	const struct evring *evring = ecb->own;

	for (const struct acceptor *each = evring->acceptors; each;
	     each = each->next)
		if (each->full)
			return true;
	return false;
}

void flexsc__evring_accept(struct flexsc_ecb *ecb)
{
	const struct evring *evring = ecb->own;

	for (struct acceptor *each = evring->acceptors; each;
	     each = each->next) {
		each->full = !acceptor_empty(ecb, each);
		if (acceptor_may(ecb, each) == each->accepting)
			continue;
		if (each->accepting)
			flexsc__evring_cancel(ecb, EVRING_ACCEPT, each->index);
		else
			acceptor_request(ecb, each);
	}
}

int flexsc__evring_listen(struct flexsc_ecb *ecb, uint32_t index,
			  const struct flexsc_ecb_watch *watch)
{
	struct evring *evring = ecb->own;
	/*
	 * The maximum number of connections that may have been accepted when a
	 * request is cancelled.
	 */
	uint32_t spares = 2 * evring->completions;
	struct acceptor *acceptor;

	/*
	 * mmap() instead of malloc(), because a handler may run this, and may have
	 * interrupted malloc().
	 */
	acceptor = mmap(NULL, acceptor_size(spares), PROT_READ | PROT_WRITE,
			MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (acceptor == MAP_FAILED)
		return -ENOMEM;
	acceptor->index = index;
	acceptor->watch = *watch;
	acceptor->spares_max = spares;
	acceptor->next = evring->acceptors;
	evring->acceptors = acceptor;
	ecb->sources[index].own = acceptor;
	ecb->sources[index].flags |= SOURCE_ACCEPTS;
	if (acceptor_may(ecb, acceptor))
		acceptor_request(ecb, acceptor);
	return 0;
}

void flexsc__evring_unlisten(struct flexsc_ecb *ecb, uint32_t index)
{
	struct evring *evring = ecb->own;
	struct acceptor *acceptor = acceptor_of(ecb, index);
	struct acceptor **link = &evring->acceptors;

	if (acceptor->accepting)
		flexsc__evring_cancel(ecb, EVRING_ACCEPT, index);
	while (*link != acceptor)
		link = &(*link)->next;
	*link = acceptor->next;
	/* Close these connections: the program has never received their descriptors. */
	while (acceptor->spares)
		close(acceptor->spare[--acceptor->spares]);
	munmap(acceptor, acceptor_size(acceptor->spares_max));
}

void flexsc__evring_unlisten_all(struct flexsc_ecb *ecb)
{
	const struct evring *evring = ecb->own;

	while (evring->acceptors) {
		uint32_t index = evring->acceptors->index;

		flexsc__evring_unlisten(ecb, index);
		flexsc__slot_revoke(ecb, index);
	}
}

void flexsc__evring_discard_listeners(struct evring *evring)
{
	struct acceptor *acceptor;

	while ((acceptor = evring->acceptors)) {
		evring->acceptors = acceptor->next;
		munmap(acceptor, acceptor_size(acceptor->spares_max));
	}
}

void flexsc__evring_disown(const struct flexsc_ecb *ecb)
{
	const struct evring *evring = ecb->own;

	for (const struct acceptor *each = evring->acceptors; each;
	     each = each->next)
		for (uint32_t i = 0; i < each->spares; i++)
			close(each->spare[i]);
	for (uint32_t i = 0; i < ecb->fresh; i++)
		if (ecb->sources[i].type == FLEXSC_EVT_IPACCEPT &&
		    (ecb->sources[i].flags & (SOURCE_USED | SOURCE_ACCEPTS)) ==
			    SOURCE_USED)
			close(ecb->slots[i].fd);
}
