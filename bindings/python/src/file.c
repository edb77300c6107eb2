/* SPDX-License-Identifier: MIT */
#include "file.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "future.h"
#include "status.h"

/* Initial buffer size of a read until the end. */
#define CHUNK	65536
#define CHUNK_MOST	(64 << 20)

#define METHOD(function) ((PyCFunction)(void (*)(void))(function))

struct file {
	PyObject_HEAD
	struct loop *loop;
	PyObject *name;
	int fd;				/* -1: closed */
	bool regular;
	bool appends;			/* opened for appending, not for reading */
	bool busy;			/* a call is using the position */
	unsigned int calls;		/* pending calls, except the close */
	struct call *closing;		/* the close that waits for these calls, or NULL */
	int64_t position;		/* of the next read or write; -1: the
					 * kernel keeps the position, or the file
					 * has none */
};

/*
 * Handle the end of one of the file's calls. The last one posts a waiting
 * close.
 */
static void file_call_ended(PyObject *self)
{
	struct file *file = (struct file *)self;
	struct call *closing = file->closing;

	if (--file->calls || !closing)
		return;
	file->closing = NULL;
	call_post_late(closing);
}

static PyObject *file_raise_closed(void)
{
	PyErr_SetString(PyExc_ValueError, "I/O operation on closed file");
	return NULL;
}

/* Make a call with the file's descriptor as its first argument. */
static struct call *file_call(struct file *file, unsigned int nr,
			      int (*finish)(struct call *call, int64_t ret))
{
	struct call *call;

	if (file->fd < 0) {
		file_raise_closed();
		return NULL;
	}
	call = call_new(&call_type, file->loop, nr, finish);
	if (call) {
		call->args[0] = (uint64_t)file->fd;
		Py_INCREF(file);
		call->file = (PyObject *)file;
		call->ended = file_call_ended;
		file->calls++;
	}
	return call;
}

/*
 * Make a call at the file's position. If the struct keeps the position, the
 * call is nr_at, otherwise nr.
 */
static struct call *file_call_on(struct file *file, unsigned int nr,
				 unsigned int nr_at,
				 int (*finish)(struct call *call, int64_t ret))
{
	bool here = file->position >= 0;
	struct call *call;

	if (here && file->busy) {
		PyErr_SetString(PyExc_RuntimeError,
				"another call uses the file's position");
		return NULL;
	}
	call = file_call(file, here || file->appends ? nr_at : nr, finish);
	if (call && here) {
		call->busy = &file->busy;
		file->busy = true;
		call->args[3] = (uint64_t)file->position;
	}
	return call;
}

/* Advance the position by n. A closed file has no position. */
static void file_move(struct call *call, int64_t n)
{
	struct file *file = (struct file *)call->file;

	if (call->busy && file->fd >= 0)
		file->position += n;
}

static PyObject *drop(struct call *call)
{
	Py_DECREF(call);
	return NULL;
}

/* Set up "size" bytes that the kernel fills, beginning at "from". */
static int file_room(struct call *call, Py_ssize_t from, Py_ssize_t size)
{
	if (call->bytes)
		_PyBytes_Resize(&call->bytes, size);
	else
		call->bytes = PyBytes_FromStringAndSize(NULL, size);
	if (!call->bytes)
		return -1;
	call->args[1] = (uintptr_t)PyBytes_AS_STRING(call->bytes) + (size_t)from;
	call->args[2] = (uint64_t)(size - from);
	return 0;
}

static int file_give(struct call *call, Py_ssize_t size)
{
	if (size != PyBytes_GET_SIZE(call->bytes) &&
	    _PyBytes_Resize(&call->bytes, size))
		return -1;
	call->result = call->bytes;
	call->bytes = NULL;
	return 0;
}

static int file_read_end(struct call *call, int64_t ret)
{
	file_move(call, ret);
	return file_give(call, (Py_ssize_t)ret);
}

