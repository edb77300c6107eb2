/* SPDX-License-Identifier: MIT */
#ifndef FLEXSC_URING_KILLS_H
#define FLEXSC_URING_KILLS_H

#include <stdbool.h>

/* Does the calling thread have a seccomp filter? True if unknown. */
bool flexsc__is_filtered(void);

/*
 * Does a filter end the process at io_uring's system calls? Any thread. Reads a file in
 * /proc, and creates a short-lived process if the thread has filters without a known
 * result.
 */
bool flexsc__uring_kills(void);

#endif /* FLEXSC_URING_KILLS_H */
