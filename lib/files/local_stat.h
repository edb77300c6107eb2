/* SPDX-License-Identifier: MIT */
/* fstat() and statx() of open files, made where they can't wait. */
#ifndef FLEXSC_LOCAL_STAT_H
#define FLEXSC_LOCAL_STAT_H

#include <linux/flexsc.h>
#include <stdbool.h>
#include <stdint.h>

/*
 * Make the call if it is an fstat(), or a statx() with AT_EMPTY_PATH, that asks
 * nobody but this kernel: *ret is its result then. False: it isn't such a call,
 * or not known to be one, and another thread has to make it. Any thread.
 *
 * A statx() is taken for one without a path. One that has a path all the same,
 * from an open directory, looks it up here, and may wait for a disk.
 */
bool flexsc__stat_make(const struct flexsc_entry *entry, int64_t *ret);

#endif /* FLEXSC_LOCAL_STAT_H */