/*
 * Post a call again for the rest. The descriptor stays open until the call has
 * ended. After the program has closed a pipe, its call isn't continued, because
 * the call, and so the close, might wait forever.
 */
static int file_post_rest(struct call *call)
{
	struct file *file = (struct file *)call->file;

	if (file->fd < 0 && !file->regular)
		return call_raise(call, ECANCELED);
	return call_post_rest(call);
}

/* Only a read of 0 bytes means the end of the file. */
static int file_read_all_end(struct call *call, int64_t ret)
{
	Py_ssize_t size = PyBytes_GET_SIZE(call->bytes), more = size;

	file_move(call, ret);
	call->total += (uint64_t)ret;
	call->args[3] += (uint64_t)ret;
	if (!ret || call->cancelled)
		return file_give(call, (Py_ssize_t)call->total);
	if (more > CHUNK_MOST)
		more = CHUNK_MOST;
	if (size - (Py_ssize_t)call->total < CHUNK / 2)
		size += more;
	if (file_room(call, (Py_ssize_t)call->total, size))
		return -1;
	return file_post_rest(call);
}

static PyObject *file_read(PyObject *self, PyObject *const *args, Py_ssize_t n)
{
	struct file *file = (struct file *)self;
	Py_ssize_t size = -1;
	struct call *call;

	if (n > 1)
		return PyErr_Format(PyExc_TypeError, "read(size=-1)");
	if (n && args[0] != Py_None)
		size = PyNumber_AsSsize_t(args[0], PyExc_OverflowError);
	if (size == -1 && PyErr_Occurred())
		return NULL;
	call = file_call_on(file, SYS_read, SYS_pread64,
			    size < 0 ? file_read_all_end : file_read_end);
	if (!call)
		return NULL;
	if (file_room(call, 0, size < 0 ? CHUNK : size))
		return drop(call);
	return call_post(call);
}

static PyObject *file_pread(PyObject *self, PyObject *args)
{
	Py_ssize_t size;
	long long offset;
	struct call *call;

	if (!PyArg_ParseTuple(args, "nL:pread", &size, &offset))
		return NULL;
	if (size < 0) {
		PyErr_SetString(PyExc_ValueError, "negative size");
		return NULL;
	}
	call = file_call((struct file *)self, SYS_pread64, file_read_end);
	if (!call)
		return NULL;
	if (file_room(call, 0, size))
		return drop(call);
	call->args[3] = (uint64_t)offset;
	return call_post(call);
}

/*
 * Post call with object's data, which is kept until the call ends. If call is NULL, an
 * exception was raised already.
 */
static PyObject *file_post(struct call *call, PyObject *object, int flags)
{
	if (!call)
		return NULL;
	if (PyObject_GetBuffer(object, &call->buffer, flags))
		return drop(call);
	if (((struct file *)call->file)->fd < 0) {
		/* The object's __buffer__() has closed the file. */
		file_raise_closed();
		return drop(call);
	}
	call->args[1] = (uintptr_t)call->buffer.buf;
	call->args[2] = (uint64_t)call->buffer.len;
	return call_post(call);
}

static int file_readinto_end(struct call *call, int64_t ret)
{
	file_move(call, ret);
	return call_finish_int(call, ret);
}

static PyObject *file_readinto(PyObject *self, PyObject *object)
{
	return file_post(file_call_on((struct file *)self, SYS_read,
				      SYS_pread64, file_readinto_end),
			 object, PyBUF_WRITABLE);
}

/* Continue until all is written, or the kernel takes no more. */
static int file_write_end(struct call *call, int64_t ret)
{
	uint64_t done = (uint64_t)ret;

	file_move(call, ret);
	call->total += done;
	if (!done || done == call->args[2] || call->cancelled)
		return call_finish_int(call, (int64_t)call->total);
	call->args[1] += done;
	call->args[2] -= done;
	call->args[3] += done;
	return file_post_rest(call);
}

