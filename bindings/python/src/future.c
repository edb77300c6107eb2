/* SPDX-License-Identifier: MIT */
#include "future.h"

#include "turn.h"

static PyObject *cancelled_error, *invalid_state, *str_context;

PyObject *future_of(struct loop *loop, PyObject *result)
{
	struct call *call = call_new(&call_type, loop, 0, NULL);

	if (!call)
		return NULL;
	call->done = true;
	Py_INCREF(result);
	call->result = result;
	return (PyObject *)call;
}

/* asyncio.gather() calls this function, too. */
static PyObject *method_make_error(PyObject *self, PyObject *unused)
{
	struct call *call = (struct call *)self;

	if (call->message)
		return PyObject_CallOneArg(cancelled_error, call->message);
	return PyObject_CallNoArgs(cancelled_error);
}

/* asyncio.gather() reads this property, too. */
static PyObject *future_get_message(PyObject *self, void *unused)
{
	PyObject *message = ((struct call *)self)->message;

	message = message ? message : Py_None;
	Py_INCREF(message);
	return message;
}

static PyObject *future_raise_cancelled(struct call *call)
{
	PyObject *error = method_make_error((PyObject *)call, NULL);

	if (error)
		PyErr_SetObject(cancelled_error, error);
	Py_XDECREF(error);
	return NULL;
}

/* Returns a new reference, or NULL with an exception set. */
static PyObject *future_result(struct call *call)
{
	if (!call->done) {
		PyErr_SetString(invalid_state, "Result is not ready.");
		return NULL;
	}
	if (call->cancelled)
		return future_raise_cancelled(call);
	call->retrieved = true;
	if (call->error) {
		PyErr_SetObject((PyObject *)Py_TYPE(call->error), call->error);
		return NULL;
	}
	Py_INCREF(call->result);
	return call->result;
}

static int future_cancel(struct call *call)
{
	if (loop_check(call->loop))
		return -1;
	call->cancelled = true;
	if (call->stays)
		return 0;
	flexsc_loop_cancel(call->loop->flexsc, &call->cb);
	return turn_soon(call->loop);
}

static PyObject *method_cancel(PyObject *self, PyObject *args, PyObject *names)
{
	static char *known[] = { "msg", NULL };
	struct call *call = (struct call *)self;
	PyObject *message = Py_None;

	if (!PyArg_ParseTupleAndKeywords(args, names, "|O:cancel", known,
					 &message))
		return NULL;
	if (call->done)
		Py_RETURN_FALSE;
	if (message != Py_None) {
		Py_INCREF(message);
		Py_XSETREF(call->message, message);
	}
	if (future_cancel(call))
		return NULL;
	Py_RETURN_TRUE;
}

static PyObject *method_done(PyObject *self, PyObject *unused)
{
	return PyBool_FromLong(((struct call *)self)->done);
}

static PyObject *method_cancelled(PyObject *self, PyObject *unused)
{
	struct call *call = (struct call *)self;

	return PyBool_FromLong(call->done && call->cancelled);
}

static PyObject *method_result(PyObject *self, PyObject *unused)
{
	return future_result((struct call *)self);
}

static PyObject *method_exception(PyObject *self, PyObject *unused)
{
	struct call *call = (struct call *)self;
	PyObject *error = call->error ? call->error : Py_None;

	if (!call->done || call->cancelled)
		return future_result(call);
	call->retrieved = true;
	Py_INCREF(error);
	return error;
}

static PyObject *method_get_loop(PyObject *self, PyObject *unused)
{
	PyObject *outer = ((struct call *)self)->loop->outer;

	Py_INCREF(outer);
	return outer;
}

static int future_add(struct call *call, PyObject *callback, PyObject *context)
{
	PyObject *pair;
	int err;

	if (call->done) {
		call_run_later(call, callback, context);
		return 0;
	}
	if (!call->callback) {
		Py_INCREF(callback);
		Py_INCREF(context);
		call->callback = callback;
		call->context = context;
		return 0;
	}
	if (!call->more)
		call->more = PyList_New(0);
	pair = PyTuple_Pack(2, callback, context);
	err = call->more && pair ? PyList_Append(call->more, pair) : -1;
	Py_XDECREF(pair);
	return err;
}

static PyObject *method_add(PyObject *self, PyObject *const *args, Py_ssize_t n,
			    PyObject *names)
{
	Py_ssize_t named = names ? PyTuple_GET_SIZE(names) : 0;
	PyObject *context;
	int err;

	if (n != 1 || named > 1 ||
	    (named && PyUnicode_Compare(PyTuple_GET_ITEM(names, 0),
					str_context))) {
		PyErr_SetString(PyExc_TypeError,
				"add_done_callback(callback, *, context=None)");
		return NULL;
	}
	if (named && args[1] != Py_None) {
		context = args[1];
		Py_INCREF(context);
	} else {
		context = PyContext_CopyCurrent();
		if (!context)
			return NULL;
	}
	err = future_add((struct call *)self, args[0], context);
	Py_DECREF(context);
	if (err)
		return NULL;
	Py_RETURN_NONE;
}

