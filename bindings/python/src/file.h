/* SPDX-License-Identifier: MIT */
/*
 * An open file; nothing is buffered here. io_uring and the kernel's position of
 * a file don't go together, so a regular file's position is kept here, and what
 * uses it is posted with an offset, one call at a time. A pipe has no position,
 * and a file that is appended to and read has the kernel's.
 */
#ifndef FILE_H
#define FILE_H

#include "call.h"

extern PyTypeObject file_type;

/* A file of fd, which was opened with these flags. NULL: raised. */
PyObject *file_new(struct loop *loop, PyObject *name, int fd, uint64_t flags);

/* For a descriptor whose loop has ended, or whose file is forgotten. */
void file_close_plainly(int fd);

#endif /* FILE_H */