static PyObject *file_write(PyObject *self, PyObject *object)
{
	return file_post(file_call_on((struct file *)self, SYS_write,
				      SYS_pwrite64, file_write_end),
			 object, PyBUF_SIMPLE);
}

static PyObject *file_pwrite(PyObject *self, PyObject *args)
{
	PyObject *object;
	long long offset;
	struct call *call;

	if (!PyArg_ParseTuple(args, "OL:pwrite", &object, &offset))
		return NULL;
	call = file_call((struct file *)self, SYS_pwrite64, file_write_end);
	if (call)
		call->args[3] = (uint64_t)offset;
	return file_post(call, object, PyBUF_SIMPLE);
}

/* Handle the end of lseek(). */
static int file_seek_end(struct call *call, int64_t ret)
{
	struct file *file = (struct file *)call->file;

	if (call->busy && file->fd >= 0)
		file->position = ret;
	return call_finish_int(call, ret);
}

static PyObject *file_lseek(struct file *file, int64_t offset, int whence)
{
	struct call *call = file_call_on(file, SYS_lseek, SYS_lseek,
					 file_seek_end);

	if (!call)
		return NULL;
	call->args[1] = (uint64_t)offset;
	call->args[2] = (uint64_t)whence;
	return call_post(call);
}

/* Return a completed call whose result is the position. */
static PyObject *file_place(struct file *file)
{
	PyObject *position = PyLong_FromLongLong(file->position), *told;

	told = position ? future_of(file->loop, position) : NULL;
	Py_XDECREF(position);
	return told;
}

static PyObject *file_seek(PyObject *self, PyObject *args)
{
	struct file *file = (struct file *)self;
	long long offset;
	int whence = SEEK_SET;

	if (!PyArg_ParseTuple(args, "L|i:seek", &offset, &whence))
		return NULL;
	if (whence == SEEK_CUR && file->position >= 0) {
		if (__builtin_add_overflow(offset, file->position, &offset))
			offset = -1;
		whence = SEEK_SET;
	}
	if (whence || offset < 0 || file->position < 0 || file->busy)
		return file_lseek(file, offset, whence);
	file->position = offset;
	return file_place(file);
}

static PyObject *file_tell(PyObject *self, PyObject *unused)
{
	struct file *file = (struct file *)self;

	if (file->position >= 0)
		return file_place(file);
	return file_lseek(file, 0, file->appends ? SEEK_END : SEEK_CUR);
}

static PyObject *file_truncate(PyObject *self, PyObject *size)
{
	long long length = PyLong_AsLongLong(size);
	struct call *call;

	if (length == -1 && PyErr_Occurred())
		return NULL;
	call = file_call((struct file *)self, SYS_ftruncate, call_finish_none);
	if (!call)
		return NULL;
	call->args[1] = (uint64_t)length;
	return call_post(call);
}

static PyObject *file_fsync(PyObject *self, PyObject *unused)
{
	struct call *call = file_call((struct file *)self, SYS_fsync,
				      call_finish_none);

	return call ? call_post(call) : NULL;
}

static PyObject *file_fdatasync(PyObject *self, PyObject *unused)
{
	struct call *call = file_call((struct file *)self, SYS_fdatasync,
				      call_finish_none);

	return call ? call_post(call) : NULL;
}

static PyObject *file_stat(PyObject *self, PyObject *unused)
{
	struct file *file = (struct file *)self;
	struct call *call = file_call(file, SYS_statx, status_finish);

	return call ? status_post(call, file->fd, AT_EMPTY_PATH) : NULL;
}

void file_close_plainly(int fd)
{
	flexsc_fd_forget(fd);
	close(fd);
}

/* If the loop's destruction cancels the close before it starts, close here. */
static int file_close_end(struct call *call, int64_t ret)
{
	if (ret == -ECANCELED)
		file_close_plainly((int)call->args[0]);
	else if (ret < 0)
		return call_raise(call, (int)-ret);
	return call_finish_none(call, 0);
}

