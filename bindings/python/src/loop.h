/* SPDX-License-Identifier: MIT */
/*
 * A loop inside an asyncio loop, its outer loop. Both belong to one thread,
 * which runs everything here.
 *
 * The outer loop watches the loop's descriptor, and keeps a "reader" for that:
 * the object that it calls, for a turn (turn.h). Posting has it make a turn
 * soon, so one turn starts all that its tasks have posted until then.
 *
 * The outer loop has the only reference to the reader. So the reader ends when
 * the outer loop is closed, and closes the loop: what is pending is cancelled,
 * and the kernel has let go of all buffers when that returns.
 */
#ifndef LOOP_H
#define LOOP_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <flexsc/flexsc.h>
#include <stdbool.h>

struct call;

struct loop {
	PyObject_HEAD
	struct flexsc_loop *flexsc;	/* NULL: closed */
	PyObject *outer;
	vectorcallfunc vectorcall;
	PyObject *timer;		/* the outer loop's, or NULL */
	struct call *first, **last;	/* complete, and not woken */
	struct loop *next;		/* of this thread's */
	Py_ssize_t pending;
	unsigned long thread;
	pid_t pid;
	bool due;			/* there will be a turn soon */
	bool posted;			/* since the last harvest */
};

extern PyTypeObject loop_type;

/* The running outer loop's, made if need be. Borrowed; NULL: raised. */
struct loop *loop_running(void);

/* May the calling thread use it? 0, or -1: raised. */
int loop_check(struct loop *loop);

/* Raises what a function of the library has returned. NULL. */
PyObject *loop_raise(int err);

/* 0, or -1: raised. */
int loop_init(void);

/* Closes the running outer loop's, if it has one. */
PyObject *loop_close_running(PyObject *module, PyObject *unused);

/* Closes what the calling thread has: for the interpreter's end. */
PyObject *loop_close_all(PyObject *module, PyObject *unused);

#endif /* LOOP_H */
