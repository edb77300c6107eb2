/* SPDX-License-Identifier: MIT */
#include "call.h"

#include <errno.h>

#include "turn.h"

static PyObject *str_call_soon, *str_context, *str_handler;

struct call *call_new(PyTypeObject *type, struct loop *loop, unsigned int nr,
		      int (*finish)(struct call *call, int64_t ret))
{
	struct call *call = PyObject_GC_New(struct call, type);

	if (!call)
		return NULL;
	memset((char *)call + sizeof(PyObject), 0,
	       sizeof(*call) - sizeof(PyObject));
	Py_INCREF(loop);
	call->loop = loop;
	call->nr = nr;
	call->finish = finish;
	call->cb.arg = call;
	PyObject_GC_Track(call);
	return call;
}

static int call_give(struct call *call)
{
	struct flexsc_loop *flexsc = call->loop->flexsc;
	int err;

	if (call->work)
		err = flexsc_loop_work(flexsc, &call->cb, call->work, call);
	else
		err = flexsc_loop_call(flexsc, &call->cb, call->nr,
				       call->args[0], call->args[1],
				       call->args[2], call->args[3],
				       call->args[4], 0);
	if (err) {
		loop_raise(err);
		return -1;
	}
	call->loop->posted = true;
	return 0;
}

/* Count the call as pending. The next turn starts the posted calls. */
static PyObject *call_pend(struct call *call)
{
	Py_INCREF(call);
	call->loop->pending++;
	if (turn_soon(call->loop)) {
		Py_DECREF(call);
		return NULL;
	}
	return (PyObject *)call;
}

PyObject *call_post(struct call *call)
{
	call->cb.callback = turn_ended;
	if (loop_check(call->loop) || call_give(call)) {
		Py_DECREF(call);
		return NULL;
	}
	return call_pend(call);
}

int call_post_rest(struct call *call)
{
	if (!call->loop->flexsc) {
		loop_raise(-ESHUTDOWN);
		return -1;
	}
	return call_give(call) ? -1 : 1;
}

PyObject *call_wait(struct call *call)
{
	call->cb.callback = turn_ended;
	return call_pend(call);
}

void call_post_late(struct call *call)
{
	struct loop *loop = call->loop;
	PyObject *type, *value, *trace;

	PyErr_Fetch(&type, &value, &trace);
	if (!loop->flexsc || call_give(call)) {
		PyErr_Clear();
		call->cb.ret = -ECANCELED;
		call_complete(call);
		loop->pending--;
		turn_append(loop, call);
	}
	if (loop->flexsc && turn_soon(loop))
		PyErr_WriteUnraisable((PyObject *)call);
	PyErr_Restore(type, value, trace);
}

int call_finish_none(struct call *call, int64_t ret)
{
	Py_INCREF(Py_None);
	call->result = Py_None;
	return 0;
}

int call_finish_int(struct call *call, int64_t ret)
{
	call->result = PyLong_FromLongLong(ret);
	return call->result ? 0 : -1;
}

int call_raise(struct call *call, int err)
{
	const char *why = strerror(err);
	PyObject *error;

	if (call->name[1])
		error = PyObject_CallFunction(PyExc_OSError, "isOOO", err, why,
					      call->name[0], Py_None,
					      call->name[1]);
	else if (call->name[0])
		error = PyObject_CallFunction(PyExc_OSError, "isO", err, why,
					      call->name[0]);
	else
		error = PyObject_CallFunction(PyExc_OSError, "is", err, why);
	if (error)
		PyErr_SetObject((PyObject *)Py_TYPE(error), error);
	Py_XDECREF(error);
	return -1;
}

/* Make the raised exception the call's error. */
static void call_fail(struct call *call)
{
	PyObject *type, *trace;

	PyErr_Fetch(&type, &call->error, &trace);
	PyErr_NormalizeException(&type, &call->error, &trace);
	Py_XDECREF(type);
	Py_XDECREF(trace);
}

void call_let_go(struct call *call)
{
	PyBuffer_Release(&call->buffer);
	Py_CLEAR(call->bytes);
	Py_CLEAR(call->path[0]);
	Py_CLEAR(call->path[1]);
	Py_CLEAR(call->name[0]);
	Py_CLEAR(call->name[1]);
	if (call->busy)
		*call->busy = false;
	call->busy = NULL;
	if (call->ended)
		call->ended(call->file);
	call->ended = NULL;
	Py_CLEAR(call->file);
	if (call->free && call->memory)
		call->free(call->memory);
	PyMem_Free(call->memory);
	call->memory = NULL;
}

