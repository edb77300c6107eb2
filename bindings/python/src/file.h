/* SPDX-License-Identifier: MIT */
/*
 * An open file, without buffering. io_uring can't use a position that the
 * kernel keeps. So this struct keeps a regular file's position, and calls at
 * that position are posted with an offset, one at a time. A pipe has no
 * position. If a file is opened for appending and reading, the kernel keeps its
 * position.
 */
#ifndef FILE_H
#define FILE_H

#include "call.h"

extern PyTypeObject file_type;

/*
 * Make a file of descriptor fd, which was opened with these flags. NULL: an
 * exception is set.
 */
PyObject *file_new(struct loop *loop, PyObject *name, int fd, uint64_t flags);

/*
 * Close a descriptor whose loop has been destroyed, or whose file object was
 * dropped.
 */
void file_close_plainly(int fd);

#endif /* FILE_H */