/*
 * Cancel the calls of a pipe or a terminal, which may wait forever. Calls of a
 * regular file end by themselves. Cancelling them would drop posted writes.
 */
static void file_end_calls(struct file *file)
{
	struct flexsc_loop *flexsc = file->loop->flexsc;

	if (file->regular)
		return;
	flexsc_loop_submit(flexsc);
	flexsc_loop_cancel_fd(flexsc, file->fd);
}

/*
 * Post the close, or let the file's last call post it, because the close must
 * not overtake a call.
 */
static PyObject *file_close_post(struct file *file, struct call *call)
{
	if (!file->calls)
		return call_post(call);
	if (loop_check(file->loop))
		return drop(call);
	file_end_calls(file);
	file->closing = call;
	return call_wait(call);
}

static PyObject *file_close(PyObject *self, PyObject *unused)
{
	struct file *file = (struct file *)self;
	struct call *call;
	PyObject *posted;

	if (file->fd < 0)
		return future_of(file->loop, Py_None);
	call = call_new(&call_type, file->loop, SYS_close, file_close_end);
	if (!call)
		return NULL;
	call->args[0] = (uint64_t)file->fd;
	/*
	 * Even if the program cancels this call, the close must happen: no
	 * other call could close the descriptor.
	 */
	call->stays = true;
	posted = file_close_post(file, call);
	if (posted || file->closing) {
		file->fd = -1;
		file->position = -1;
	}
	return posted;
}

static PyObject *file_enter(PyObject *self, PyObject *unused)
{
	return future_of(((struct file *)self)->loop, self);
}

static PyObject *file_exit(PyObject *self, PyObject *args)
{
	return file_close(self, NULL);
}

static PyObject *file_fileno(PyObject *self, PyObject *unused)
{
	struct file *file = (struct file *)self;

	if (file->fd >= 0)
		return PyLong_FromLong(file->fd);
	return file_raise_closed();
}

static PyObject *file_closed(PyObject *self, void *unused)
{
	return PyBool_FromLong(((struct file *)self)->fd < 0);
}

static PyObject *file_name(PyObject *self, void *unused)
{
	PyObject *name = ((struct file *)self)->name;

	Py_INCREF(name);
	return name;
}

static PyObject *file_repr(PyObject *self)
{
	struct file *file = (struct file *)self;

	return PyUnicode_FromFormat("<flexsc.AsyncFile %R%s>", file->name,
				    file->fd < 0 ? " closed" : "");
}

static void file_finalize(PyObject *self)
{
	struct file *file = (struct file *)self;
	PyObject *type, *value, *trace;
	int fd = file->fd;

	if (fd < 0)
		return;
	PyErr_Fetch(&type, &value, &trace);
	if (PyErr_ResourceWarning(self, 1, "unclosed file %R", self))
		PyErr_WriteUnraisable(self);
	PyErr_Restore(type, value, trace);
	file->fd = -1;
	file_close_plainly(fd);
}

static void file_dealloc(PyObject *self)
{
	struct file *file = (struct file *)self;

	if (PyObject_CallFinalizerFromDealloc(self))
		return;
	PyObject_GC_UnTrack(self);
	Py_CLEAR(file->loop);
	Py_CLEAR(file->name);
	PyObject_GC_Del(self);
}

static int file_traverse(PyObject *self, visitproc visit, void *arg)
{
	Py_VISIT(((struct file *)self)->loop);
	return 0;
}

