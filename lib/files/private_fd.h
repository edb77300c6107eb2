/* SPDX-License-Identifier: MIT */
/*
 * The library's own descriptors, which the program must not notice. They have high
 * numbers (duplicates have lower ones) and the fact FD_OWN (fds.h). guard.h decides
 * when a descriptor is duplicated. Any thread.
 */
#ifndef FLEXSC_PRIVATE_FD_H
#define FLEXSC_PRIVATE_FD_H

#include "fds.h"

/*
 * The lowest number of the library's own descriptors; 0: any number. Set under flexsc
 * run, where the program doesn't know the library and expects the lowest numbers to be
 * free.
 */
extern int flexsc__private_fd_floor;

/*
 * Evaluate "make", which creates a descriptor, and move the result to a high number.
 * The value is the descriptor, or the error of "make".
 */
#define flexsc__private_fd(make) \
	(flexsc__private_fd_begin(), flexsc__private_fd_made(make))

/* The macro's steps before and after "make". */
void flexsc__private_fd_begin(void);
int flexsc__private_fd_made(int fd);

/* Close a library descriptor. The program may get the number afterwards. */
void flexsc__private_fd_close(int fd);

static inline bool fds_is_own(uint32_t fd)
{
	return fd < FDS_MAX &&
	       atomic_load_explicit(&flexsc__fds_facts[fd],
				    memory_order_relaxed) & FD_OWN;
}

/*
 * Create a memfd of "size" bytes, or return a negative number. RLIMIT_FSIZE forbids
 * larger ones by a signal, which the program must not get.
 */
int flexsc__private_memfd(const char *name, size_t size);

/* Duplicate fd as a library descriptor, or return -errno. */
int flexsc__private_fd_copy(int fd);
/* The same, or -EBUSY: a close_range() takes so long that it may close the duplicate. */
int flexsc__private_fd_safe_copy(int fd);

/*
 * Between freeze and thaw, no other thread makes or closes a library descriptor with
 * the functions above, so all open ones have their facts. Used for fork(), and for a
 * close_range() by a program that doesn't know these descriptors.
 */
enum freeze {
	FREEZE_RANGE = 1 << 16,	/* blocks changes for 100 ms at most */
	FREEZE_FORK = 1 << 24,
};

void flexsc__private_fds_freeze(enum freeze why);
void flexsc__private_fds_thaw(enum freeze why);
/* In the forked child: thaw, and close the duplicates. */
void flexsc__private_fds_forked(void);

/*
 * Close all library descriptors, in a child of _Fork() and the like, where libc runs no
 * fork handlers and nothing else closes them. Async-signal-safe.
 */
void flexsc__private_fd_close_all(void);

#endif /* FLEXSC_PRIVATE_FD_H */
