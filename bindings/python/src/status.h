/* SPDX-License-Identifier: MIT */
/* A file's attributes, as os.stat() returns them. */
#ifndef STATUS_H
#define STATUS_H

#include "call.h"

/* Post a statx() of call's path[0], or of fd. On failure drop call. */
PyObject *status_post(struct call *call, int fd, int flags);

int status_finish(struct call *call, int64_t ret);

/* Returns 0, or -1 with an exception set. */
int status_init(void);

#endif /* STATUS_H */
