/* SPDX-License-Identifier: MIT */
/*
 * libflexsc: asynchronous system calls without mode switches.
 *
 *	#include <flexsc/flexsc.h>
 *
 *	flexsc_loop_create(&loop, NULL);
 *	flexsc_loop_openat(loop, &cb, AT_FDCWD, "file", O_RDONLY, 0);
 *	flexsc_loop_run(loop);			runs cb.callback(&cb)
 *
 * Every Linux system call has a function flexsc_loop_NAME() that posts it into memory
 * and returns at once. The loop hands posted calls to an engine in batches, and runs a
 * callback for each complete call. For programs with one loop per thread,
 * <flexsc/default.h> has the same functions without "loop".
 *
 * See flexsc(3) for errors, threads, fork and exec, and flexsc-call(3) for the
 * ownership of memory. Functions return 0 or a useful number, or -errno. A system
 * call's own error arrives in cb->ret.
 */
#ifndef FLEXSC_FLEXSC_H
#define FLEXSC_FLEXSC_H

#include <flexsc/call.h>
#include <flexsc/fd.h>
#include <flexsc/loop.h>
#include <flexsc/multishot.h>
#include <flexsc/socket.h>
#include <flexsc/stats.h>
#include <flexsc/syscalls.h>
#include <flexsc/version.h>
#include <flexsc/work.h>

#endif /* FLEXSC_FLEXSC_H */
