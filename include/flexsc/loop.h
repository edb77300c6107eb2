/* SPDX-License-Identifier: MIT */
/*
 * The loop: takes what was posted to an engine in batches and runs callbacks
 * (ATC 2011, section 4). Lifetimes and threads: <flexsc/flexsc.h>.
 *
 * Errors in common, where nothing else is said: -ENXIO (no loop), -EINVAL (bad
 * argument), -ESTALE (the loop belongs to the parent process).
 */
#ifndef FLEXSC_LOOP_H
#define FLEXSC_LOOP_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#pragma GCC visibility push(default)

struct flexsc_loop;
struct flexsc_cb;

/*
 * How a loop is made. Zero the structure, set size, then what you care about:
 * zero means the default everywhere. Start from FLEXSC_OPTIONS_INIT.
 */
struct flexsc_options {
	size_t size;		/* sizeof(struct flexsc_options) */
	/*
	 * "uring", "threads", "kmod", "sync", or NULL: what the environment
	 * variable FLEXSC_ENGINE names (not in set-user-ID programs), otherwise
	 * the first of "uring" and "threads" that works. An empty name is as
	 * good as none.
	 */
	const char *engine;
	/* Where calls are executed, as "2,4-6"; NULL: where the owner may run. */
	const char *kernel_cores;
	/* Calls executing at once; default 1048576, at most 67108864. */
	uint32_t max_entries;
	uint32_t max_threads;	/* syscall threads; default 64, at most 4096 */
	/*
	 * The owner and whoever executes calls poll for work this many
	 * microseconds before they sleep: for those with cores of their own.
	 * With kernel_cores and "uring", a kernel thread polls for calls on the
	 * first of these cores, at least a millisecond each time: core
	 * specialisation (OSDI 2010, section 3.6).
	 */
	uint32_t poll_us;
	uint32_t flags;		/* none is defined: 0 */
};

/* All fields by their order: C++ before 20 has no names here. */
#define FLEXSC_OPTIONS_INIT \
	{ sizeof(struct flexsc_options), NULL, NULL, 0, 0, 0, 0 }

/* No time limit, where nanoseconds are asked for. */
#define FLEXSC_FOREVER	UINT64_MAX

/*
 * Make a loop, owned by the calling thread (OSDI 2010, section 3.4:
 * flexsc_register). options may be NULL; it and what it points to are the
 * caller's again when this returns. *loop is valid until it is destroyed.
 *
 *	-EINVAL		unknown engine or option, a core that can't be used
 *	-EOPNOTSUPP	the engine asked for doesn't work here; see
 *			flexsc_engine_probe() for the reason
 *	-ENOMEM, -EMFILE, -ENFILE, -EAGAIN	out of that resource
 */
int flexsc_loop_create(struct flexsc_loop **loop,
		       const struct flexsc_options *options);

/*
 * Cancel what is pending, wait until the kernel has let go of every buffer,
 * run the callbacks, free everything. Posting from those callbacks is refused
 * with -ESHUTDOWN. NULL is fine. -EBUSY inside one of the loop's callbacks:
 * stop the loop instead and destroy it after. -EPERM from a thread that isn't
 * the owner. -EIO: the engine has failed, and calls stay behind in the kernel (see
 * flexsc_loop_run()); everything else is freed.
 */
int flexsc_loop_destroy(struct flexsc_loop *loop);

/*
 * Run callbacks until flexsc_loop_stop() or until nothing is pending (ATC
 * 2011, section 4), but for flexsc_loop_ref(). Returns 0; -EDEADLK inside a
 * callback; or what the engine failed with.
 *
 * The engine "uring" fails if the program later forbids itself io_uring by a seccomp
 * filter. The loop then goes on with "threads", and flexsc_loop_engine() and
 * flexsc_loop_why() change:
 *
 *	Threads make the calls that the kernel hasn't taken yet.
 *	A call that the kernel has taken is cancelled. It ends with -ERESTART: it had
 *	no effect, so post it again.
 *	If the filter forbids io_uring_register(), too, calls that the kernel has taken
 *	stay pending. The kernel may still use their memory, so it must stay valid
 *	until the owner's thread ends. One wait, dispatch or run returns the error, and
 *	so does each that has nothing else to wait for.
 *	To receive by multishot calls, make new buffers (flexsc_buffers_create()).
 */
