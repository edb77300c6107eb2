/* SPDX-License-Identifier: MIT */
/*
 * Guards keep files open for calls that enter the kernel more than once: to try and to
 * wait, or for the remainder of a transfer. While a call is in the kernel, the kernel
 * holds its files. While it isn't, the program may close a descriptor that the call
 * names, and reuse the number for another file. So such a call begins a guard for each
 * descriptor, and uses guard_fd() whenever it enters the kernel:
 *
 *	named	-> copied	a call needs the file to stay: flexsc__guard_copy()
 *				duplicates the descriptor
 *	named	-> nameless	the descriptor is about to be closed; it was
 *				duplicated
 *	copied	-> nameless	the same, with the duplicate that exists already
 *	any	-> (none)	its last user ends; the duplicate is closed
 *
 * Users of a named guard share the guard and its duplicate, which private_fd.h makes.
 * If the engine transfers a call's remainder, loop/guarded.h duplicates the descriptor.
 * The descriptor of a file on a disk is duplicated only when the program closes it,
 * because closing any descriptor of the file drops the process's POSIX locks on it. If
 * the duplication fails, such as when no descriptor is free, a nameless guard's
 * descriptor is -1, and its calls fail with EBADF.
 *
 * A guarded descriptor has the fact FD_MARKED. A thread that closes a descriptor with
 * that fact reports the close before and after it (closing.h). G3: a closing thread
 * counts itself in "closing", then reads the mark. G4: a beginning guard sets the mark,
 * then reads the count, and duplicates at once if a close may be in progress. All four
 * accesses are sequentially consistent. Two kinds of close go unnoticed: a plain
 * close() outside the library, and a close() that io_uring got before the guard began.
 * A named guard then continues to use a number that may refer to another file.
 *
 * Any thread. Locks are taken in this order: watchers, a watcher's own, a bucket's.
 */
#ifndef FLEXSC_GUARD_H
#define FLEXSC_GUARD_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#define NAMELESS	UINT32_MAX

struct guard {
	struct guard *next;	/* in the bucket's list, or in the free list */
	_Atomic uint32_t named;	/* The number by which the program refers to the
				 * file. NAMELESS: the program has closed that
				 * descriptor. */
	_Atomic int fd;		/* the descriptor that calls use: the program's, or a
				 * duplicate */
	uint32_t users;
	uint32_t bucket;
	_Atomic bool copied;	/* fd is a duplicate, which the guard closes */
};

/*
 * A subscriber to closes: a thread pool, or a ring with long writes. Calls of a pool
 * that were expected not to block have no guards, but may have to enter the kernel a
 * second time. A pool also polls descriptors for its parked calls.
 */
struct guard_watcher {
	/*
	 * Called before a descriptor is closed. "guard" is its guard or a new one,
	 * or NULL if there is no memory. The subscriber's calls may join it.
	 */
	void (*closing)(struct guard_watcher *watcher, uint32_t fd,
			struct guard *guard);
	/*
	 * Called when the descriptor was closed, or its socket shut down ("shut"). After
	 * a shutdown, this is also called for duplicates of the descriptor.
	 */
	void (*closed)(struct guard_watcher *watcher, uint32_t fd, bool shut);
	struct guard_watcher *next, **link;
};

/* Returns the descriptor that refers to the guard's file now. */
static inline int guard_fd(const struct guard *guard)
{
	return atomic_load_explicit(&guard->fd, memory_order_relaxed);
}

/* Does the program still refer to the file by this number? */
static inline bool guard_is_named(const struct guard *guard, int fd)
{
	return fd >= 0 &&
	       atomic_load_explicit(&guard->named, memory_order_relaxed) ==
		       (uint32_t)fd;
}

/* Returns NULL if there is no memory, or if the number is too large to have facts. */
struct guard *flexsc__guard_begin(uint32_t fd);
void flexsc__guard_end(struct guard *guard);
/* As flexsc__guard_end(), but returns the duplicate for the caller to close, or -1. */
int flexsc__guard_drop(struct guard *guard);

/*
 * Duplicate the descriptor now. The caller becomes the only user of *guard, so that
 * later calls on the number don't use this file. Returns 0 or -errno.
 */
int flexsc__guard_copy(struct guard **guard);

/* Become a user of the guard that was passed to guard_watcher.closing(). */
void flexsc__guard_join(struct guard *guard);

void flexsc__guard_watch(struct guard_watcher *watcher);
void flexsc__guard_unwatch(struct guard_watcher *watcher);

/*
 * Count the beginning, or the end, of a close in this descriptor's bucket, or in all
 * (NAMELESS).
 */
void flexsc__guard_count_closing(uint32_t fd);
void flexsc__guard_count_closed(uint32_t fd);

/*
 * Report a close to the guards and subscribers: before a marked descriptor is closed;
 * after it was closed; after its socket was shut down.
 */
void flexsc__guard_closing(uint32_t fd);
void flexsc__guard_closed(uint32_t fd);
void flexsc__guard_shut(uint32_t fd);

/* In a forked child, which inherits no calls: drop all guards and watchers. */
void flexsc__guards_forked(void);

#endif /* FLEXSC_GUARD_H */
