/* SPDX-License-Identifier: MIT */
/* fstat() and statx() of open files, made inline where they can't wait. */
#ifndef FLEXSC_LOCAL_STAT_H
#define FLEXSC_LOCAL_STAT_H

#include <linux/flexsc.h>
#include <stdbool.h>
#include <stdint.h>

/*
 * Makes an fstat(), or a statx() with AT_EMPTY_PATH, if the result is in this kernel's
 * memory; *ret is the result. False: the call is another one, or may need a server, so
 * a thread that may wait has to make it. Any thread.
 *
 * A statx() with AT_EMPTY_PATH is assumed to have an empty path. If it does have a
 * path, relative to an open directory, the path is looked up here, which may wait for a
 * disk.
 */
bool flexsc__stat_make(const struct flexsc_entry *entry, int64_t *ret);

#endif /* FLEXSC_LOCAL_STAT_H */
