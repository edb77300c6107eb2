/* SPDX-License-Identifier: MIT */
/*
 * The library's own descriptors, which the program must not notice. They have high
 * numbers, copies lower ones, and the fact FD_OWN (fds.h). guard.h decides when a file
 * is copied. Any thread.
 */
#ifndef FLEXSC_PRIVATE_FD_H
#define FLEXSC_PRIVATE_FD_H

#include "fds.h"

/*
 * Where the library's own descriptors begin; 0: anywhere. For a process whose
 * program knows nothing of them, and counts on the lowest numbers.
 */
extern int flexsc__private_fd_floor;

/*
 * Make a descriptor of the library's own by an expression, and move it out of the way.
 * Returns an error as it is.
 */
#define flexsc__private_fd(make) \
	(flexsc__private_fd_begin(), flexsc__private_fd_made(make))

/* The parts of the above. */
void flexsc__private_fd_begin(void);
int flexsc__private_fd_made(int fd);

/*
 * Close a descriptor of the library's own: the number is the program's again.
 */
void flexsc__private_fd_close(int fd);

static inline bool fds_is_own(uint32_t fd)
{
	return fd < FDS_MAX &&
	       atomic_load_explicit(&flexsc__fds_facts[fd],
				    memory_order_relaxed) & FD_OWN;
}

/* Make a descriptor of the library's own that means the file of fd; -errno. */
int flexsc__private_fd_copy(int fd);

/*
 * Between these no other thread makes or closes a descriptor of the library's own by
 * the functions above: all that are open have their facts. For fork(), and
 * close_range() of a program that doesn't know them.
 */
enum freeze {
	FREEZE_RANGE = 1 << 16,	/* 100 ms at most */
	FREEZE_FORK = 1 << 24,
};

void flexsc__private_fds_freeze(enum freeze why);
void flexsc__private_fds_thaw(enum freeze why);
/* In the forked child: thaw them, and close the copies. */
void flexsc__private_fds_forked(void);

/*
 * Close all of them, in a child of _Fork() or the like, where libc runs no fork handlers
 * and nothing else closes them. Async-signal-safe.
 */
void flexsc__private_fd_close_all(void);

#endif /* FLEXSC_PRIVATE_FD_H */
