/* SPDX-License-Identifier: MIT */
/*
 * Entries of a pool keep their files though descriptors are closed: pool.h says
 * why. Part of a pool; with its lock.
 *
 * Any descriptor among an entry's arguments can be closed, so which arguments
 * have become copies is noted by entry (call->pool.moved), and how many entries
 * use a copy by descriptor (struct parked). The descriptors of entries that may
 * go to the kernel again are marked (flexsc__fds_mark()): a descriptor without
 * a mark is closed without a look at any pool.
 */
#ifndef FLEXSC_HOLD_H
#define FLEXSC_HOLD_H

#include <linux/flexsc.h>
#include <stdbool.h>
#include <stdint.h>

struct pool;

/*
 * An entry is about to go to the kernel for the first time, and may go there
 * again. Without the lock.
 */
void flexsc__hold_begin(const struct flexsc_entry *entry);

/*
 * The owner, before it submits an entry that comes with copies: no other entry
 * uses them, and the pool closes them. False: there is no memory for that.
 */
bool flexsc__hold_adopt(struct pool *pool, uint32_t index);

/*
 * An entry is complete: the copies that it used are closed after their last
 * user.
 */
void flexsc__hold_end(struct pool *pool, uint32_t index);

/* Any thread: this descriptor is about to be closed. */
void flexsc__hold_fd(struct pool *pool, int fd);
/*
 * Any thread: the descriptor is closed or shut down, and entries that wait for
 * it look again.
 */
void flexsc__hold_closed(struct pool *pool, int fd);
#endif /* FLEXSC_HOLD_H */
