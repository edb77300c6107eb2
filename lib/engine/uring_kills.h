/* SPDX-License-Identifier: MIT */
#ifndef FLEXSC_URING_KILLS_H
#define FLEXSC_URING_KILLS_H

#include <stdbool.h>

/* Has the calling thread a seccomp filter? Yes, if that is unknown. */
bool flexsc__is_filtered(void);

/*
 * Does a filter end the process at io_uring's system calls? Any thread. Reads a file in
 * /proc, and makes a short-lived process if the thread has filters that weren't tried yet.
 */
bool flexsc__uring_kills(void);

#endif /* FLEXSC_URING_KILLS_H */
