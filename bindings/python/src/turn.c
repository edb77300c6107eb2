/* SPDX-License-Identifier: MIT */
#include "turn.h"

#include "call.h"

#define BATCH	256

static PyObject *str_call_soon, *str_call_later, *str_cancel;

int turn_soon(struct loop *loop)
{
	PyObject *handle;

	if (loop->due)
		return 0;
	handle = PyObject_CallMethodOneArg(loop->outer, str_call_soon,
					   (PyObject *)loop);
	if (!handle)
		return -1;
	Py_DECREF(handle);
	loop->due = true;
	return 0;
}

void turn_stop(struct loop *loop)
{
	PyObject *done;

	if (!loop->timer)
		return;
	done = PyObject_CallMethodNoArgs(loop->timer, str_cancel);
	if (!done)
		PyErr_WriteUnraisable(loop->timer);
	Py_XDECREF(done);
	Py_CLEAR(loop->timer);
}

/*
 * Let the outer loop's timer make a turn after ns. Returns 0, or -1 with an
 * exception set.
 */
static int turn_after(struct loop *loop, uint64_t ns)
{
	PyObject *seconds;

	turn_stop(loop);
	if (ns == 0 || ns == FLEXSC_FOREVER)
		return 0;
	seconds = PyFloat_FromDouble((double)ns / 1e9);
	if (!seconds)
		return -1;
	loop->timer = PyObject_CallMethodObjArgs(loop->outer, str_call_later,
						 seconds, loop, NULL);
	Py_DECREF(seconds);
	return loop->timer ? 0 : -1;
}

void turn_append(struct loop *loop, struct call *call)
{
	call->next = NULL;
	*loop->last = call;
	loop->last = &call->next;
}

static struct call *turn_take(struct loop *loop)
{
	struct call *call = loop->first;

	if (call) {
		loop->first = call->next;
		if (!loop->first)
			loop->last = &loop->first;
	}
	return call;
}

/*
 * Run the callbacks of complete calls. They may post calls, and close the loop.
 */
static int turn_wake(struct loop *loop)
{
	struct call *call;
	int err = 0;

	while (!err && (call = turn_take(loop))) {
		err = call_wake(call);
		Py_DECREF(call);
	}
	return err;
}

static int turn_harvest(struct loop *loop)
{
	struct flexsc_cb *done[BATCH];
	int n;

	loop->posted = false;
	Py_BEGIN_ALLOW_THREADS
	n = flexsc_loop_harvest(loop->flexsc, done, BATCH);
	Py_END_ALLOW_THREADS
	if (n < 0) {
		loop_raise(n);
		return -1;
	}
	for (int i = 0; i < n; i++) {
		struct call *call = done[i]->arg;

		if (!call_complete(call))
			continue;
		loop->pending--;
		turn_append(loop, call);
	}
	return n;
}

/*
 * Prepare the loop for the outer loop's sleep until the descriptor is readable.
 */
static int turn_prepare(struct loop *loop)
{
	uint64_t ns;
	int err = flexsc_loop_prepare(loop->flexsc, &ns);

	if (err) {
		loop_raise(err);
		return -1;
	}
	return turn_after(loop, ns);
}

/* Schedule another turn after an exception. Returns -1. */
static int turn_again(struct loop *loop)
{
	PyObject *type, *value, *trace;

	PyErr_Fetch(&type, &value, &trace);
	if (turn_soon(loop))
		PyErr_WriteUnraisable((PyObject *)loop);
	PyErr_Restore(type, value, trace);
	return -1;
}

int turn_make(struct loop *loop, bool readable)
{
	int n, err;

	if (!loop->flexsc)
		return 0;
	if (loop_check(loop))
		return -1;
	loop->due = true;
	n = turn_harvest(loop);
	err = n < 0 ? n : turn_wake(loop);
	loop->due = false;
	if (!loop->flexsc || n < 0)
		return err;
	if (err)
		return turn_again(loop);
	if (loop->posted || n == BATCH)
		return turn_soon(loop);
	return readable || loop->pending ? turn_prepare(loop) : 0;
}

void turn_ended(struct flexsc_cb *cb)
{
	struct call *call = cb->arg;

	turn_append(call->loop, call);
}

void turn_last(struct loop *loop, bool alive)
{
	struct call *call;

	while ((call = turn_take(loop))) {
		if (!call->done) {
			call->cancelled = true;
			call_complete(call);
		}
		if (alive)
			call_wake_later(call);
		Py_DECREF(call);
	}
	loop->pending = 0;
}

int turn_init(void)
{
	str_call_soon = PyUnicode_InternFromString("call_soon");
	str_call_later = PyUnicode_InternFromString("call_later");
	str_cancel = PyUnicode_InternFromString("cancel");
	return PyErr_Occurred() ? -1 : 0;
}
