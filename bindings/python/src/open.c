/* SPDX-License-Identifier: MIT */
#include "open.h"

#include <fcntl.h>
#include <sys/syscall.h>

#include "file.h"
#include "future.h"
#include "names.h"

/*
 * Close a descriptor that the program won't get, because the call was
 * cancelled.
 */
static void open_undo(struct call *call, int fd)
{
	struct flexsc_loop *flexsc = call->loop->flexsc;

	if (!flexsc || flexsc__call3(flexsc, NULL, SYS_close, (uint64_t)fd,
					 0, 0))
		file_close_plainly(fd);
	call->loop->posted = true;
}

static int open_end(struct call *call, int64_t ret)
{
	int fd = (int)ret;

	if (!call->cancelled)
		call->result = file_new(call->loop, call->name[0], fd,
					call->args[2]);
	if (call->result)
		return 0;
	open_undo(call, fd);
	return -1;
}

/* The open(2) flags of a mode such as "rb+"; -1: an exception is set. */
static int open_flags(const char *mode)
{
	static const char letters[] = "rwax";
	static const int flags_of[] = { 0, O_CREAT | O_TRUNC, O_CREAT | O_APPEND,
					O_CREAT | O_EXCL };
	int flags = 0, plus = 0, binary = 0, ways = 0;

	for (const char *c = mode; *c; c++) {
		const char *way = strchr(letters, *c);

		plus += *c == '+';
		binary += *c == 'b';
		ways += way ? 1 : *c == '+' || *c == 'b' ? 0 : 2;
		flags |= way ? flags_of[way - letters] : 0;
	}
	if (ways != 1 || plus > 1 || binary != 1) {
		PyErr_Format(PyExc_ValueError,
			     "mode must be one of rb, wb, ab, xb, with or without +: '%s'",
			     mode);
		return -1;
	}
	flags |= plus ? O_RDWR : flags ? O_WRONLY : O_RDONLY;
	return flags | O_CLOEXEC;
}

PyObject *open_file(PyObject *module, PyObject *args, PyObject *names)
{
	static char *known[] = { "path", "mode", "permissions", NULL };
	unsigned int permissions = 0666;
	const char *mode = "rb";
	PyObject *path;
	struct call *call;
	int flags;

	if (!PyArg_ParseTupleAndKeywords(args, names, "O|sI:open", known,
					 &path, &mode, &permissions))
		return NULL;
	flags = open_flags(mode);
	if (flags < 0)
		return NULL;
	call = names_call(&opening_type, path, SYS_openat, open_end);
	if (!call)
		return NULL;
	call->args[2] = (uint64_t)flags;
	call->args[3] = permissions;
	return call_post(call);
}
