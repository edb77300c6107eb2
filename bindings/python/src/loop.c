/* SPDX-License-Identifier: MIT */
#include "loop.h"

#include <unistd.h>

#include "turn.h"

/*
 * The object that the outer loop calls when the descriptor is readable. For a
 * turn that is due soon or after a time, the outer loop calls the loop object
 * itself.
 */
struct reader {
	PyObject_HEAD
	vectorcallfunc vectorcall;
	struct loop *loop;
};

static __thread struct loop *open_loops;
static PyObject *get_running_loop;
static PyObject *str_add_reader, *str_remove_reader, *str_is_closed;

static PyObject *raise_os(int err, const char *why)
{
	PyObject *args = Py_BuildValue("(is)", -err, why);

	if (args)
		PyErr_SetObject(PyExc_OSError, args);
	Py_XDECREF(args);
	return NULL;
}

PyObject *loop_raise(int err)
{
	if (err == -ESTALE)
		return PyErr_Format(PyExc_RuntimeError,
				    "the event loop belongs to the parent process");
	if (err == -ESHUTDOWN)
		return PyErr_Format(PyExc_RuntimeError,
				    "the event loop's flexsc.Loop is closed");
	return raise_os(err, strerror(-err));
}

int loop_check(struct loop *loop)
{
	if (!loop->flexsc)
		loop_raise(-ESHUTDOWN);
	else if (loop->thread == PyThread_get_thread_ident())
		return 0;
	else
		PyErr_SetString(PyExc_RuntimeError,
				"the flexsc.Loop belongs to another thread");
	return -1;
}

static PyObject *reader_call(PyObject *self, PyObject *const *args, size_t n,
			    PyObject *names)
{
	struct loop *loop = ((struct reader *)self)->loop;
	int err;

	/* The turn's callbacks may drop the reader, and with it the loop. */
	Py_INCREF(loop);
	err = turn_make(loop, true);
	Py_DECREF(loop);
	if (err)
		return NULL;
	Py_RETURN_NONE;
}

static PyObject *loop_call(PyObject *self, PyObject *const *args, size_t n,
			   PyObject *names)
{
	if (turn_make((struct loop *)self, false))
		return NULL;
	Py_RETURN_NONE;
}

static int outer_is_closed(PyObject *outer)
{
	PyObject *closed = PyObject_CallMethodNoArgs(outer, str_is_closed);
	int is = closed ? PyObject_IsTrue(closed) : -1;

	Py_XDECREF(closed);
	return is;
}

static void loop_detach(struct loop *loop, int fd)
{
	PyObject *done = NULL, *number = PyLong_FromLong(fd);

	if (number && outer_is_closed(loop->outer) == 0)
		done = PyObject_CallMethodOneArg(loop->outer, str_remove_reader,
						 number);
	if (PyErr_Occurred())
		PyErr_WriteUnraisable((PyObject *)loop);
	Py_XDECREF(number);
	Py_XDECREF(done);
}

static void loop_unlink(struct loop *loop)
{
	struct loop **at = &open_loops;

	while (*at && *at != loop)
		at = &(*at)->next;
	if (*at)
		*at = loop->next;
}

/* Returns 0, or -1 with an exception set. */
static int loop_close(struct loop *loop)
{
	struct flexsc_loop *flexsc = loop->flexsc;
	int err;

	if (!flexsc)
		return 0;
	if (loop_check(loop))
		return -1;
	loop_unlink(loop);
	loop->flexsc = NULL;
	if (loop->pid != getpid()) {
		flexsc_loop_destroy(flexsc);
		return 0;
	}
	loop_detach(loop, flexsc_loop_fd(flexsc));
	turn_stop(loop);
	Py_BEGIN_ALLOW_THREADS
	err = flexsc_loop_destroy(flexsc);
	Py_END_ALLOW_THREADS
	if (err) {
		loop_raise(err);
		return -1;
	}
	turn_last(loop, outer_is_closed(loop->outer) == 0);
	PyErr_Clear();
	return 0;
}

/*
 * If the loop belongs to another thread, it stays in that thread's list: keep the
 * reference. The thread closes the loop before it makes another one.
 */
static void loop_abandon(struct reader *reader)
{
	if (!reader->loop->flexsc)
		return;
	reader->loop->abandoned = true;
	reader->loop = NULL;
}

static void loop_close_abandoned(void)
{
	struct loop *loop = open_loops;

	while (loop) {
		if (!loop->abandoned) {
			loop = loop->next;
			continue;
		}
		if (loop_close(loop))
			PyErr_WriteUnraisable((PyObject *)loop);
		Py_DECREF(loop);
		/* Closing runs Python code, which may have changed the list. */
		loop = open_loops;
	}
}

