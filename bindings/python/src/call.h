/* SPDX-License-Identifier: MIT */
/*
 * A posted call: its life from posting to waking those who wait. future.h has
 * its Python interface.
 *
 * The library holds a reference from posting to completion, and a call holds
 * its buffer, its path names and its file. So memory that the kernel may write
 * to is never freed or moved, even if the program drops its references. A
 * cancelled call is done only when the kernel has released its memory.
 *
 * 	new, post	the library has it
 * 	complete	finish() makes the result, or posts the rest
 * 	wake		callbacks run: the tasks that wait go on
 */
#ifndef CALL_H
#define CALL_H

#include "loop.h"

struct call {
	PyObject_HEAD
	struct flexsc_cb cb;
	struct loop *loop;
	struct call *next;		/* in the list of complete calls */

	/*
	 * Convert ret to the call's result; ret is negative only if "stays" is
	 * set. Returns 0; 1: the rest was posted; -1: an exception is set.
	 */
	int (*finish)(struct call *call, int64_t ret);
	int64_t (*work)(void *call);	/* called instead of a system call */
	unsigned int nr;
	uint64_t args[5];
	uint64_t total;			/* bytes transferred by earlier parts */

	PyObject *path[2];		/* paths that the kernel reads, or NULL */
	PyObject *name[2];		/* names for error messages, or NULL */
	PyObject *file;			/* the file whose descriptor it uses, or NULL */
	bool *busy;			/* the file's flag "a call uses the
					 * position", cleared at the end; or NULL */
	void (*ended)(PyObject *file);	/* updates the file's count of calls, or NULL */
	PyObject *bytes;		/* the bytes object that it fills, or NULL */
	Py_buffer buffer;		/* obj == NULL: no buffer */
	void *memory;			/* other memory that the kernel or work()
					 * uses, or NULL */
	void (*free)(void *memory);	/* frees what memory points to, or NULL */

	PyObject *callback, *context;	/* the first callback */
	PyObject *more;			/* list of further callbacks with their
					 * contexts, or NULL */
	PyObject *result, *error;	/* set when done, unless it was cancelled */
	PyObject *message;		/* message of the cancellation */
	bool done;
	bool cancelled;			/* cancellation was requested; when done: it
					 * was cancelled */
	bool retrieved;			/* the program has retrieved the error */
	bool stays;			/* a cancellation doesn't stop the call */
	bool blocking;			/* asyncio's flag: a task is about to wait */
};

/*
 * Make a call, with its finish function, but don't post it. NULL: an exception
 * is set.
 */
struct call *call_new(PyTypeObject *type, struct loop *loop, unsigned int nr,
		      int (*finish)(struct call *call, int64_t ret));

/*
 * Post the call; drop it on failure. Returns the object for the program. NULL:
 * an exception is set.
 */
PyObject *call_post(struct call *call);

/*
 * Post the rest of a call; used by finish(). Returns 1, or -1 with an exception
 * set.
 */
int call_post_rest(struct call *call);

/* Count a call as pending before it is posted; call_post_late() posts it. */
PyObject *call_wait(struct call *call);

/*
 * Post a call for which call_wait() was called. On failure, complete it with
 * -ECANCELED.
 */
void call_post_late(struct call *call);

/* Complete a call. True: it has a result; false: its rest was posted. */
bool call_complete(struct call *call);

/*
 * Run the call's callbacks. Returns 0, or -1 with an exception set that ends the
 * program.
 */
int call_wake(struct call *call);

/*
 * Let the outer loop run the call's callbacks; drop them if the outer loop is
 * closed.
 */
void call_wake_later(struct call *call);

/* Let the outer loop call callback soon. */
void call_run_later(struct call *call, PyObject *callback, PyObject *context);

/*
 * Report to the outer loop's exception handler an error that the program never
 * retrieved.
 */
void call_report_lost(struct call *call);

/* Free the call's buffers and names, which the kernel no longer uses. */
void call_let_go(struct call *call);

/* Raise an OSError with the call's names. Returns -1. */
int call_raise(struct call *call, int err);

/* The finish() of calls whose result is None. */
int call_finish_none(struct call *call, int64_t ret);
int call_finish_int(struct call *call, int64_t ret);

/* Returns 0, or -1 with an exception set. */
int call_init(void);

#endif /* CALL_H */
