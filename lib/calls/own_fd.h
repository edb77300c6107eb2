/* SPDX-License-Identifier: MIT */
/*
 * The library's own descriptors, which the program knows nothing of: out of its
 * way, and marked. Any thread.
 */
#ifndef FLEXSC_OWN_FD_H
#define FLEXSC_OWN_FD_H

#include "fds.h"

/*
 * Where the library's own descriptors begin; 0: anywhere. For a process whose
 * program knows nothing of them, and counts on the lowest numbers.
 */
extern int flexsc__own_fd_floor;

/* A new descriptor of the library's own, out of the way; an error as it is. */
int flexsc__own_fd(int fd);
/* It is the program's number again. */
void flexsc__own_fd_close(int fd);

static inline bool fds_is_own(uint32_t fd)
{
	return fd < FDS_MAX &&
	       atomic_load_explicit(&flexsc__fds_facts[fd],
				    memory_order_relaxed) & FD_OWN;
}

/* One that means the same file, of the library's own; or -1. */
int flexsc__own_fd_copy(int fd);
/* In a forked child: nobody there needs them. */
void flexsc__own_fd_close_copies(void);

#endif /* FLEXSC_OWN_FD_H */
