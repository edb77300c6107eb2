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
 * and returns at once. The loop hands what was posted to an engine in batches, and runs a
 * callback for each call that is complete. For programs with one loop per thread,
 * <flexsc/default.h> has the same functions without "loop".
 *
 *
 * Errors
 *
 * Functions return 0 or a useful number, or a negative errno code. Nothing
 * here sets errno, prints, or ends the process. An output argument is left
 * alone on failure. A system call's own failure is no failure of the function
 * that posted it; it arrives as cb->ret.
 *
 * A function that needs a loop returns -ENXIO if the loop is NULL.
 *
 *
 * Threads
 *
 * A loop belongs to the thread that created it.
 *
 *	function				who may call it
 *	flexsc_loop_wake()			any thread, any signal handler
 *	flexsc_loop_stop()			any thread, any signal handler
 *	flexsc_loop_stats(), _engine(), _why()	any thread
 *	flexsc_loop_create()			any thread; it becomes the owner
 *	flexsc_engine_probe(), flexsc_version()	any thread
 *	flexsc_fd_forget(), flexsc_fd_hint()	any thread
 *	everything else				the owner
 *
 * "Any thread" may do so until the owner starts to destroy the loop. A wake-up
 * or a stop by which the owner comes to destroy it is in time.
 * Different loops share nothing and need no locks.
 *
 *
 * Memory
 *
 * From posting until its callback starts, or until it is harvested, a cb and
 * every buffer its arguments point to belong to the library: leave them where
 * they are, don't write to them, don't read what the call is to fill, don't
 * post the cb again (but as the timer or wake-up that it is). That is so for
 * path names and structures as well as for data.
 *
 * From then on all of it is the caller's again; the callback may post the same
 * cb, or free it. (The cb of a multishot call is the library's until its last
 * completion: <flexsc/multishot.h>.) With cb == NULL there is no callback to tell the end: give
 * such calls only arguments without pointers, or memory that outlives the loop.
 * flexsc_stats.failed_unseen counts those that failed.
 *
 *
 * fork and exec
 *
 * A child made by fork() has no loop: the parent's is not usable there, its
 * functions answer -ESTALE and flexsc_loop_destroy() merely releases memory.
 * The child makes its own. The parent notices nothing. A
 * child made by vfork() or a bare clone() may only exec. Every descriptor of
 * the library is close-on-exec.
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
