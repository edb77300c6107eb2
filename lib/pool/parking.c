/* SPDX-License-Identifier: MIT */
#include "lib/files/fds.h"
#include "lib/files/private_fd.h"
#include "parking.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "lib/loop/loop.h"
#include "own_thread.h"
#include "pool.h"
#include "lib/base/syscall.h"
#include "lib/base/ask.h"
#include "lib/base/bell.h"
#include "lib/base/compiler.h"
#include "lib/calls/call_info.h"
#include "lib/loop/stats.h"

#define EVENTS	64

static int parked_fd(struct flexsc_loop *loop, uint32_t index)
{
	return (int)entry_of(loop, index)->args[0];
}

/*
 * Returns which of its descriptor's lists the entry is in: 0 (reading) or 1 (writing).
 */
static unsigned int parked_side(struct flexsc_loop *loop, uint32_t index)
{
	const struct call_info *row =
		flexsc__call_info(entry_of(loop, index)->nr);

	return row->dir == POLL_WRITE ? 1 : 0;
}

static const struct parked NOBODY = {
	.head = { NONE, NONE },
	.tail = { NONE, NONE },
};

static const uint32_t side_events[2] = { EPOLLIN, EPOLLOUT };

/*
 * Is no entry parked on the descriptor? The descriptor may be beyond the end of
 * "parked".
 */
static bool parked_empty(const struct parking *parking, int fd)
{
	return (size_t)fd >= parking->size ||
	       (parking->parked[fd].head[0] == NONE &&
		parking->parked[fd].head[1] == NONE);
}

/* Parked entries are in doubly linked lists, because any of them may be cancelled. */

static bool park_room(struct parking *parking, int fd)
{
	size_t size = parking->size ? parking->size : 64;
	struct parked *parked;

	if (fd < 0)
		return false;
	while (size <= (size_t)fd)
		size *= 2;
	if (size == parking->size)
		return true;
	parked = realloc(parking->parked, size * sizeof(*parked));
	if (!parked)
		return false;
	for (size_t i = parking->size; i < size; i++)
		parked[i] = NOBODY;
	parking->parked = parked;
	parking->size = size;
	return true;
}

static void parked_append(struct parking *parking, struct flexsc_loop *loop,
			  int fd, uint32_t index)
{
	struct parked *parked = &parking->parked[fd];
	unsigned int side = parked_side(loop, index);

	call_of(loop, index)->next = NONE;
	call_of(loop, index)->place = parked->tail[side];
	if (parked->tail[side] != NONE)
		call_of(loop, parked->tail[side])->next = index;
	else
		parked->head[side] = index;
	parked->tail[side] = index;
}

static void parked_drop(struct parking *parking, struct flexsc_loop *loop,
			int fd, uint32_t index)
{
	struct parked *parked = &parking->parked[fd];
	unsigned int side = parked_side(loop, index);
	uint32_t next = call_of(loop, index)->next;
	uint32_t prev = call_of(loop, index)->place;

	if (prev != NONE)
		call_of(loop, prev)->next = next;
	else
		parked->head[side] = next;
	if (next != NONE)
		call_of(loop, next)->place = prev;
	else
		parked->tail[side] = prev;
}

/* Unparks and returns one entry of this descriptor. NONE: no entry is parked. */
static uint32_t parked_take(struct parking *parking, int fd)
{
	for (unsigned int side = 0; side < 2; side++) {
		uint32_t index = parking->parked[fd].head[side];

		if (index == NONE)
			continue;
		parked_drop(parking, parking->pool->loop, fd, index);
		return index;
	}
	return NONE;
}

/* The epoll set. */

/*
 * Register the events that the descriptor's entries wait for, but not those in
 * "except". Called each time an entry is parked: if the file was closed and its number
 * reused, the old registration would never fire.
 */
static int parking_register(struct parking *parking, int fd, int op,
			    uint32_t except)
{
	struct flexsc_loop *loop = parking->pool->loop;
	struct epoll_event event = { .events = EPOLLONESHOT, .data.fd = fd };

	for (unsigned int side = 0; side < 2; side++)
		if (parking->parked[fd].head[side] != NONE)
			event.events |= side_events[side] & ~except;
	count_shared(&loop->stats->mode_switches, 1);
	return (int)raw_syscall(SYS_epoll_ctl, (uint64_t)parking->epoll,
				(uint64_t)op, (uint64_t)fd, PTR(&event), 0, 0);
}

