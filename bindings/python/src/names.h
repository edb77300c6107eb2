/* SPDX-License-Identifier: MIT */
/* Calls that take names of files: stat, mkdir, rename ... */
#ifndef NAMES_H
#define NAMES_H

#include "call.h"

/*
 * Make a call of the running loop whose first argument is the current folder, and whose
 * second one is a path. NULL, with an exception set, if that fails.
 */
struct call *names_call(PyTypeObject *type, PyObject *path, unsigned int nr,
			int (*finish)(struct call *call, int64_t ret));

extern PyMethodDef names_methods[];

#endif /* NAMES_H */
