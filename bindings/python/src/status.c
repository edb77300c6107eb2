/* SPDX-License-Identifier: MIT */
#include "status.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/stat.h>
#include <stdlib.h>
#include <sys/sysmacros.h>

#define SECOND	1000000000LL

static PyTypeObject *stat_result;

PyObject *status_post(struct call *call, int fd, int flags)
{
	call->memory = PyMem_Malloc(sizeof(struct statx));
	if (!call->memory) {
		Py_DECREF(call);
		return PyErr_NoMemory();
	}
	call->args[0] = (uint64_t)fd;
	call->args[1] = (uintptr_t)(call->path[0] ?
				    PyBytes_AS_STRING(call->path[0]) : "");
	call->args[2] = (uint64_t)flags;
	call->args[3] = STATX_BASIC_STATS;
	call->args[4] = (uintptr_t)call->memory;
	return call_post(call);
}

/* In nanoseconds, which fit into 64 bits until the year 2262. */
static PyObject *nanoseconds(const struct statx_timestamp *time)
{
	PyObject *seconds, *factor, *rest, *product = NULL, *sum = NULL;

	if (llabs(time->tv_sec) < INT64_MAX / SECOND)
		return PyLong_FromLongLong(time->tv_sec * SECOND + time->tv_nsec);
	seconds = PyLong_FromLongLong(time->tv_sec);
	factor = PyLong_FromLongLong(SECOND);
	rest = PyLong_FromUnsignedLong(time->tv_nsec);
	if (seconds && factor)
		product = PyNumber_Multiply(seconds, factor);
	if (product && rest)
		sum = PyNumber_Add(product, rest);
	Py_XDECREF(product);
	Py_XDECREF(rest);
	Py_XDECREF(factor);
	Py_XDECREF(seconds);
	return sum;
}

/* Set a time's three fields: whole seconds, seconds as a float, nanoseconds. */
static void set_time(PyObject *to, int i, const struct statx_timestamp *time)
{
	double seconds = (double)time->tv_sec + 1e-9 * time->tv_nsec;

	PyStructSequence_SetItem(to, 7 + i, PyLong_FromLongLong(time->tv_sec));
	PyStructSequence_SetItem(to, 10 + i, PyFloat_FromDouble(seconds));
	PyStructSequence_SetItem(to, 13 + i, nanoseconds(time));
}

static void set(PyObject *to, int i, uint64_t value)
{
	PyStructSequence_SetItem(to, i, PyLong_FromUnsignedLongLong(value));
}

int status_finish(struct call *call, int64_t ret)
{
	const struct statx *st = call->memory;
	PyObject *to = PyStructSequence_New(stat_result);

	if (!to)
		return -1;
	set(to, 0, st->stx_mode);
	set(to, 1, st->stx_ino);
	set(to, 2, makedev(st->stx_dev_major, st->stx_dev_minor));
	set(to, 3, st->stx_nlink);
	set(to, 4, st->stx_uid);
	set(to, 5, st->stx_gid);
	set(to, 6, st->stx_size);
	set_time(to, 0, &st->stx_atime);
	set_time(to, 1, &st->stx_mtime);
	set_time(to, 2, &st->stx_ctime);
	set(to, 16, st->stx_blksize);
	set(to, 17, st->stx_blocks);
	set(to, 18, makedev(st->stx_rdev_major, st->stx_rdev_minor));
	if (PyErr_Occurred()) {
		Py_DECREF(to);
		return -1;
	}
	call->result = to;
	return 0;
}

int status_init(void)
{
	PyObject *os = PyImport_ImportModule("os");

	if (!os)
		return -1;
	stat_result = (PyTypeObject *)PyObject_GetAttrString(os, "stat_result");
	Py_DECREF(os);
	return stat_result ? 0 : -1;
}