/*
 * Called when the set has lost a descriptor with parked entries, because the program
 * closed it: end the entries. They must not use the number, which may refer to another
 * file now.
 */
static void parking_end_orphans(struct parking *parking, int fd)
{
	uint32_t index;

	while ((index = parked_take(parking, fd)) != NONE)
		flexsc__pool_finish(parking->pool, index, -EBADF);
}

/* Register the descriptor again, for the entries that remain parked. */
static void parking_renew(struct parking *parking, int fd, uint32_t except)
{
	if (!parked_empty(parking, fd) &&
	    parking_register(parking, fd, EPOLL_CTL_MOD, except))
		parking_end_orphans(parking, fd);
}

void flexsc__park_next(struct parking *parking, int fd)
{
	lock_assert_held(&parking->pool->lock);
	parking_renew(parking, fd, 0);
}

/*
 * Queue all entries of the descriptor, so that threads make their calls. "plainly": the
 * threads make the calls without attempting them first.
 */
static void parking_wake_all(struct parking *parking, int fd, bool plainly)
{
	uint32_t index;

	while ((index = parked_take(parking, fd)) != NONE) {
		call_of(parking->pool->loop, index)->plainly = plainly;
		flexsc__pool_wake(parking->pool, index);
	}
}

void flexsc__park_again(struct parking *parking, int fd)
{
	lock_assert_held(&parking->pool->lock);
	if (parked_empty(parking, fd))
		return;
	parking_renew(parking, fd, 0);
	parking_wake_all(parking, fd, true);
}

/*
 * Called when a descriptor is ready: wake the first entry that waits for each of the
 * events.
 */
static void parking_fire(struct parking *parking, int fd, uint32_t events)
{
	struct flexsc_loop *loop = parking->pool->loop;
	uint32_t woken = 0;

	if (events & (EPOLLHUP | EPOLLERR))
		events |= EPOLLIN | EPOLLOUT;
	for (unsigned int side = 0; side < 2; side++) {
		uint32_t index = parking->parked[fd].head[side];

		if (!(events & side_events[side]) || index == NONE)
			continue;
		parked_drop(parking, loop, fd, index);
		flexsc__pool_wake(parking->pool, index);
		woken |= side_events[side];
	}
	if (woken != (EPOLLIN | EPOLLOUT))
		parking_renew(parking, fd, woken);
}

/*
 * Called when the set can't be waited for any more, because the program has installed a
 * filter that forbids it: queue the parked entries. From now on each entry that waits
 * blocks a thread.
 */
static COLD void parking_fail(struct parking *parking)
{
	parking->failed = true;
	for (size_t fd = 0; fd < parking->size; fd++)
		if (!parked_empty(parking, (int)fd))
			parking_wake_all(parking, (int)fd, true);
}

static void *parking_poll(void *arg)
{
	struct parking *parking = arg;
	struct epoll_event events[EVENTS];
	struct progress progress = { 0 };

	lock(&parking->pool->lock);
	if (parking->late)
		flexsc__pool_born(parking->pool);
	unlock(&parking->pool->lock);
	for (;;) {
		uint64_t ns = flexsc__pool_check_progress(parking->pool,
							  &progress);
		uint64_t ms = ns == UINT64_MAX ? -1ULL : ns / 1000000;
		long n = ask(SYS_epoll_pwait, (uint64_t)parking->epoll,
			     PTR(events), EVENTS, ms, 0, 0);

		count_shared(&parking->pool->loop->stats->mode_switches,
			     asks_take());
		lock(&parking->pool->lock);
		if (n < 0 && n != -EINTR) {
			parking_fail(parking);
			unlock(&parking->pool->lock);
			return NULL;
		}
		for (long i = 0; i < n; i++) {
			if (events[i].data.fd == parking->stop) {
				unlock(&parking->pool->lock);
				return NULL;
			}
			parking_fire(parking, events[i].data.fd,
				     events[i].events);
		}
		unlock(&parking->pool->lock);
	}
}

/* Called if the set's thread couldn't be created: use threads instead of the set. */
static void parking_unborn(void *arg)
{
	struct parking *parking = arg;

	lock(&parking->pool->lock);
	parking->running = false;
	parking_fail(parking);
	flexsc__pool_born(parking->pool);
	unlock(&parking->pool->lock);
}

