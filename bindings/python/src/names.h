/* SPDX-License-Identifier: MIT */
/* Calls that take names of files: stat, mkdir, rename ... */
#ifndef NAMES_H
#define NAMES_H

#include "call.h"

/*
 * Set the call's path i and the name for its error messages. Returns 0, or -1
 * with an exception set.
 */
int names_set(struct call *call, int i, PyObject *path);

extern PyMethodDef names_methods[];

#endif /* NAMES_H */
