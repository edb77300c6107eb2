/* SPDX-License-Identifier: MIT */
/*
 * The module flexsc._flexsc: file operations for asyncio, made by libflexsc.
 *
 *	loop	a loop inside an asyncio loop, and its turns
 *	turn	what a loop does when its outer loop calls it
 *	call	what is posted
 *	future	a call as Python sees it
 *	file	open files; open makes them
 *	names	calls that take names of files
 *	status	a file's attributes
 *
 * Everything runs on the thread of the asyncio loop and with the GIL, except
 * the work of listdir(). Each thread has its own list of loops.
 */
#include "call.h"
#include "file.h"
#include "future.h"
#include "loop.h"
#include "names.h"
#include "open.h"
#include "status.h"
#include "turn.h"

static PyObject *module_running(PyObject *module, PyObject *unused)
{
	struct loop *loop = loop_running();

	Py_XINCREF(loop);
	return (PyObject *)loop;
}

static PyObject *module_identity_changed(PyObject *module, PyObject *unused)
{
	flexsc_identity_changed();
	Py_RETURN_NONE;
}

static PyMethodDef module_methods[] = {
	{ "open", (PyCFunction)(void (*)(void))open_file,
	  METH_VARARGS | METH_KEYWORDS,
	  "open(path, mode='rb', permissions=0o666)\n--\n\n"
	  "Open a file: await it, or use async with." },
	{ "running_loop", module_running, METH_NOARGS,
	  "running_loop()\n--\n\nThe running event loop's Loop." },
	{ "identity_changed", module_identity_changed, METH_NOARGS,
	  "identity_changed()\n--\n\n"
	  "Call this after a change of users, groups or capabilities, if a Loop has\n"
	  "kernel_cores: calls that start later have the present ones." },
	{ "_close_running", loop_close_running, METH_NOARGS, NULL },
	{ "_close_all", loop_close_all, METH_NOARGS, NULL },
	{ NULL }
};

static struct PyModuleDef module = {
	PyModuleDef_HEAD_INIT,
	.m_name = "flexsc._flexsc",
	.m_size = -1,
	.m_methods = module_methods,
};

static int module_add(PyObject *to)
{
	if (PyModule_AddFunctions(to, names_methods) ||
	    PyModule_AddStringConstant(to, "__version__", PACKAGE_VERSION) ||
	    PyModule_AddType(to, &loop_type) ||
	    PyModule_AddType(to, &call_type) ||
	    PyModule_AddType(to, &opening_type))
		return -1;
	return PyModule_AddType(to, &file_type);
}

/* Ends all calls before the interpreter exits. */
static int module_at_exit(PyObject *of)
{
	PyObject *atexit = PyImport_ImportModule("atexit");
	PyObject *close = PyObject_GetAttrString(of, "_close_all");
	PyObject *done = NULL;

	if (atexit && close)
		done = PyObject_CallMethod(atexit, "register", "O", close);
	Py_XDECREF(done);
	Py_XDECREF(close);
	Py_XDECREF(atexit);
	return done ? 0 : -1;
}

PyMODINIT_FUNC PyInit__flexsc(void)
{
	PyObject *made;

	if (loop_init() || turn_init() || call_init() || future_init() || status_init() ||
	    PyType_Ready(&file_type))
		return NULL;
	made = PyModule_Create(&module);
	if (made && (module_add(made) || module_at_exit(made)))
		Py_CLEAR(made);
	return made;
}
