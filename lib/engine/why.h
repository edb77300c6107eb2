/* SPDX-License-Identifier: MIT */
/*
 * What the kernel's errors mean. A few have very different causes, and the user who has
 * to change something needs the real one, in one line. Any thread.
 */
#ifndef FLEXSC_WHY_H
#define FLEXSC_WHY_H

#include <stdbool.h>
#include <stddef.h>

#define KMOD_DEVICE	"/dev/flexsc"

/*
 * Why the kernel module doesn't work here: then -EOPNOTSUPP. An error that has other
 * causes is returned as it is.
 */
int flexsc__kmod_why(int err, char *why, size_t size);

/* Why io_uring_setup() failed with err. */
void flexsc__uring_why(int err, char *why, size_t size);

/*
 * May io_uring_enter() work again after this error? -EBADR: the kernel had no memory for
 * a result.
 */
bool flexsc__uring_passes(int err);

#endif /* FLEXSC_WHY_H */