static PyMethodDef file_methods[] = {
	{ "read", METHOD(file_read), METH_FASTCALL,
	  "read($self, size=-1, /)\n"
	  "--\n"
	  "\n"
	  "Read up to size bytes by one call; without a size, read until the end." },
	{ "readinto", file_readinto, METH_O,
	  "readinto($self, buffer, /)\n"
	  "--\n"
	  "\n"
	  "Read into buffer; returns the number of bytes." },
	{ "pread", file_pread, METH_VARARGS,
	  "pread($self, size, offset, /)\n"
	  "--\n"
	  "\n"
	  "Read up to size bytes from offset." },
	{ "write", file_write, METH_O,
	  "write($self, data, /)\n"
	  "--\n"
	  "\n"
	  "Write all of data; returns the number of bytes." },
	{ "pwrite", file_pwrite, METH_VARARGS,
	  "pwrite($self, data, offset, /)\n--\n\nWrite all of data at offset." },
	{ "seek", file_seek, METH_VARARGS,
	  "seek($self, offset, whence=0, /)\n"
	  "--\n"
	  "\n"
	  "Set the position; returns the new one." },
	{ "tell", file_tell, METH_NOARGS, "tell($self)\n--\n\nReturn the "
					  "position." },
	{ "truncate", file_truncate, METH_O,
	  "truncate($self, size, /)\n"
	  "--\n"
	  "\n"
	  "Truncate or extend the file to size bytes." },
	{ "fsync", file_fsync, METH_NOARGS,
	  "fsync($self)\n"
	  "--\n"
	  "\n"
	  "Write data and attributes to the disk." },
	{ "fdatasync", file_fdatasync, METH_NOARGS,
	  "fdatasync($self)\n"
	  "--\n"
	  "\n"
	  "Write data to the disk." },
	{ "stat", file_stat, METH_NOARGS, "stat($self)\n--\n\nLike os.fstat()." },
	{ "close", file_close, METH_NOARGS,
	  "close($self)\n"
	  "--\n"
	  "\n"
	  "Close the file, even if the call is cancelled." },
	{ "fileno", file_fileno, METH_NOARGS,
	  "fileno($self)\n"
	  "--\n"
	  "\n"
	  "Return the descriptor." },
	{ "__aenter__", file_enter, METH_NOARGS, NULL },
	{ "__aexit__", file_exit, METH_VARARGS, NULL },
	{ NULL }
};

static PyGetSetDef file_members[] = {
	{ "closed", file_closed, NULL, "Is it closed?" },
	{ "name", file_name, NULL, "The path with which it was opened." },
	{ NULL }
};

PyTypeObject file_type = {
	PyVarObject_HEAD_INIT(NULL, 0)
	.tp_name = "flexsc.AsyncFile",
	.tp_doc = "An open file.",
	.tp_basicsize = sizeof(struct file),
	.tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC,
	.tp_dealloc = file_dealloc,
	.tp_traverse = file_traverse,
	.tp_finalize = file_finalize,
	.tp_repr = file_repr,
	.tp_methods = file_methods,
	.tp_getset = file_members,
};

/*
 * Determine the file's kind, without a request to a server, and pass the kind
 * to the library, which otherwise would query the kernel.
 */
static void file_look(struct file *file, uint64_t flags)
{
	int how = AT_EMPTY_PATH | AT_STATX_DONT_SYNC;
	struct statx st;

	file->busy = false;
	file->regular = false;
	file->appends = false;
	file->position = -1;
	if (statx(file->fd, "", how, STATX_TYPE, &st) || !S_ISREG(st.stx_mode))
		return;
	file->regular = true;
	flexsc_fd_hint(file->fd, FLEXSC_FD_REGULAR | FLEXSC_FD_BLOCKING);
	if (!(flags & O_APPEND))
		file->position = 0;
	else if ((flags & O_ACCMODE) == O_WRONLY)
		file->appends = true;
}

PyObject *file_new(struct loop *loop, PyObject *name, int fd, uint64_t flags)
{
	struct file *file = PyObject_GC_New(struct file, &file_type);

	if (!file)
		return NULL;
	Py_INCREF(loop);
	Py_INCREF(name);
	file->loop = loop;
	file->name = name;
	file->fd = fd;
	file->calls = 0;
	file->closing = NULL;
	file_look(file, flags);
	PyObject_GC_Track(file);
	return (PyObject *)file;
}