static void reader_dealloc(PyObject *self)
{
	struct reader *reader = (struct reader *)self;
	PyObject *type, *value, *trace;

	PyObject_GC_UnTrack(self);
	PyErr_Fetch(&type, &value, &trace);
	if (reader->loop && loop_close(reader->loop)) {
		PyErr_WriteUnraisable((PyObject *)reader->loop);
		loop_abandon(reader);
	}
	PyErr_Restore(type, value, trace);
	Py_CLEAR(reader->loop);
	PyObject_GC_Del(self);
}

static int reader_traverse(PyObject *self, visitproc visit, void *arg)
{
	Py_VISIT(((struct reader *)self)->loop);
	return 0;
}

static PyTypeObject reader_type = {
	PyVarObject_HEAD_INIT(NULL, 0)
	.tp_name = "flexsc._flexsc.Reader",
	.tp_basicsize = sizeof(struct reader),
	.tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC |
		    Py_TPFLAGS_HAVE_VECTORCALL,
	.tp_dealloc = reader_dealloc,
	.tp_traverse = reader_traverse,
	.tp_call = PyVectorcall_Call,
	.tp_vectorcall_offset = offsetof(struct reader, vectorcall),
};

/* Add a reader to the outer loop. Returns 0, or -1 with an exception set. */
static int loop_attach(struct loop *loop)
{
	int fd = flexsc_loop_fd(loop->flexsc);
	struct reader *reader;
	PyObject *number, *done = NULL;

	if (fd < 0) {
		loop_raise(fd);
		return -1;
	}
	reader = PyObject_GC_New(struct reader, &reader_type);
	if (!reader)
		return -1;
	reader->vectorcall = reader_call;
	reader->loop = loop;
	Py_INCREF(loop);
	PyObject_GC_Track(reader);
	number = PyLong_FromLong(fd);
	if (number)
		done = PyObject_CallMethodObjArgs(loop->outer, str_add_reader,
						  number, reader, NULL);
	Py_XDECREF(number);
	Py_XDECREF(done);
	Py_DECREF(reader);
	return done ? 0 : -1;
}

/* Raise an error that explains why an engine isn't available. */
static PyObject *loop_raise_engine(int err, const char *engine)
{
	char why[256] = "";

	if (err == -EINVAL && engine)
		return PyErr_Format(PyExc_ValueError, "no such engine: %s",
				    engine);
	if (err != -EOPNOTSUPP)
		return loop_raise(err);
	flexsc_engine_probe(engine, why, sizeof(why));
	return raise_os(err, why);
}

static struct loop *loop_find(PyObject *outer)
{
	struct loop *loop = open_loops;

	while (loop && loop->outer != outer)
		loop = loop->next;
	return loop;
}

/* Returns a new reference, or NULL with an exception set. */
static struct loop *loop_new(PyObject *outer,
			     const struct flexsc_options *options)
{
	struct loop *loop;
	int err;

	loop_close_abandoned();
	loop = PyObject_GC_New(struct loop, &loop_type);
	if (!loop)
		return NULL;
	memset((char *)loop + sizeof(PyObject), 0,
	       sizeof(*loop) - sizeof(PyObject));
	loop->vectorcall = loop_call;
	loop->last = &loop->first;
	loop->thread = PyThread_get_thread_ident();
	loop->pid = getpid();
	Py_INCREF(outer);
	loop->outer = outer;
	PyObject_GC_Track(loop);
	err = flexsc_loop_create(&loop->flexsc, options);
	if (err) {
		loop_raise_engine(err, options ? options->engine : NULL);
		Py_DECREF(loop);
		return NULL;
	}
	loop->next = open_loops;
	open_loops = loop;
	if (loop_attach(loop)) {
		Py_DECREF(loop);
		return NULL;
	}
	return loop;
}

/* Returns a new reference, or NULL with an exception set. */
static PyObject *outer_running(void)
{
	PyObject *outer = PyObject_CallNoArgs(get_running_loop);

	if (outer == Py_None) {
		Py_DECREF(outer);
		PyErr_SetString(PyExc_RuntimeError, "no running event loop");
		return NULL;
	}
	return outer;
}

struct loop *loop_running(void)
{
	PyObject *outer = outer_running();
	struct loop *loop;

	if (!outer)
		return NULL;
	loop = loop_find(outer);
	if (!loop) {
		loop = loop_new(outer, NULL);
		/* The outer loop holds the reference. */
		Py_XDECREF(loop);
	}
	Py_DECREF(outer);
	return loop;
}

static PyObject *loop_make(PyTypeObject *type, PyObject *args, PyObject *names)
{
	static char *known[] = { "engine", "max_threads", "kernel_cores",
				 "poll_us", "poll_adaptive", "backlog", NULL };
	struct flexsc_options options = FLEXSC_OPTIONS_INIT;
	struct loop *loop = NULL;
	PyObject *outer;
	int adaptive = 0;

	if (!PyArg_ParseTupleAndKeywords(args, names, "|$zIzIpI:Loop", known,
					 &options.engine, &options.max_threads,
					 &options.kernel_cores,
					 &options.poll_us, &adaptive,
					 &options.backlog))
		return NULL;
	options.flags = adaptive ? FLEXSC_POLL_ADAPTIVE : 0;
	outer = outer_running();
	if (!outer)
		return NULL;
	if (loop_find(outer))
		PyErr_SetString(PyExc_RuntimeError,
				"the event loop has a flexsc.Loop already");
	else
		loop = loop_new(outer, &options);
	Py_DECREF(outer);
	return (PyObject *)loop;
}

