/* SPDX-License-Identifier: MIT */
/*
 * The Python interface of a call. For asyncio's code a call is a future. A call
 * is also a coroutine, so that a program can make a task of it.
 */
#ifndef FUTURE_H
#define FUTURE_H

#include "call.h"

/* Call, and Opening, which is the Call that opens a file. */
extern PyTypeObject call_type, opening_type;

/* Return a completed call with this result. NULL: an exception is set. */
PyObject *future_of(struct loop *loop, PyObject *result);

/* Returns 0, or -1 with an exception set. */
int future_init(void);

#endif /* FUTURE_H */