int flexsc_loop_run(struct flexsc_loop *loop);

/*
 * Make flexsc_loop_run() return after the callback it is in, or not to start:
 * a stop before the run is not lost. Several before it end that run alone.
 */
int flexsc_loop_stop(struct flexsc_loop *loop);

/*
 * What flexsc_loop_run() waits for is counted: calls, timers and signals that
 * are pending. ref counts one more, for a loop that is to go on until another
 * thread wakes it; unref counts one fewer, so that a pending signal, say,
 * doesn't keep the loop. Each lasts until the other one undoes it, through any
 * number of runs, and a sum below one ends the run whatever is pending. So undo
 * an unref where the signal's callback doesn't post it again.
 *
 * Callbacks that are due at once run all the same. wait, dispatch and destroy
 * don't look at this count. 0, or as above.
 */
int flexsc_loop_ref(struct flexsc_loop *loop);
int flexsc_loop_unref(struct flexsc_loop *loop);

/*
 * The parts of flexsc_loop_run(), for programs with a loop of their own. Each
 * starts what was posted. dispatch then runs the callbacks of what is complete
 * by now. It returns how many calls, timers, signals and wake-ups that were,
 * those of the library's own for multishot calls among them.
 *
 * wait sleeps until at least one call, timer, signal or wake-up is ready for
 * dispatch, or ns nanoseconds have passed (OSDI 2010, section 3.2:
 * flexsc_wait); it returns 1 if something is ready, else 0.
 *
 * Inside a callback dispatch and wait return -EDEADLK. dispatch and wait may
 * return what the engine failed with, too. All of these, and run, harvest and prepare,
 * return -EPERM from a thread that isn't the owner. Functions that post don't check that.
 */
int flexsc_loop_submit(struct flexsc_loop *loop);
int flexsc_loop_dispatch(struct flexsc_loop *loop);
int flexsc_loop_wait(struct flexsc_loop *loop, uint64_t ns);

/*
 * dispatch without callbacks, for languages and loops that have their own way
 * to go on: the next n cbs at most that are complete by now are put into done,
 * the oldest calls first, with ret and flags set as at the start of a
 * callback, which isn't run. Timers, signals and wake-ups come as cbs like
 * calls; what was posted without a cb is consumed and put nowhere. The ret of a
 * cb that was woken means nothing, because it may have been woken again.
 *
 * Returns how many there are: 0 if nothing is complete. To sleep until
 * something is: flexsc_loop_wait(), or a descriptor (below). -EINVAL also if n
 * is above INT_MAX; -EDEADLK inside a callback; or what the engine failed with.
 * A program may both harvest and dispatch; each cb comes out once.
 * flexsc_loop_destroy() runs the callbacks of what wasn't harvested before.
 */
int flexsc_loop_harvest(struct flexsc_loop *loop, struct flexsc_cb **done,
			unsigned int n);

/*
 * A loop inside another one, which epoll, libuv, GLib or asyncio runs. The
 * outer loop watches fd for POLLIN and calls, on the owner's thread,
 *
 *	flexsc_loop_prepare(loop, &ns)	each time before it sleeps
 *	poll(...)			for ns nanoseconds at most
 *	flexsc_loop_dispatch(loop)	when fd is readable or ns have passed
 *
 * fd returns a descriptor that stays readable while a loop that was prepared
 * has something to dispatch. It is the loop's: don't read, write or close it;
 * each call returns the same one, which lasts until the loop is destroyed. Like
 * any such descriptor it may say so once too often: dispatch then returns 0.
 * -EMFILE, -ENFILE, -ENOMEM, or what the engine failed with.
 *
 * prepare starts what was posted, and from then on calls, signals and wake-ups
 * from any thread make fd readable. *ns is how long the outer loop may sleep
 * because of timers: 0 not at all, then fd is readable already; FLEXSC_FOREVER
 * without limit. It holds until something is posted, or cancelled: prepare
 * again. -EINVAL: ns is NULL, or fd was never called; -EDEADLK inside a
 * callback. flexsc_loop_stop() doesn't concern a loop that isn't run.
 *
 * prepare costs a mode switch if something was posted, and one if there is
 * nothing to dispatch. "kmod" leaves its calls to syscall threads from the
 * first flexsc_loop_fd() on.
 */
