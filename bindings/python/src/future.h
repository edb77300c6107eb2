/* SPDX-License-Identifier: MIT */
/*
 * What Python sees of a call: for asyncio's own code it is a future, and it is a
 * coroutine too, so that a task can be made of it.
 */
#ifndef FUTURE_H
#define FUTURE_H

#include "call.h"

/* Call, and Opening: a call that opens a file. */
extern PyTypeObject call_type, opening_type;

/* A call that is done, with this result. NULL: raised. */
PyObject *future_of(struct loop *loop, PyObject *result);

/* 0, or -1: raised. */
int future_init(void);

#endif /* FUTURE_H */
