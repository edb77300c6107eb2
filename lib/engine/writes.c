/* SPDX-License-Identifier: MIT */
#include "writes.h"

#include "lib/files/fds.h"
#include "lib/files/private_fd.h"
#include "lib/pool/hold.h"
#include "lib/loop/loop.h"
#include "lib/calls/call_info.h"

void flexsc__writes_init(struct writes *writes)
{
	*writes = (struct writes){ .head = NONE };
}

/* The entry's descriptors that aren't copies: bit n is argument n. */
static unsigned int write_numbers(const struct call *call)
{
	return call->fds & ~(unsigned int)call->pool.moved;
}

static void write_set_was(struct call *call, uint32_t was)
{
	__atomic_store_n(&call->begun.was, was, __ATOMIC_RELAXED);
}

/* Link a write in the list, with the lock. */
static void link_write(struct flexsc_loop *loop, struct writes *writes,
		       uint32_t index)
{
	struct call *call = call_of(loop, index);

	lock_assert_held(&writes->lock);
	call->begun.next = writes->head;
	call->begun.prev = NONE;
	if (writes->head != NONE)
		call_of(loop, writes->head)->begun.prev = index;
	writes->head = index;
}

/* Take a write off the list, with the lock. */
static void unlink_write(struct flexsc_loop *loop, struct writes *writes,
			 uint32_t index)
{
	struct call *call = call_of(loop, index);

	lock_assert_held(&writes->lock);
	if (!call->fds)
		return;
	if (call->begun.prev != NONE)
		call_of(loop, call->begun.prev)->begun.next = call->begun.next;
	else
		writes->head = call->begun.next;
	if (call->begun.next != NONE)
		call_of(loop, call->begun.next)->begun.prev = call->begun.prev;
	write_set_was(call, 0);
}

void flexsc__write_begin(struct flexsc_loop *loop, struct writes *writes,
			 uint32_t index)
{
	const struct flexsc_entry *entry = entry_of(loop, index);
	unsigned int fds = flexsc__call_info(entry->nr)->fds;

	call_of(loop, index)->fds = (uint8_t)fds;
	if (!fds)
		return;
	/* Marks come before calls can wait: see flexsc__closing_begin(). */
	for (; fds; fds &= fds - 1)
		flexsc__fds_mark((uint32_t)entry->args[__builtin_ctz(fds)]);
	lock(&writes->lock);
	link_write(loop, writes, index);
	unlock(&writes->lock);
}

/*
 * With the lock: an argument becomes a copy. The thread that executes the entry
 * reads the argument without the lock: before or after, it is the entry's file.
 */
static bool write_move(struct flexsc_loop *loop, uint32_t index, unsigned int n)
{
	struct flexsc_entry *entry = entry_of(loop, index);
	int copy = flexsc__own_fd_copy((int)entry->args[n]);

	if (copy < 0)
		return false;
	__atomic_store_n(&entry->args[n], (uint64_t)copy, __ATOMIC_RELAXED);
	call_of(loop, index)->pool.moved |= (uint8_t)(1U << n);
	return true;
}

void flexsc__write_continue(struct flexsc_loop *loop, struct writes *writes,
			    uint32_t index)
{
	const struct flexsc_entry *entry = entry_of(loop, index);
	unsigned int fds;

	lock(&writes->lock);
	fds = write_numbers(call_of(loop, index));
	for (; fds; fds &= fds - 1) {
		unsigned int n = (unsigned int)__builtin_ctz(fds);
		uint32_t fd = (uint32_t)entry->args[n];

		if (flexsc__fds_kind(fd) & ~(uint32_t)FD_PLACED &&
		    write_move(loop, index, n) && !n)
			write_set_was(call_of(loop, index), fd + 1);
	}
	unlock(&writes->lock);
}

void flexsc__write_end(struct flexsc_loop *loop, struct writes *writes,
		       uint32_t index)
{
	const struct flexsc_entry *entry = entry_of(loop, index);
	struct call *call = call_of(loop, index);
	unsigned int moved;

	lock(&writes->lock);
	unlink_write(loop, writes, index);
	unlock(&writes->lock);
	/*
	 * The write is off the list: no thread moves its descriptors any more.
	 */
	moved = call->pool.moved;
	call->pool.moved = 0;
	for (; moved; moved &= moved - 1)
		flexsc__own_fd_close((int)entry->args[__builtin_ctz(moved)]);
}

bool flexsc__write_to_pool(struct flexsc_loop *loop, struct writes *writes,
			   uint32_t index)
{
	bool adopted;

	/*
	 * The pool counts the copies in one step with the list: a descriptor
	 * may move right after.
	 */
	lock(&writes->lock);
	adopted = flexsc__hold_adopt(loop_pool(loop), index);
	if (adopted)
		unlink_write(loop, writes, index);
	unlock(&writes->lock);
	return adopted;
}

/* With the lock: the descriptor may be one of the entry's. */
static void write_hold(struct flexsc_loop *loop, uint32_t index, int fd)
{
	unsigned int fds = write_numbers(call_of(loop, index));

	if (call_was(call_of(loop, index), fd))
		write_set_was(call_of(loop, index), 0);
	for (; fds; fds &= fds - 1) {
		unsigned int n = (unsigned int)__builtin_ctz(fds);

		if ((int)entry_of(loop, index)->args[n] == fd)
			write_move(loop, index, n);
	}
}

void flexsc__writes_hold(struct flexsc_loop *loop, struct writes *writes,
			 int fd)
{
	lock(&writes->lock);
	for (uint32_t index = writes->head; index != NONE;
	     index = call_of(loop, index)->begun.next)
		write_hold(loop, index, fd);
	unlock(&writes->lock);
}