bool call_complete(struct call *call)
{
	int64_t ret = call->cb.ret;
	int state = -1;

	if (ret >= 0 || call->stays)
		state = call->finish(call, ret);
	else if (!call->cancelled)
		/*
		 * Here -EINTR means that the call was cancelled: only
		 * file_end_calls() interrupts it.
		 */
		state = call_raise(call, ret == -EINTR ? ECANCELED : (int)-ret);
	if (state > 0)
		return false;
	if (PyErr_Occurred())
		call_fail(call);
	if (call->cancelled) {
		Py_CLEAR(call->result);
		Py_CLEAR(call->error);
	}
	call_let_go(call);
	call->done = true;
	return true;
}

/* Pass the context to the outer loop's exception handler, and drop it. */
static void call_handle(struct call *call, PyObject *context, PyObject *what)
{
	PyObject *done = NULL;

	if (context)
		done = PyObject_CallMethodOneArg(call->loop->outer, str_handler,
						 context);
	if (!done)
		PyErr_WriteUnraisable(what);
	Py_XDECREF(done);
	Py_XDECREF(context);
}

void call_report_lost(struct call *call)
{
	PyObject *type, *value, *trace;

	PyErr_Fetch(&type, &value, &trace);
	call_handle(call,
		    Py_BuildValue("{sssOsO}", "message",
				  "flexsc.Call exception was never retrieved",
				  "exception", call->error, "future", call),
		    (PyObject *)call);
	PyErr_Restore(type, value, trace);
}

/* Report a callback's exception as asyncio's handles do. */
static int call_report(struct call *call, PyObject *callback)
{
	PyObject *type, *error, *trace;

	if (PyErr_ExceptionMatches(PyExc_KeyboardInterrupt) ||
	    PyErr_ExceptionMatches(PyExc_SystemExit))
		return -1;
	PyErr_Fetch(&type, &error, &trace);
	PyErr_NormalizeException(&type, &error, &trace);
	if (trace)
		PyException_SetTraceback(error, trace);
	call_handle(call,
		    Py_BuildValue("{sssOsO}", "message",
				  "Exception in callback of a flexsc call",
				  "exception", error, "callback", callback),
		    callback);
	Py_XDECREF(type);
	Py_XDECREF(error);
	Py_XDECREF(trace);
	return 0;
}

void call_run_later(struct call *call, PyObject *callback,
			   PyObject *context)
{
	PyObject *soon, *args, *names, *done = NULL;

	soon = PyObject_GetAttr(call->loop->outer, str_call_soon);
	args = PyTuple_Pack(2, callback, call);
	names = Py_BuildValue("{OO}", str_context, context);
	if (soon && args && names)
		done = PyObject_Call(soon, args, names);
	if (!done)
		PyErr_WriteUnraisable(callback);
	Py_XDECREF(done);
	Py_XDECREF(names);
	Py_XDECREF(args);
	Py_XDECREF(soon);
}

static int call_run(struct call *call, PyObject *callback, PyObject *context)
{
	PyObject *done;

	if (PyContext_Enter(context)) {
		/*
		 * Ignore an error: the code that runs the outer loop may have entered
		 * the context already.
		 */
		PyErr_Clear();
		call_run_later(call, callback, context);
		return 0;
	}
	done = PyObject_CallOneArg(callback, (PyObject *)call);
	if (PyContext_Exit(context))
		Py_CLEAR(done);
	if (!done)
		return call_report(call, callback);
	Py_DECREF(done);
	return 0;
}

/* Run the callbacks after the first one; most calls have only one. */
static void call_wake_more(struct call *call)
{
	PyObject *more = call->more;

	call->more = NULL;
	for (Py_ssize_t i = 0; more && i < PyList_GET_SIZE(more); i++) {
		PyObject *pair = PyList_GET_ITEM(more, i);

		call_run_later(call, PyTuple_GET_ITEM(pair, 0),
			       PyTuple_GET_ITEM(pair, 1));
	}
	Py_XDECREF(more);
}

int call_wake(struct call *call)
{
	PyObject *callback = call->callback, *context = call->context;
	int err = 0;

	call->callback = call->context = NULL;
	if (call->more)
		call_wake_more(call);
	if (callback)
		err = call_run(call, callback, context);
	Py_XDECREF(callback);
	Py_XDECREF(context);
	return err;
}

void call_wake_later(struct call *call)
{
	if (call->callback)
		call_run_later(call, call->callback, call->context);
	Py_CLEAR(call->callback);
	Py_CLEAR(call->context);
	call_wake_more(call);
}

int call_init(void)
{
	str_call_soon = PyUnicode_InternFromString("call_soon");
	str_context = PyUnicode_InternFromString("context");
	str_handler = PyUnicode_InternFromString("call_exception_handler");
	return PyErr_Occurred() ? -1 : 0;
}
