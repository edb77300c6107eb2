/* SPDX-License-Identifier: MIT */
/*
 * How the kernel turns a completion into SIGURG, without a thread. The ring has an
 * eventfd, which counts completions, and a chain of three requests that produce no
 * completions themselves:
 *
 *	read the eventfd, which waits for a completion
 *	write a byte to a pipe with O_ASYNC: SIGURG for the owner
 *	read the byte
 *
 * All of this happens when the owner returns to user mode. There the signal's handler
 * runs and finds the completion. A chain notifies once, and is submitted again when the
 * completions are collected.
 *
 * While the owner collects, the kernel doesn't count completions. evring_look() makes it
 * count again, then checks once more for completions that arrived before that.
 */
#include "uring.h"

#include <errno.h>
#include <fcntl.h>
#include <flexsc/ecb.h>
#include <sys/eventfd.h>
#include <sys/uio.h>
#include <unistd.h>

#include "lib/base/syscall.h"
#include "lib/files/private_fd.h"
#include "events/event/ecb.h"
#include "notifier.h"
#include "ring.h"

void flexsc__evring_notify_close(struct evring *evring)
{
	if (evring->event_fd < 0)
		return;
	flexsc__private_fd_close(evring->event_fd);
	flexsc__private_fd_close(evring->pipe[0]);
	flexsc__private_fd_close(evring->pipe[1]);
	evring->event_fd = -1;
}

/* Create the eventfd and the pipe. 0 or -errno. */
static int notify_open(struct flexsc_ecb *ecb)
{
	struct evring *evring = ecb->own;
	int fds[2];
	int err;

	if (pipe2(fds, O_CLOEXEC | O_NONBLOCK))
		return -errno;
	evring->event_fd = flexsc__private_fd(eventfd(0, EFD_CLOEXEC));
	err = evring->event_fd < 0 ? -errno : 0;
	if (!err) {
		evring->pipe[0] = flexsc__private_fd(fds[0]);
		evring->pipe[1] = flexsc__private_fd(fds[1]);
		err = flexsc__notifier_arm(ecb, evring->pipe[0]);
		if (!err)
			err = io_uring_register_eventfd(&evring->ring,
							evring->event_fd);
		if (err)
			flexsc__evring_notify_close(evring);
		return err;
	}
	close(fds[0]);
	close(fds[1]);
	return err;
}

/* Reset the eventfd, whose count includes completions that are collected already. */
static void notify_forget(const struct evring *evring)
{
	uint64_t count;
	const struct iovec vector = { &count, sizeof(count) };

	raw_syscall(SYS_preadv2, (uint32_t)evring->event_fd, PTR(&vector), 1,
		    UINT64_MAX, UINT64_MAX, RWF_NOWAIT);
}

static void notify_request(struct flexsc_ecb *ecb)
{
	const unsigned int quiet = IOSQE_CQE_SKIP_SUCCESS;
	struct evring *evring = ecb->own;
	struct io_uring_sqe *sqe;

	flexsc__evring_room(ecb, 3);
	__atomic_store_n(&evring->notified, 0, __ATOMIC_RELAXED);
	sqe = flexsc__evring_request(ecb, EVRING_OTHER, 0);
	io_uring_prep_read(sqe, evring->event_fd, &evring->notified,
			   sizeof(evring->notified), 0);
	io_uring_sqe_set_flags(sqe, quiet | IOSQE_IO_LINK);
	sqe = flexsc__evring_request(ecb, EVRING_OTHER, 0);
	io_uring_prep_write(sqe, evring->pipe[1], "", 1, 0);
	io_uring_sqe_set_flags(sqe, quiet | IOSQE_IO_LINK);
	sqe = flexsc__evring_request(ecb, EVRING_OTHER, 0);
	io_uring_prep_read(sqe, evring->pipe[0], &evring->byte, 1, 0);
	io_uring_sqe_set_flags(sqe, quiet);
	evring->armed = true;
}

void flexsc__evring_hush(struct flexsc_ecb *ecb)
{
	struct evring *evring = ecb->own;

	if (evring->event_fd >= 0)
		io_uring_cq_eventfd_toggle(&evring->ring, false);
}

int flexsc__evring_notify(struct flexsc_ecb *ecb)
{
	struct evring *evring = ecb->own;
	int err = evring->failed;

	if (!err && evring->event_fd < 0)
		err = notify_open(ecb);
	if (err)
		return err;
	/*
	 * Keep a submitted chain whose first read is still pending: it hasn't notified
	 * the owner yet.
	 */
	if (evring->armed &&
	    !__atomic_load_n(&evring->notified, __ATOMIC_RELAXED))
		return 0;
	if (evring->armed)
		notify_forget(evring);
	notify_request(ecb);
	flexsc__evring_submit(evring);
	return evring->failed;
}