static PyObject *loop_method_close(PyObject *self, PyObject *unused)
{
	if (loop_close((struct loop *)self))
		return NULL;
	Py_RETURN_NONE;
}

PyObject *loop_close_running(PyObject *module, PyObject *unused)
{
	PyObject *outer = outer_running();
	struct loop *loop = outer ? loop_find(outer) : NULL;

	if (!outer)
		return NULL;
	Py_DECREF(outer);
	if (loop && loop_close(loop))
		return NULL;
	Py_RETURN_NONE;
}

PyObject *loop_close_all(PyObject *module, PyObject *unused)
{
	while (open_loops) {
		struct loop *loop = open_loops;

		Py_INCREF(loop);
		if (loop_close(loop))
			PyErr_WriteUnraisable((PyObject *)loop);
		Py_DECREF(loop);
	}
	Py_RETURN_NONE;
}

static PyObject *loop_engine(PyObject *self, void *unused)
{
	struct loop *loop = (struct loop *)self;

	if (loop_check(loop))
		return NULL;
	return PyUnicode_FromString(flexsc_loop_engine(loop->flexsc));
}

static PyObject *loop_why(PyObject *self, void *unused)
{
	struct loop *loop = (struct loop *)self;
	const char *why;

	if (loop_check(loop))
		return NULL;
	why = flexsc_loop_why(loop->flexsc);
	if (!why)
		Py_RETURN_NONE;
	return PyUnicode_DecodeLocale(why, "surrogateescape");
}

static PyObject *loop_pending(PyObject *self, void *unused)
{
	return PyLong_FromSsize_t(((struct loop *)self)->pending);
}

static PyObject *loop_closed(PyObject *self, void *unused)
{
	return PyBool_FromLong(!((struct loop *)self)->flexsc);
}

static int loop_traverse(PyObject *self, visitproc visit, void *arg)
{
	struct loop *loop = (struct loop *)self;

	Py_VISIT(loop->outer);
	Py_VISIT(loop->timer);
	return 0;
}

static void loop_dealloc(PyObject *self)
{
	struct loop *loop = (struct loop *)self;

	PyObject_GC_UnTrack(self);
	if (loop->flexsc) {
		/*
		 * Nothing was posted to the loop, because it never had a
		 * reader.
		 */
		loop_unlink(loop);
		flexsc_loop_destroy(loop->flexsc);
	}
	Py_CLEAR(loop->outer);
	Py_CLEAR(loop->timer);
	PyObject_GC_Del(self);
}

static PyMethodDef loop_methods[] = {
	{ "close", loop_method_close, METH_NOARGS,
	  "Cancel pending calls, and wait until the kernel has released their "
	  "memory." },
	{ NULL }
};

static PyGetSetDef loop_members[] = {
	{ "engine", loop_engine, NULL, "The engine's name." },
	{ "why", loop_why, NULL, "Why a better engine isn't used, or None." },
	{ "pending", loop_pending, NULL, "Number of pending calls." },
	{ "closed", loop_closed, NULL, "Is it closed?" },
	{ NULL }
};

PyTypeObject loop_type = {
	PyVarObject_HEAD_INIT(NULL, 0)
	.tp_name = "flexsc.Loop",
	.tp_doc = "Loop(*, engine=None, max_threads=0, kernel_cores=None, "
		  "poll_us=0, poll_adaptive=False, backlog=0)\n"
		  "--\n"
		  "\n"
		  "Makes FlexSC's loop for the running event loop, with options.",
	.tp_basicsize = sizeof(struct loop),
	.tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC |
		    Py_TPFLAGS_HAVE_VECTORCALL,
	.tp_new = loop_make,
	.tp_call = PyVectorcall_Call,
	.tp_vectorcall_offset = offsetof(struct loop, vectorcall),
	.tp_dealloc = loop_dealloc,
	.tp_traverse = loop_traverse,
	.tp_methods = loop_methods,
	.tp_getset = loop_members,
};

int loop_init(void)
{
	PyObject *asyncio = PyImport_ImportModule("asyncio");

	if (!asyncio)
		return -1;
	get_running_loop = PyObject_GetAttrString(asyncio, "_get_running_loop");
	Py_DECREF(asyncio);
	str_add_reader = PyUnicode_InternFromString("add_reader");
	str_remove_reader = PyUnicode_InternFromString("remove_reader");
	str_is_closed = PyUnicode_InternFromString("is_closed");
	if (PyErr_Occurred() || PyType_Ready(&reader_type))
		return -1;
	return PyType_Ready(&loop_type);
}
