/* SPDX-License-Identifier: MIT */
/*
 * Explanations of the kernel's errors. A few errors have very different causes, and a
 * user who has to change something needs the real cause, in one line. Any thread.
 */
#ifndef FLEXSC_WHY_H
#define FLEXSC_WHY_H

#include <stdbool.h>
#include <stddef.h>

#define KMOD_DEVICE	"/dev/flexsc"

/* The step that failed: an error has another cause in each. */
enum kmod_step {
	KMOD_OPEN,
	KMOD_REGISTER,	/* of a loop or an event control block, and its memory */
	KMOD_POLICY,
};

/*
 * If err means that the module can't be used here, explains why and returns
 * -EOPNOTSUPP. Returns other errors unchanged.
 */
int flexsc__kmod_why(enum kmod_step step, int err, char *why, size_t size);

/* Explains why io_uring_setup() failed with err. */
void flexsc__uring_why(int err, char *why, size_t size);

/* Explains why a ring has no poller, despite the option kernel_cores. */
void flexsc__unpolled_why(int err, char *why, size_t size);

/*
 * May io_uring_enter() succeed again after this error? -EBADR: the kernel had no memory
 * for a result.
 */
bool flexsc__uring_passes(int err);

#endif /* FLEXSC_WHY_H */
