/* SPDX-License-Identifier: MIT */
/*
 * Multishot calls that are posted again after each result, for engines and files
 * without multishot requests. A guard's duplicate keeps the file open between two
 * posted calls. A receive waits for data first, because a pending receive would occupy
 * a buffer. Owner only.
 */
#include <errno.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#include "lib/base/ask.h"
#include "lib/base/clock.h"
#include "lib/files/guard.h"
#include "lib/files/private_fd.h"
#include "await.h"
#include "buffers.h"
#include "loop.h"
#include "multishot.h"

#define PAUSE_NS	1000000	/* pause if poll(2) reports data, but a receive finds
				 * none */

static int repeat_accept(struct multishot *multishot)
{
	const uint64_t args[FLEXSC_ARGS_MAX] = {
		[0] = (uint64_t)multishot->file,
		[3] = (uint64_t)multishot->flags,
	};

	return multishot_post_own(multishot, SYS_accept4, args);
}

/* Receive into lent buffers: the engine takes a buffer when data has arrived. */
static int repeat_recv_lent(struct multishot *multishot)
{
	const uint64_t args[FLEXSC_ARGS_MAX] = {
		[0] = (uint64_t)multishot->file,
		[RECV_GROUP] = multishot->buffers->group,
		[RECV_ONCE] = true,
		[RECV_FLAGS] = MSG_DONTWAIT,
	};

	return multishot_post_own(multishot, NR_RECV, args);
}

static int repeat_recv(struct multishot *multishot)
{
	struct flexsc_buffers *buffers = multishot->buffers;
	uint64_t args[FLEXSC_ARGS_MAX] = {
		[0] = (uint64_t)multishot->file,
		[2] = buffers->size,
		[3] = MSG_DONTWAIT,
	};
	uint32_t which;
	int err;

	if (buffers->lent)
		return repeat_recv_lent(multishot);
	which = flexsc__buffers_take(buffers);
	if (which == NO_BUFFER)
		return -ENOBUFS;
	args[1] = PTR(buffers_at(buffers, which));
	err = multishot_post_own(multishot, SYS_recvfrom, args);
	if (err)
		flexsc__buffers_put(buffers, which);
	else
		multishot->taken = which;
	return err;
}

static int repeat_try(struct multishot *multishot)
{
	multishot->waits = false;
	return multishot->buffers ? repeat_recv(multishot) :
				    repeat_accept(multishot);
}

static int repeat_wait(struct multishot *multishot)
{
	const uint64_t args[FLEXSC_ARGS_MAX] = {
		[AWAIT_FD] = (uint64_t)multishot->file,
		[AWAIT_RECORD] = PTR(&multishot->poll),
	};

	multishot->waits = true;
	multishot->poll = (struct pollfd){ .fd = multishot->file,
					   .events = POLLIN };
	return multishot_post_own(multishot, NR_AWAIT, args);
}

/*
 * Wait for a timer, not for poll(2). Because the socket's error queue has messages,
 * poll(2) has reported an error, although the call finds no data. poll(2) would report
 * the messages again at once.
 */
static int repeat_pause(struct multishot *multishot)
{
	struct flexsc_loop *loop = multishot_loop(multishot);
	uint32_t timer;
	int err;

	if (loop->closing)
		return -ECANCELED;
	err = flexsc__wheel_arm(&loop->wheel, time_monotonic(), PAUSE_NS,
				TIMER_CB, (uintptr_t)&multishot->own, &timer);
	if (err)
		return err;
	multishot->own.handle = handle_make(HANDLE_TIMER, timer);
	loop->events++;
	multishot->waits = true;
	multishot->poll.revents = POLLIN;
	return 0;
}

static int repeat_again(struct multishot *multishot)
{
	if (multishot->cancelled)
		return -ECANCELED;
	return multishot->poll.revents == POLLERR ? repeat_pause(multishot) :
						    repeat_wait(multishot);
}

/* If a receive has filled its buffer, more data is likely: try again at once. */
static int repeat_next(struct multishot *multishot, int64_t ret)
{
	const struct flexsc_buffers *buffers = multishot->buffers;

	if (!buffers || (ret == (int64_t)buffers->size && buffers->frees))
		return repeat_try(multishot);
	return repeat_wait(multishot);
}

/* Nothing to do: the accepting call has recorded the facts of the connection. */
static void repeat_accepted(const struct multishot *multishot, int64_t ret)
{
}

/*
 * Release the guard, and post a close() of its duplicate. If the call failed at once,
 * it has no guard.
 */
static void repeat_end(struct multishot *multishot)
{
	uint64_t copy;

	if (!multishot->guard)
		return;
	copy = (uint64_t)flexsc__guard_drop(multishot->guard);
	if ((int)copy >= 0 &&
	    flexsc__multishot_post(multishot_loop(multishot), NULL, SYS_close,
				   (uint64_t[FLEXSC_ARGS_MAX]){ copy }))
		flexsc__private_fd_close((int)copy);
}

/*
 * Returns the error that a receive would have without data: 0, -ENOTSOCK or -ENOTCONN.
 */
static int check_receives(int fd)
{
	uint32_t listens = 0, size = sizeof(listens);
	long err = ask(SYS_getsockopt, (uint64_t)fd, SOL_SOCKET, SO_ACCEPTCONN,
		       PTR(&listens), PTR(&size), 0);

	return listens ? -ENOTCONN : (int)err;
}

/* Begin a guard, and duplicate the descriptor. 0 or -errno. */
static int repeat_guard(struct multishot *multishot)
{
	struct guard *guard = flexsc__guard_begin((uint32_t)multishot->fd);
	int err = (uint32_t)multishot->fd < FDS_MAX ? -ENOMEM : -EBADF;

	if (!guard)
		return err;
	err = flexsc__guard_copy(&guard);
	if (err) {
		flexsc__guard_end(guard);
		return err;
	}
	multishot->guard = guard;
	multishot->file = guard_fd(guard);
	return 0;
}

static int repeat_begin(struct multishot *multishot)
{
	int err = multishot->buffers ? check_receives(multishot->fd) : 0;

	if (!err)
		err = repeat_guard(multishot);
	if (err) {
		multishot->own.ret = err;
		flexsc__multishot_postpone(multishot);
		return 0;
	}
	err = multishot->buffers ? repeat_wait(multishot) :
				   repeat_try(multishot);
	if (err)
		flexsc__guard_end(multishot->guard);
	return err;
}

const struct multishot_how flexsc__multishot_repeat = {
	.begin = repeat_begin,
	.try = repeat_try,
	.next = repeat_next,
	.again = repeat_again,
	.accepted = repeat_accepted,
	.end = repeat_end,
};