/*
 * Remove callback from "more". Returns how often it was there; -1: an exception
 * is set.
 */
static Py_ssize_t future_remove_more(struct call *call, PyObject *callback)
{
	Py_ssize_t n = 0;

	for (Py_ssize_t i = PyList_GET_SIZE(call->more); i-- > 0;) {
		PyObject *pair = PyList_GET_ITEM(call->more, i);
		int is = PyObject_RichCompareBool(PyTuple_GET_ITEM(pair, 0),
						  callback, Py_EQ);

		if (is < 0 ||
		    (is && PyList_SetSlice(call->more, i, i + 1, NULL)))
			return -1;
		n += is;
	}
	return n;
}

static PyObject *method_remove(PyObject *self, PyObject *callback)
{
	struct call *call = (struct call *)self;
	Py_ssize_t n = call->more ? future_remove_more(call, callback) : 0;
	int is = 0;

	if (n >= 0 && call->callback)
		is = PyObject_RichCompareBool(call->callback, callback, Py_EQ);
	if (n < 0 || is < 0)
		return NULL;
	if (is) {
		Py_CLEAR(call->callback);
		Py_CLEAR(call->context);
	}
	return PyLong_FromSsize_t(n + is);
}

static PySendResult future_go_on(struct call *call, PyObject **result)
{
	if (!call->done) {
		call->blocking = true;
		Py_INCREF(call);
		*result = (PyObject *)call;
		return PYGEN_NEXT;
	}
	*result = future_result(call);
	return *result ? PYGEN_RETURN : PYGEN_ERROR;
}

static PySendResult future_am_send(PyObject *self, PyObject *value,
				   PyObject **result)
{
	return future_go_on((struct call *)self, result);
}

static PyObject *future_next(PyObject *self)
{
	PyObject *result, *stop;

	if (future_go_on((struct call *)self, &result) != PYGEN_RETURN)
		return result;
	stop = PyObject_CallOneArg(PyExc_StopIteration, result);
	Py_DECREF(result);
	if (stop)
		PyErr_SetObject(PyExc_StopIteration, stop);
	Py_XDECREF(stop);
	return NULL;
}

static PyObject *method_send(PyObject *self, PyObject *unused)
{
	return future_next(self);
}

static PyObject *method_throw(PyObject *self, PyObject *args)
{
	struct call *call = (struct call *)self;
	PyObject *type, *value = NULL, *trace = NULL;

	if (!PyArg_UnpackTuple(args, "throw", 1, 3, &type, &value, &trace))
		return NULL;
	if (!call->done && future_cancel(call))
		return NULL;
	if (PyExceptionInstance_Check(type))
		PyErr_SetObject((PyObject *)Py_TYPE(type), type);
	else if (PyExceptionClass_Check(type))
		PyErr_SetObject(type, value);
	else
		PyErr_SetString(PyExc_TypeError, "throw() takes an exception");
	return NULL;
}

static PyObject *method_close(PyObject *self, PyObject *unused)
{
	struct call *call = (struct call *)self;

	if (!call->done && call->loop->flexsc && future_cancel(call))
		return NULL;
	Py_RETURN_NONE;
}

static PyObject *future_self(PyObject *self)
{
	Py_INCREF(self);
	return self;
}

static PyObject *future_get_blocking(PyObject *self, void *unused)
{
	return PyBool_FromLong(((struct call *)self)->blocking);
}

static int future_set_blocking(PyObject *self, PyObject *value, void *unused)
{
	int is = value ? PyObject_IsTrue(value) : 0;

	if (is < 0)
		return -1;
	((struct call *)self)->blocking = is;
	return 0;
}

static int future_traverse(PyObject *self, visitproc visit, void *arg)
{
	struct call *call = (struct call *)self;

	Py_VISIT(call->loop);
	Py_VISIT(call->name[0]);
	Py_VISIT(call->name[1]);
	Py_VISIT(call->file);
	Py_VISIT(call->buffer.obj);
	Py_VISIT(call->callback);
	Py_VISIT(call->context);
	Py_VISIT(call->more);
	Py_VISIT(call->result);
	Py_VISIT(call->error);
	Py_VISIT(call->message);
	return 0;
}

