/* SPDX-License-Identifier: MIT */
/*
 * A posted call: its life from posting to waking those who wait. What Python
 * sees of it is future.h's.
 *
 * The library holds a reference from posting to completion, and a call holds
 * its buffer, its path names and its file. So nothing that the kernel may write
 * to is freed or moved, whatever the program forgets meanwhile. A call that is
 * cancelled is done when the kernel has let go of it, and not before.
 *
 *	new, post	the library has it
 *	complete	finish() makes the result, or posts the rest
 *	wake		callbacks run: the tasks that wait go on
 */
#ifndef CALL_H
#define CALL_H

#include "loop.h"

struct call {
	PyObject_HEAD
	struct flexsc_cb cb;
	struct loop *loop;
	struct call *next;		/* complete, and not woken */

	/*
	 * Makes the result of ret, which is negative only if the call stays.
	 * 0; 1: posted again, for the rest; -1: raised.
	 */
	int (*finish)(struct call *call, int64_t ret);
	int64_t (*work)(void *call);	/* instead of a system call */
	unsigned int nr;
	uint64_t args[5];
	uint64_t total;			/* bytes of what was posted before */

	PyObject *path[2];		/* what the kernel reads, or NULL */
	PyObject *name[2];		/* what errors say, or NULL */
	PyObject *file;			/* whose descriptor it uses, or NULL */
	bool *busy;			/* of file's, until it ends; or NULL */
	void (*ended)(PyObject *file);	/* the file's count of calls, or NULL */
	PyObject *bytes;		/* that it fills, or NULL */
	Py_buffer buffer;		/* obj == NULL: none */
	void *memory;			/* of its own, or NULL */
	void (*free)(void *memory);	/* what memory points to, or NULL */

	PyObject *callback, *context;	/* the first */
	PyObject *more;			/* a list of pairs of them, or NULL */
	PyObject *result, *error;	/* when done: one of them, or cancelled */
	PyObject *message;		/* of the cancellation */
	bool done;
	bool cancelled;			/* asked for; when done: it was */
	bool retrieved;			/* the program has seen the error */
	bool stays;			/* it runs even if that is cancelled */
	bool blocking;			/* asyncio's: a task starts to wait */
};

/* A call that isn't posted, with its finish. NULL: raised. */
struct call *call_new(PyTypeObject *type, struct loop *loop, unsigned int nr,
		      int (*finish)(struct call *call, int64_t ret));

/* Post it, or else drop it. What the program gets; NULL: raised. */
PyObject *call_post(struct call *call);

/* Post the rest of it, from finish(). 1, or -1: raised. */
int call_post_rest(struct call *call);

/* Count a call as pending that call_post_late() will post. */
PyObject *call_wait(struct call *call);

/* Post it, or complete it with -ECANCELED if it can't be posted. */
void call_post_late(struct call *call);

/* Complete: it has a result, or its rest is posted (false). */
bool call_complete(struct call *call);

/* Runs its callbacks. 0; -1: raised, by what ends a program. */
int call_wake(struct call *call);

/* The same, by the outer loop, or not at all if that is closed. */
void call_wake_later(struct call *call);

/* Has the outer loop call callback soon. */
void call_run_later(struct call *call, PyObject *callback, PyObject *context);

/* Report an error that the program never retrieved to the outer loop's handler. */
void call_report_lost(struct call *call);

/* Frees what the kernel used. */
void call_let_go(struct call *call);

/* Raises an OSError with the call's names. -1. */
int call_raise(struct call *call, int err);

/* Ends that many have. */
int call_finish_none(struct call *call, int64_t ret);
int call_finish_int(struct call *call, int64_t ret);

/* 0, or -1: raised. */
int call_init(void);

#endif /* CALL_H */
