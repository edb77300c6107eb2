/* SPDX-License-Identifier: MIT */
/*
 * Writes that an engine may make in more than one operation: io_uring's
 * requests end when something is written, and so does a call of the kernel
 * module's that is interrupted because its thread is needed. An operation holds
 * its files, but the next one, with the rest, would find nothing at a
 * descriptor's number if that was closed meanwhile, or another file. So a write
 * whose rest has a number to look up goes on with a copy of the descriptor:
 *
 *	begun		-> moved	the descriptor is about to be closed
 *	begun		-> moved	there is a rest; not of a file on a disk
 *	begun, moved	-> ended	the copies are closed
 *	begun, moved	-> the pool	... when their last entry is complete
 *
 * begun, moved: the write is in the list, under the lock. Threads that close
 * the descriptor look at the list. call->pool.moved says which arguments are
 * copies. A file on a disk is copied only when the program closes it, because
 * closing any of its descriptors loses the process's locks on it.
 *
 * As long as the program hasn't closed the descriptor it can name the call by
 * it (flexsc_loop_cancel_fd()), though the call goes on with a copy.
 */
#ifndef FLEXSC_WRITES_H
#define FLEXSC_WRITES_H

#include <limits.h>
#include <linux/flexsc.h>
#include <stdbool.h>
#include <stdint.h>

#include "lib/base/futex.h"
#include "lib/calls/call_info.h"

struct flexsc_loop;

struct writes {
	struct lock lock;
	uint32_t head;
};

void flexsc__writes_init(struct writes *writes);

/*
 * Is a write so short that it has no rest? A pipe takes so many bytes whole. So
 * does a socket, which is ready when a third of its buffer is free, and whose
 * buffer is never smaller than this.
 */
static inline bool write_is_short(const struct flexsc_entry *entry)
{
	const struct call_info *row = flexsc__call_info(entry->nr);

	return row->length == LENGTH_BYTES && !row->source_arg &&
	       entry->args[row->length_arg] <= PIPE_BUF;
}

/*
 * Steps of a write, by the owner: its first operation is about to begin; there
 * is a rest; it is complete. A descriptor that can't be copied keeps its
 * number.
 */
void flexsc__write_begin(struct flexsc_loop *loop, struct writes *writes,
			 uint32_t index);
void flexsc__write_continue(struct flexsc_loop *loop, struct writes *writes,
			    uint32_t index);
void flexsc__write_end(struct flexsc_loop *loop, struct writes *writes,
		       uint32_t index);

/*
 * The loop's pool makes the rest of a write, and closes the copies. False: the
 * pool can't have it, because there is no memory.
 */
bool flexsc__write_to_pool(struct flexsc_loop *loop, struct writes *writes,
			   uint32_t index);

/* A descriptor is about to be closed. Any thread. */
void flexsc__writes_hold(struct flexsc_loop *loop, struct writes *writes,
			 int fd);

#endif /* FLEXSC_WRITES_H */
