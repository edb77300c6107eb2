/* SPDX-License-Identifier: MIT */
/* A file's attributes, as os.stat() has them. */
#ifndef STATUS_H
#define STATUS_H

#include "call.h"

/* Posts a statx() of call's path[0], or of fd. Drops call if it fails. */
PyObject *status_post(struct call *call, int fd, int flags);

int status_finish(struct call *call, int64_t ret);

/* 0, or -1: raised. */
int status_init(void);

#endif /* STATUS_H */
