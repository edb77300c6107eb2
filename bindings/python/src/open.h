/* SPDX-License-Identifier: MIT */
/* Opening a file: its mode, and the call that makes it. */
#ifndef OPEN_H
#define OPEN_H

#include "call.h"

/* flexsc.open(path, mode, permissions) */
PyObject *open_file(PyObject *module, PyObject *args, PyObject *names);

#endif /* OPEN_H */
