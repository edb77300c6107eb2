/* SPDX-License-Identifier: MIT */
#include "names.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>

#include "future.h"
#include "status.h"

#define METHOD(function) ((PyCFunction)(void (*)(void))(function))

/*
 * Set the call's path i, which is relative to the current folder, and the name for its
 * error messages. Returns 0, or -1 with an exception set.
 */
static int set_path(struct call *call, int i, PyObject *path)
{
	call->name[i] = PyOS_FSPath(path);
	if (!call->name[i] || !PyUnicode_FSConverter(call->name[i], &call->path[i]))
		return -1;
	call->args[2 * i] = (uint64_t)AT_FDCWD;
	call->args[2 * i + 1] = (uintptr_t)PyBytes_AS_STRING(call->path[i]);
	return 0;
}

static PyObject *drop(struct call *call)
{
	Py_DECREF(call);
	return NULL;
}

struct call *names_call(PyTypeObject *type, PyObject *path, unsigned int nr,
			int (*finish)(struct call *call, int64_t ret))
{
	struct loop *loop = loop_running();
	struct call *call = loop ? call_new(type, loop, nr, finish) : NULL;

	if (!call || !set_path(call, 0, path))
		return call;
	Py_DECREF(call);
	return NULL;
}

static struct call *name_call(PyObject *path, unsigned int nr,
			      int (*finish)(struct call *call, int64_t ret))
{
	return names_call(&call_type, path, nr, finish);
}

static PyObject *name_stat(PyObject *module, PyObject *path)
{
	struct call *call = name_call(path, SYS_statx, status_finish);

	return call ? status_post(call, AT_FDCWD, AT_NO_AUTOMOUNT) : NULL;
}

static PyObject *name_lstat(PyObject *module, PyObject *path)
{
	struct call *call = name_call(path, SYS_statx, status_finish);
	int flags = AT_NO_AUTOMOUNT | AT_SYMLINK_NOFOLLOW;

	return call ? status_post(call, AT_FDCWD, flags) : NULL;
}

static PyObject *name_mkdir(PyObject *module, PyObject *args, PyObject *names)
{
	static char *known[] = { "path", "mode", NULL };
	unsigned int mode = 0777;
	PyObject *path;
	struct call *call;

	if (!PyArg_ParseTupleAndKeywords(args, names, "O|I:mkdir", known,
					 &path, &mode))
		return NULL;
	call = name_call(path, SYS_mkdirat, call_finish_none);
	if (!call)
		return NULL;
	call->args[2] = mode;
	return call_post(call);
}

static PyObject *name_unlink(PyObject *module, PyObject *path)
{
	struct call *call = name_call(path, SYS_unlinkat, call_finish_none);

	return call ? call_post(call) : NULL;
}

static PyObject *name_rmdir(PyObject *module, PyObject *path)
{
	struct call *call = name_call(path, SYS_unlinkat, call_finish_none);

	if (!call)
		return NULL;
	call->args[2] = AT_REMOVEDIR;
	return call_post(call);
}

/* Make a call with two paths, which are parsed from args. */
static struct call *two_call(PyObject *args, const char *format,
			     unsigned int nr)
{
	PyObject *from, *to;
	struct call *call;

	if (!PyArg_ParseTuple(args, format, &from, &to))
		return NULL;
	call = name_call(from, nr, call_finish_none);
	if (!call || !set_path(call, 1, to))
		return call;
	Py_DECREF(call);
	return NULL;
}

static PyObject *name_rename(PyObject *module, PyObject *args)
{
	struct call *call = two_call(args, "OO:rename", SYS_renameat2);

	return call ? call_post(call) : NULL;
}

static PyObject *name_link(PyObject *module, PyObject *args)
{
	struct call *call = two_call(args, "OO:link", SYS_linkat);

	return call ? call_post(call) : NULL;
}

static PyObject *name_symlink(PyObject *module, PyObject *args)
{
	struct call *call = two_call(args, "OO:symlink", SYS_symlinkat);

	if (!call)
		return NULL;
	call->args[0] = call->args[1];
	call->args[1] = (uint64_t)AT_FDCWD;
	call->args[2] = call->args[3];
	return call_post(call);
}

/* Convert a name as the module os does: to bytes if the path was bytes. */
static PyObject *name_of(const struct call *call, const char *name, size_t n)
{
	if (PyBytes_Check(call->name[0]))
		return PyBytes_FromStringAndSize(name, (Py_ssize_t)n);
	return PyUnicode_DecodeFSDefaultAndSize(name, (Py_ssize_t)n);
}

static int readlink_end(struct call *call, int64_t ret)
{
	call->result = name_of(call, call->memory, (size_t)ret);
	return call->result ? 0 : -1;
}

