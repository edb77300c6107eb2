/* SPDX-License-Identifier: MIT */
#ifndef FLEXSC_URING_KILLS_H
#define FLEXSC_URING_KILLS_H

#include <stdbool.h>

/* Does a seccomp filter look at the calling thread's system calls? */
bool flexsc__is_filtered(void);

/*
 * Does such a filter end the process at io_uring's system calls? Any thread.
 * Costs one look at /proc without a filter, and a short-lived process with a
 * filter that wasn't tried yet.
 */
bool flexsc__uring_kills(void);

#endif /* FLEXSC_URING_KILLS_H */