/* Only a call that isn't posted can be garbage: the library refers to posted ones. */
static int future_clear(PyObject *self)
{
	struct call *call = (struct call *)self;

	Py_CLEAR(call->callback);
	Py_CLEAR(call->context);
	Py_CLEAR(call->more);
	Py_CLEAR(call->result);
	Py_CLEAR(call->error);
	Py_CLEAR(call->message);
	return 0;
}

/* The program never retrieved the error: report it, or it would be lost. */
static void future_finalize(PyObject *self)
{
	struct call *call = (struct call *)self;

	if (call->error && !call->retrieved)
		call_report_lost(call);
}

static void future_dealloc(PyObject *self)
{
	struct call *call = (struct call *)self;

	if (PyObject_CallFinalizerFromDealloc(self))
		return;
	PyObject_GC_UnTrack(self);
	future_clear(self);
	call_let_go(call);
	Py_CLEAR(call->loop);
	PyObject_GC_Del(self);
}

static PyMethodDef future_methods[] = {
	{ "cancel", (PyCFunction)(void (*)(void))method_cancel,
	  METH_VARARGS | METH_KEYWORDS,
	  "Request cancellation; the call is done when the kernel has released "
	  "its memory." },
	{ "done", method_done, METH_NOARGS, NULL },
	{ "cancelled", method_cancelled, METH_NOARGS, NULL },
	{ "result", method_result, METH_NOARGS, NULL },
	{ "exception", method_exception, METH_NOARGS, NULL },
	{ "get_loop", method_get_loop, METH_NOARGS, NULL },
	{ "add_done_callback", (PyCFunction)(void (*)(void))method_add,
	  METH_FASTCALL | METH_KEYWORDS, NULL },
	{ "remove_done_callback", method_remove, METH_O, NULL },
	{ "send", method_send, METH_O, NULL },
	{ "throw", method_throw, METH_VARARGS, NULL },
	{ "close", method_close, METH_NOARGS, NULL },
	{ "_make_cancelled_error", method_make_error, METH_NOARGS, NULL },
	{ "__class_getitem__", Py_GenericAlias, METH_O | METH_CLASS, NULL },
	{ NULL }
};

static PyGetSetDef future_members[] = {
	{ "_asyncio_future_blocking", future_get_blocking, future_set_blocking },
	{ "_cancel_message", future_get_message },
	{ NULL }
};

static PyAsyncMethods future_async = {
	.am_await = future_self,
	.am_send = future_am_send,
};

PyTypeObject call_type = {
	PyVarObject_HEAD_INIT(NULL, 0)
	.tp_name = "flexsc.Call",
	.tp_doc = "A posted call: await it, or use it as a future.",
	.tp_basicsize = sizeof(struct call),
	.tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC |
		    Py_TPFLAGS_BASETYPE,
	.tp_dealloc = future_dealloc,
	.tp_finalize = future_finalize,
	.tp_traverse = future_traverse,
	.tp_clear = future_clear,
	.tp_as_async = &future_async,
	.tp_iter = future_self,
	.tp_iternext = future_next,
	.tp_methods = future_methods,
	.tp_getset = future_members,
};

/* The exit of "async with" on a file that is being opened: close it. */
static PyObject *opening_exit(PyObject *self, PyObject *args)
{
	PyObject *file = future_result((struct call *)self), *closing;

	if (!file)
		return NULL;
	closing = PyObject_CallMethod(file, "close", NULL);
	Py_DECREF(file);
	return closing;
}

static PyObject *opening_enter(PyObject *self, PyObject *unused)
{
	return future_self(self);
}

static PyMethodDef opening_methods[] = {
	{ "__aenter__", opening_enter, METH_NOARGS, NULL },
	{ "__aexit__", opening_exit, METH_VARARGS, NULL },
	{ NULL }
};

PyTypeObject opening_type = {
	PyVarObject_HEAD_INIT(NULL, 0)
	.tp_name = "flexsc.Opening",
	.tp_doc = "A file that is being opened: await it, or use async with.",
	.tp_basicsize = sizeof(struct call),
	.tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC,
	.tp_dealloc = future_dealloc,
	.tp_finalize = future_finalize,
	.tp_traverse = future_traverse,
	.tp_clear = future_clear,
	.tp_base = &call_type,
	.tp_methods = opening_methods,
};

int future_init(void)
{
	PyObject *asyncio = PyImport_ImportModule("asyncio");

	if (!asyncio)
		return -1;
	cancelled_error = PyObject_GetAttrString(asyncio, "CancelledError");
	invalid_state = PyObject_GetAttrString(asyncio, "InvalidStateError");
	Py_DECREF(asyncio);
	str_context = PyUnicode_InternFromString("context");
	if (PyErr_Occurred() || PyType_Ready(&call_type))
		return -1;
	return PyType_Ready(&opening_type);
}
