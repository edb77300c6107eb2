/* SPDX-License-Identifier: MIT */
/*
 * A loop inside an asyncio loop, its outer loop. Both belong to one thread,
 * which runs everything here.
 *
 * The outer loop watches the loop's descriptor. For that it holds a "reader",
 * the object that it calls to make a turn (turn.h). Posting schedules a turn,
 * so one turn starts everything that the tasks have posted until then.
 *
 * The outer loop holds the only reference to the reader. So closing the outer
 * loop destroys the reader, which closes the loop. Pending calls are cancelled,
 * and the kernel has released all buffers when that returns. If another thread
 * collects an outer loop that wasn't closed, it can't close the loop; the loop's
 * thread does so before it makes the next one.
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
	PyObject *timer;		/* the outer loop's timer, or NULL */
	struct call *first, **last;	/* complete calls, whose callbacks haven't run */
	struct loop *next;		/* next loop of this thread */
	Py_ssize_t pending;
	unsigned long thread;
	pid_t pid;
	bool abandoned;			/* another thread destroyed its reader */
	bool due;			/* a turn is scheduled */
	bool posted;			/* calls were posted since the last harvest */
};

extern PyTypeObject loop_type;

/*
 * The running outer loop's loop; made if necessary. Borrowed reference; NULL:
 * an exception is set.
 */
struct loop *loop_running(void);

/*
 * Check that the calling thread may use the loop. Returns 0, or -1 with an
 * exception set.
 */
int loop_check(struct loop *loop);

/* Raise an error code that a function of the library returned. Returns NULL. */
PyObject *loop_raise(int err);

/* Returns 0, or -1 with an exception set. */
int loop_init(void);

/* Close the running outer loop's loop, if it has one. */
PyObject *loop_close_running(PyObject *module, PyObject *unused);

/* Close all loops of the calling thread, at the interpreter's exit. */
PyObject *loop_close_all(PyObject *module, PyObject *unused);

#endif /* LOOP_H */