static bool parking_start(struct parking *parking)
{
	struct epoll_event event = { .events = EPOLLIN };
	int ret = -EAGAIN;

	if (parking->running)
		return true;
	parking->birth = (struct own_birth){
		.thread = &parking->thread,
		.run = parking_poll,
		.arg = parking,
		.failed = parking_unborn,
	};
	parking->epoll = flexsc__private_fd(epoll_create1(EPOLL_CLOEXEC));
	parking->stop =
		flexsc__private_fd(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
	event.data.fd = parking->stop;
	if (parking->epoll >= 0 && parking->stop >= 0 &&
	    !epoll_ctl(parking->epoll, EPOLL_CTL_ADD, parking->stop, &event))
		ret = flexsc__pool_spawn(parking->pool, &parking->birth);
	if (ret < 0) {
		flexsc__parking_forked(parking);
		return false;
	}
	parking->late = ret == OWN_LATER;
	parking->running = true;
	return true;
}

bool flexsc__park(struct parking *parking, uint32_t index)
{
	struct flexsc_loop *loop = parking->pool->loop;
	int fd = parked_fd(loop, index), op, err;

	lock_assert_held(&parking->pool->lock);
	if (parking->failed || !parking_start(parking) ||
	    !park_room(parking, fd))
		return false;
	op = parked_empty(parking, fd) ? EPOLL_CTL_ADD : EPOLL_CTL_MOD;
	for (;;) {
		parked_append(parking, loop, fd, index);
		err = parking_register(parking, fd, op, 0);
		if (!err)
			return true;
		parked_drop(parking, loop, fd, index);
		if (op == EPOLL_CTL_MOD && err == -ENOENT) {
			parking_end_orphans(parking, fd);
			op = EPOLL_CTL_ADD;
		} else if (op == EPOLL_CTL_ADD && err == -EEXIST) {
			op = EPOLL_CTL_MOD;
		} else {
			return false;
		}
	}
}

/* Closing. */

static void parking_unregister(struct parking *parking, int fd)
{
	ask(SYS_epoll_ctl, (uint64_t)parking->epoll, EPOLL_CTL_DEL,
	    (uint64_t)fd, 0, 0, 0);
}

void flexsc__park_closing(struct parking *parking, int fd)
{
	lock_assert_held(&parking->pool->lock);
	if (parked_empty(parking, fd))
		return;
	parking_unregister(parking, fd);
	parking_wake_all(parking, fd, false);
}

void flexsc__park_forget(struct parking *parking, uint32_t index)
{
	const struct call *call = call_of(parking->pool->loop, index);
	int fd = parked_fd(parking->pool->loop, index);

	lock_assert_held(&parking->pool->lock);
	if (call->guarded & 1 && call->by_entry.guards[0]->copied &&
	    parked_empty(parking, fd))
		parking_unregister(parking, fd);
}

void flexsc__unpark(struct parking *parking, uint32_t index)
{
	struct flexsc_loop *loop = parking->pool->loop;

	lock_assert_held(&parking->pool->lock);
	/* Keep the registration: it may fire once more, which has no effect. */
	parked_drop(parking, loop, parked_fd(loop, index), index);
}

static void parking_stop(const struct parking *parking)
{
	bell_ring(parking->stop);
	flexsc__own_join(parking->thread);
}

void flexsc__parking_quit(struct parking *parking)
{
	lock(&parking->pool->lock);
	parking_fail(parking);
	unlock(&parking->pool->lock);
	if (!parking->running)
		return;
	parking_stop(parking);
	/* Needs no lock: after parking_fail() no other thread reads "running". */
	parking->running = false;
}

void flexsc__parking_init(struct parking *parking, struct pool *pool)
{
	*parking = (struct parking){ .pool = pool, .epoll = -1, .stop = -1 };
}

void flexsc__parking_forked(struct parking *parking)
{
	if (parking->epoll >= 0)
		flexsc__private_fd_close(parking->epoll);
	if (parking->stop >= 0)
		flexsc__private_fd_close(parking->stop);
	parking->epoll = -1;
	parking->stop = -1;
	free(parking->parked);
	parking->parked = NULL;
	parking->size = 0;
}

void flexsc__parking_fini(struct parking *parking)
{
	if (parking->running)
		parking_stop(parking);
	flexsc__parking_forked(parking);
}
