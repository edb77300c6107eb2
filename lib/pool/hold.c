/* SPDX-License-Identifier: MIT */
#include "hold.h"

#include "lib/files/fds.h"
#include "lib/calls/call_info.h"
#include "lib/loop/loop.h"
#include "closing.h"
#include "pool.h"

/* A descriptor that is about to be closed, and the copy used instead. */
struct closing {
	struct pool *pool;
	int fd;
	int copy;	/* NOT_YET, or negative: there can be none */
};

#define NOT_YET		INT32_MAX

/* Which of the entry's arguments are descriptors: bit n is argument n. */
static unsigned int hold_descriptors(const struct flexsc_entry *entry)
{
	return flexsc__call_info(entry->nr)->fds;
}

static int hold_argument(const struct flexsc_entry *entry, unsigned int n)
{
	return (int)entry->args[n];
}

void flexsc__hold_begin(const struct flexsc_entry *entry)
{
	unsigned int fds = hold_descriptors(entry);

	for (unsigned int n = 0; fds; n++, fds >>= 1)
		if (fds & 1)
			flexsc__fds_mark((uint32_t)hold_argument(entry, n));
}

/* With the lock: is there room to count the users of the entry's copies? */
static bool hold_make_room(struct pool *pool, const struct flexsc_entry *entry,
			   unsigned int moved)
{
	for (unsigned int n = 0; moved; n++, moved >>= 1)
		if (moved & 1 &&
		    !flexsc__park_room(&pool->parking, hold_argument(entry, n)))
			return false;
	return true;
}

bool flexsc__hold_adopt(struct pool *pool, uint32_t index)
{
	const struct flexsc_entry *entry = entry_of(pool->loop, index);
	unsigned int moved = call_of(pool->loop, index)->pool.moved;
	bool room;

	lock(&pool->lock);
	room = hold_make_room(pool, entry, moved);
	for (unsigned int n = 0; room && moved; n++, moved >>= 1)
		if (moved & 1)
			flexsc__park_use(&pool->parking,
					 hold_argument(entry, n));
	unlock(&pool->lock);
	return room;
}

void flexsc__hold_end(struct pool *pool, uint32_t index)
{
	const struct flexsc_entry *entry = entry_of(pool->loop, index);
	struct call *call = call_of(pool->loop, index);
	unsigned int moved = call->pool.moved;

	lock_assert_held(&pool->lock);
	call->pool.moved = 0;
	for (unsigned int n = 0; moved; n++, moved >>= 1)
		if (moved & 1)
			flexsc__park_release(&pool->parking,
					     hold_argument(entry, n));
}

/* A copy is made when the first entry needs it. */
static bool hold_copy(struct closing *closing)
{
	if (closing->copy == NOT_YET)
		closing->copy = flexsc__park_copy(&closing->pool->parking,
						  closing->fd);
	return closing->copy >= 0;
}

/*
 * The entry goes on with the copy. A thread that executes the entry reads the
 * argument without the lock: before or after, it is the entry's file.
 */
static bool hold_move(struct closing *closing, uint32_t index)
{
	struct pool *pool = closing->pool;
	struct flexsc_entry *entry = entry_of(pool->loop, index);
	struct call *call = call_of(pool->loop, index);
	unsigned int fds = hold_descriptors(entry);
	bool moved = false;

	/*
	 * An entry that closes a descriptor keeps its number: it may be the
	 * very call that closes this one.
	 */
	if (closes(entry))
		return false;
	for (unsigned int n = 0; fds; n++, fds >>= 1) {
		if (!(fds & 1) || hold_argument(entry, n) != closing->fd)
			continue;
		if (!hold_copy(closing))
			return false;
		__atomic_store_n(&entry->args[n], (uint64_t)closing->copy,
				 __ATOMIC_RELAXED);
		call->pool.moved |= (uint8_t)(1U << n);
		flexsc__park_use(&pool->parking, closing->copy);
		moved = true;
	}
	return moved;
}

static void hold_move_list(struct closing *closing,
			   const struct call_list *list)
{
	uint32_t index = list->head;

	for (uint32_t n = list->count; n; n--) {
		uint32_t next = call_of(closing->pool->loop, index)->next;

		hold_move(closing, index);
		index = next;
	}
}

static void hold_move_running(struct closing *closing)
{
	struct pool *pool = closing->pool;

	for (uint32_t i = 0; i < pool->max; i++) {
		struct syscall_thread *thread = pool_thread(pool, i);

		if (thread->pool && thread->index != NONE &&
		    hold_move(closing, thread->index))
			flexsc__pool_kick(pool, thread);
	}
}

static void hold_move_parked(struct closing *closing, int fd)
{
	const struct parking *parking = &closing->pool->parking;

	for (unsigned int side = 0; side < 2; side++) {
		/* The table may grow with the copy. */
		uint32_t index = parking->parked[fd].head[side];

		for (; index != NONE;
		     index = call_of(closing->pool->loop, index)->next)
			hold_move(closing, index);
	}
}

/*
 * Move the entries that wait for the descriptor, and those that name it while
 * they wait for another, if there are calls that name two.
 */
static void hold_move_all_parked(struct closing *closing)
{
	struct parking *parking = &closing->pool->parking;

	if ((size_t)closing->fd < parking->size) {
		hold_move_parked(closing, closing->fd);
		flexsc__park_move(parking, closing->fd, closing->copy);
	}
	for (size_t fd = 0; parking->pairs && fd < parking->size; fd++)
		hold_move_parked(closing, (int)fd);
}

void flexsc__hold_fd(struct pool *pool, int fd)
{
	struct closing closing = { .pool = pool, .fd = fd, .copy = NOT_YET };

	lock(&pool->lock);
	hold_move_list(&closing, &pool->queue);
	hold_move_list(&closing, &pool->deferred);
	hold_move_running(&closing);
	hold_move_all_parked(&closing);
	unlock(&pool->lock);
}

void flexsc__hold_closed(struct pool *pool, int fd)
{
	lock(&pool->lock);
	if ((size_t)fd < pool->parking.size)
		flexsc__park_again(&pool->parking, fd);
	unlock(&pool->lock);
}