static PyObject *name_readlink(PyObject *module, PyObject *path)
{
	struct call *call = name_call(path, SYS_readlinkat, readlink_end);

	if (!call)
		return NULL;
	call->memory = PyMem_Malloc(PATH_MAX);
	if (!call->memory) {
		PyErr_NoMemory();
		return drop(call);
	}
	call->args[2] = (uintptr_t)call->memory;
	call->args[3] = PATH_MAX;
	return call_post(call);
}

/* The names that a syscall thread read, each with its terminating zero. */
struct listing {
	size_t size, room;
	char *names;
};

static int listing_add(struct listing *list, const char *name)
{
	size_t n = strlen(name) + 1;
	char *names;

	if (list->size + n > list->room) {
		list->room = 2 * list->room + n + 1024;
		names = realloc(list->names, list->room);
		if (!names)
			return -ENOMEM;
		list->names = names;
	}
	memcpy(list->names + list->size, name, n);
	list->size += n;
	return 0;
}

static int listing_read(struct listing *list, DIR *folder)
{
	struct dirent *entry;
	int err = 0;

	while (!err) {
		errno = 0;
		entry = readdir(folder);
		if (!entry)
			return -errno;
		if (strcmp(entry->d_name, ".") && strcmp(entry->d_name, ".."))
			err = listing_add(list, entry->d_name);
	}
	return err;
}

/* Runs on a syscall thread, without Python. */
static int64_t listdir_work(void *arg)
{
	struct call *call = arg;
	DIR *folder = opendir((const char *)(uintptr_t)call->args[1]);
	int err;

	if (!folder)
		return -errno;
	err = listing_read(call->memory, folder);
	closedir(folder);
	return err;
}

static int listdir_end(struct call *call, int64_t ret)
{
	const struct listing *list = call->memory;
	const char *name = list->names, *end = name + list->size;
	PyObject *names = PyList_New(0);

	for (; names && name < end; name += strlen(name) + 1) {
		PyObject *one = name_of(call, name, strlen(name));

		if (!one || PyList_Append(names, one))
			Py_CLEAR(names);
		Py_XDECREF(one);
	}
	call->result = names;
	return names ? 0 : -1;
}

static void listdir_free(void *memory)
{
	free(((struct listing *)memory)->names);
}

static PyObject *name_listdir(PyObject *module, PyObject *args, PyObject *names)
{
	static char *known[] = { "path", NULL };
	PyObject *path = NULL;
	struct call *call;

	if (!PyArg_ParseTupleAndKeywords(args, names, "|O:listdir", known,
					 &path))
		return NULL;
	if (path) {
		call = name_call(path, 0, listdir_end);
	} else {
		path = PyUnicode_FromString(".");
		call = path ? name_call(path, 0, listdir_end) : NULL;
		Py_XDECREF(path);
	}
	if (!call)
		return NULL;
	call->memory = PyMem_Calloc(1, sizeof(struct listing));
	if (!call->memory) {
		PyErr_NoMemory();
		return drop(call);
	}
	call->work = listdir_work;
	call->free = listdir_free;
	return call_post(call);
}

static PyObject *all_sync(PyObject *module, PyObject *unused)
{
	struct loop *loop = loop_running();
	struct call *call;

	if (!loop)
		return NULL;
	call = call_new(&call_type, loop, SYS_sync, call_finish_none);
	return call ? call_post(call) : NULL;
}

PyMethodDef names_methods[] = {
	{ "stat", name_stat, METH_O,
	  "stat(path, /)\n"
	  "--\n"
	  "\n"
	  "Like os.stat()." },
	{ "lstat", name_lstat, METH_O,
	  "lstat(path, /)\n"
	  "--\n"
	  "\n"
	  "Like os.lstat()." },
	{ "mkdir", METHOD(name_mkdir), METH_VARARGS | METH_KEYWORDS,
	  "mkdir(path, mode=0o777)\n--\n\nMake a folder." },
	{ "rmdir", name_rmdir, METH_O,
	  "rmdir(path, /)\n--\n\nRemove an empty folder." },
	{ "unlink", name_unlink, METH_O,
	  "unlink(path, /)\n--\n\nRemove a name of a file." },
	{ "rename", name_rename, METH_VARARGS,
	  "rename(src, dst, /)\n--\n\nRename; dst is replaced." },
	{ "link", name_link, METH_VARARGS,
	  "link(src, dst, /)\n"
	  "--\n"
	  "\n"
	  "Make dst another name of src." },
	{ "symlink", name_symlink, METH_VARARGS,
	  "symlink(src, dst, /)\n--\n\nMake dst a link to src." },
	{ "readlink", name_readlink, METH_O,
	  "readlink(path, /)\n"
	  "--\n"
	  "\n"
	  "Return the target of a link." },
	{ "listdir", METHOD(name_listdir), METH_VARARGS | METH_KEYWORDS,
	  "listdir(path='.')\n"
	  "--\n"
	  "\n"
	  "Return the names in a folder." },
	{ "sync", all_sync, METH_NOARGS,
	  "sync()\n"
	  "--\n"
	  "\n"
	  "Like os.sync()." },
	{ NULL }
};
