/* SPDX-License-Identifier: MIT */
/*
 * Guards keep files for calls that enter the kernel more than once: to try and to wait,
 * or for the rest of a transfer. A call in the kernel holds its files. In between, the
 * program may close a descriptor that the call names, and its number may mean another
 * file. So such a call begins a guard of each descriptor, and uses guard_fd() whenever
 * it enters the kernel:
 *
 *	named	-> copied	a call will have to go on: flexsc__guard_copy()
 *	named	-> nameless	the descriptor is about to be closed: it was copied
 *	copied	-> nameless	the same; there is a copy already
 *	any	-> (none)	its last user ends; the copy is closed
 *
 * Users of a named guard share it, and so one copy, made by private_fd.h. A call whose
 * rest the engine transfers is copied by loop/guarded.h. A file on a disk is copied only
 * when the program closes it, because closing any descriptor drops the process's POSIX
 * locks on the file. Without a copy, as when there is no free descriptor, a nameless
 * guard's descriptor is -1: its calls fail with EBADF.
 *
 * A guarded descriptor has the fact FD_MARKED. Whoever closes a descriptor with that
 * fact says so before and after (closing.h). G3: a thread counts itself among those that
 * are closing, then looks for the mark. G4: a guard that begins sets the mark, then looks
 * at the count, and is copied at once if a close may be on its way. All are sequentially
 * consistent. Two closes go unnoticed: a plain close() outside the library, and a close()
 * that io_uring got before the guard began. A named guard then continues to use a number
 * that may mean another file.
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
	struct guard *next;	/* of its bucket, or of the free ones */
	_Atomic uint32_t named;	/* what the program calls the file; NAMELESS */
	_Atomic int fd;		/* what calls use */
	uint32_t users;
	uint32_t bucket;
	_Atomic bool copied;	/* fd is the guard's own */
};

/*
 * A pool of threads has calls that haven't begun a guard, though they may enter the
 * kernel again: calls that were expected not to wait. And it waits for descriptors
 * on behalf of calls.
 */
struct guard_watcher {
	/*
	 * The descriptor is about to be closed. "guard" is the one that was its guard,
	 * or a new one; NULL if there is no memory. The watcher's calls may join it.
	 */
	void (*closing)(struct guard_watcher *watcher, uint32_t fd,
			struct guard *guard);
	/* The descriptor was closed, or its socket shut down. */
	void (*closed)(struct guard_watcher *watcher, uint32_t fd);
	struct guard_watcher *next, **link;
};

/* The descriptor that means the file now. */
static inline int guard_fd(const struct guard *guard)
{
	return atomic_load_explicit(&guard->fd, memory_order_relaxed);
}

/* Does the program call the file by this number? */
static inline bool guard_is_named(const struct guard *guard, int fd)
{
	return fd >= 0 &&
	       atomic_load_explicit(&guard->named, memory_order_relaxed) ==
		       (uint32_t)fd;
}

/* NULL: there is no memory, or the number has no facts. */
struct guard *flexsc__guard_begin(uint32_t fd);
void flexsc__guard_end(struct guard *guard);
/* The same; returns the copy that the caller has to close, or -1. */
int flexsc__guard_drop(struct guard *guard);

/*
 * Copy the descriptor now. *guard becomes the caller's alone, so that later calls on
 * the number aren't mistaken for this file's. 0 or -errno.
 */
int flexsc__guard_copy(struct guard **guard);

/* One more user of the guard that a watcher was given. */
void flexsc__guard_join(struct guard *guard);

void flexsc__guard_watch(struct guard_watcher *watcher);
void flexsc__guard_unwatch(struct guard_watcher *watcher);

/* Descriptors of this one's bucket, or of all (NAMELESS), are being closed; no more. */
void flexsc__guard_count_closing(uint32_t fd);
void flexsc__guard_count_closed(uint32_t fd);

/* A descriptor with FD_MARKED is about to be closed. It was closed, or shut down. */
void flexsc__guard_closing(uint32_t fd);
void flexsc__guard_closed(uint32_t fd);

/* In a forked child, which has no calls: forget all guards and watchers. */
void flexsc__guards_forked(void);

#endif /* FLEXSC_GUARD_H */
