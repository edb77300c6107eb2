/* SPDX-License-Identifier: MIT */
/*
 * Rings of io_uring that belong to one kernel thread: the kernel refuses calls by other
 * threads, or completes requests only while the owner is in the kernel. A user thread
 * makes all its io_uring calls on its host. A user thread that uses such a ring stays
 * on its host, because each call on the ring would return it there. All other rings may
 * be shared, so a user thread that submits to one may leave its host again.
 *
 * Only the calling user thread may call these functions.
 */
#ifndef FLEXSC_RUNTIME_RINGS_H
#define FLEXSC_RUNTIME_RINGS_H

#include <liburing.h>
#include <stdbool.h>
#include <stdint.h>

bool flexsc__ring_is_owned(const struct io_uring *ring);
/* Does the call make or use a ring that belongs to the calling thread? */
bool flexsc__ring_call_is_owned(long nr, const uint64_t a[6]);

#endif /* FLEXSC_RUNTIME_RINGS_H */
