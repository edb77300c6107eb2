/* SPDX-License-Identifier: MIT */
/*
 * Rings of io_uring that belong to one kernel thread: the kernel refuses the calls of
 * others, or completes requests only while that thread is in the kernel. All calls of
 * io_uring are made at home. A thread that uses such a ring stays there, because it
 * would come home for each of its calls. Any other ring may be shared, so a thread that
 * submits to one is free to leave again.
 *
 * On the user thread itself.
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