int flexsc_loop_fd(struct flexsc_loop *loop);
int flexsc_loop_prepare(struct flexsc_loop *loop, uint64_t *ns);

/*
 * Timers, signals and wake-ups from other threads complete a cb, as calls do:
 * posted once, completed once, and then free to be posted again. They take no
 * entry. Only callback and arg need initialising. flexsc_loop_cancel() ends timers
 * and signals with -ECANCELED.
 *
 * Errors: those of flexsc_loop_call() in <flexsc/call.h>.
 */

/*
 * Complete cb with ret 0 after ns nanoseconds of CLOCK_MONOTONIC: never early,
 * late by at most 66 microseconds plus what the loop is busy with. Arming,
 * cancelling and firing cost the same for one timer and for a million.
 *
 * A pending timer that is posted again is replaced: it completes once, at the
 * new time. It is pending until its callback starts, or until it is cancelled;
 * a cancelled one has to run its callback before it may be posted again.
 */
int flexsc_loop_timer(struct flexsc_loop *loop, struct flexsc_cb *cb,
		      uint64_t ns);

/*
 * Complete cb with ret signo when the process or a thread gets that signal. The
 * first cb for a signal installs a handler (SA_RESTART) that stays until the
 * last loop that asked for it is destroyed.
 *
 * Meanwhile no signal is lost: one that arrives between two posts completes the
 * second at once. Several loops may ask for one signal; each is told. Like
 * pending signals, ones that arrive faster than they're handled merge. -EINVAL:
 * the signal can't be caught.
 */
int flexsc_loop_signal(struct flexsc_loop *loop, struct flexsc_cb *cb,
		       int signo);

/*
 * From any thread, and from signal handlers: run cb's callback on the loop's
 * own thread, with ret 0. Wakes the loop if it sleeps. cb == NULL only wakes.
 * Can't be cancelled.
 *
 * A cb may be woken at any time, also while its callback runs or when it has
 * been woken already: one callback then answers several wake-ups. After each
 * wake-up a callback begins, and what the caller wrote before is visible to it.
 * So such a cb is for the wake-ups of one loop only, and lives until the last
 * one's callback; that may free it.
 *
 * -ENXIO (no loop), -ESTALE, -ESHUTDOWN (from callbacks of a loop that is
 * being destroyed); it never fails otherwise.
 */
int flexsc_loop_wake(struct flexsc_loop *loop, struct flexsc_cb *cb);

/*
 * The engine's name. And why not a better one, or why this one hasn't its way
 * now ("kmod", where something watches system calls): one line, or NULL. Both
 * strings are the loop's: they last as long, and the second may change whenever
 * the loop runs. NULL for a NULL loop.
 */
const char *flexsc_loop_engine(const struct flexsc_loop *loop);
const char *flexsc_loop_why(const struct flexsc_loop *loop);

/*
 * Does this engine work here? Tries, instead of looking at versions. 0, and in
 * why (which may be NULL) a remark as flexsc_loop_why() has it, or an empty
 * line; -EOPNOTSUPP with the real reason as one line in why; -EINVAL for a name
 * that is no engine; else as flexsc_loop_create(). size is why's, in bytes; a
 * longer line is cut.
 */
int flexsc_engine_probe(const char *engine, char *why, size_t size);

/*
 * All engines' names, which last as long as the process; NULL past the last.
 * "uring" and "threads" come first, in the order in which they are tried;
 * "kmod" and "sync" have to be asked for.
 */
const char *flexsc_engine_name(unsigned int i);

/*
 * The library's FLEXSC_VERSION (<flexsc/version.h>): may differ from what the
 * program was compiled for. Any thread.
 */
unsigned int flexsc_version(void);

#pragma GCC visibility pop

#ifdef __cplusplus
}
#endif

#endif /* FLEXSC_LOOP_H */
