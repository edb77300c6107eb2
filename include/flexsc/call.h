/* SPDX-License-Identifier: MIT */
/*
 * Posting system calls, and what can be done with a posted one.
 *
 * The typed functions are in <flexsc/syscalls.h>; here is what they stand on.
 * Lifetimes, errors and threads: <flexsc/flexsc.h>.
 */
#ifndef FLEXSC_CALL_H
#define FLEXSC_CALL_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#pragma GCC visibility push(default)

struct flexsc_loop;

/*
 * A call's event control block (ATC 2011, section 4; the talk, "Main API").
 * Set callback and arg before posting; nothing else needs initialising.
 * The callback runs exactly once per post (but see <flexsc/multishot.h>), on
 * the loop's thread, never from inside the posting function.
 */
struct flexsc_cb {
	void (*callback)(struct flexsc_cb *cb);	/* NULL: only set ret */
	void *arg;		/* the caller's own */
	int64_t ret;		/* the kernel's: result or -errno */
	uint64_t handle;	/* the library's */
	uint32_t flags;		/* of a completion: FLEXSC_CB_*, <flexsc/multishot.h> */
	uint32_t buffer;	/* the library's: flexsc_buffers_data() */
	uint64_t reserved;	/* the library's */
};

/*
 * Post system call nr with six arguments; those it doesn't take are ignored.
 * cb == NULL is fire and forget. Costs a few stores, and never a mode switch.
 *
 *	0		posted; the callback will run
 *	-EOPNOTSUPP	refused: the call can't be asynchronous by nature
 *			(flexsc-syscalls(7) lists them with the reasons)
 *	-ENOSYS		no such call in the library's table
 *	-ENXIO		loop is NULL
 *	-EBUSY		cb is still pending (found in a checking build only)
 *	-ESHUTDOWN	the loop is being destroyed
 *	-ESTALE		the loop belongs to the parent process
 *	-ENOMEM		no memory to remember the call
 *
 * It never fails for lack of entries: pages grow up to the loop's limit, then
 * calls wait and start in the order posted (section 7).
 */
int flexsc_loop_call(struct flexsc_loop *loop, struct flexsc_cb *cb,
		     unsigned int nr, uint64_t a0, uint64_t a1, uint64_t a2,
		     uint64_t a3, uint64_t a4, uint64_t a5);

/*
 * For the typed functions alone: the same with three arguments, the others 0.
 */
int flexsc__call3(struct flexsc_loop *loop, struct flexsc_cb *cb,
		      unsigned int nr, uint64_t a0, uint64_t a1, uint64_t a2);

/*
 * Ask that a pending call, timer or signal ends early (section 4.2). The
 * callback runs all the same, once, from the loop and not from here, with
 *
 *	the true result	the call completed before the request reached it
 *	-EINTR		it was interrupted while it executed, as by a signal
 *	-ECANCELED	it never started or only waited: it had no effect
 *
 * The library uses none of these three for anything else. A call that needs a thread
 * ends with -EAGAIN if the system allows no more threads. If the loop's engine fails, a
 * call may end with -ERESTART: it had no effect, so post it again (<flexsc/loop.h>).
 *
 * Returns 0 if the request was made, -ENOENT if cb isn't pending, which is
 * harmless (cb itself must still be readable memory), -ENXIO (no loop), -EINVAL
 * (cb is NULL) or -ESTALE. Costs the same however many calls are pending. A call
 * that no signal can interrupt (a read from a disk) completes in its own time.
 */
int flexsc_loop_cancel(struct flexsc_loop *loop, struct flexsc_cb *cb);

/*
 * Cancel every pending call that names descriptor fd in an argument of
 * descriptor type; returns how many. For the moment before close(): a pending
 * call keeps its file open, so close() alone doesn't end it. Costs a look at
 * each pending call. -ENXIO: no loop; -ESTALE.
 */
int flexsc_loop_cancel_fd(struct flexsc_loop *loop, int fd);

/*
 * Cancel cb's call unless it completes within ns nanoseconds from now: the read
 * timeout of section 4.2. A call that was ended by its deadline has ret ==
 * -ETIME. Set it after posting; setting it again replaces it, and 0 removes it.
 * It is late by at most 66 microseconds, or by 10 milliseconds if it is a
 * second or more, besides what the loop is busy with. -ENOENT: cb isn't a
 * pending call; -ENXIO (no loop), -EINVAL (cb is NULL), -ESTALE; -ENOMEM:
 * there is no deadline. Costs no mode switch.
 */
int flexsc_loop_deadline(struct flexsc_loop *loop, struct flexsc_cb *cb,
			 uint64_t ns);

/*
 * Order. Two calls posted one after the other may run in any order, or at the
 * same time. flexsc_loop_call_after() posts a call that starts when "before" has
 * completed with ret >= 0, and otherwise completes with -ECANCELED without having run.
 * before is the cb of any pending call; the callback of before runs first.
 *
 *	FLEXSC_CHAIN_ARG(n)	the result of before replaces argument n (0 to 5)
 *				(section 8.3's looped multi-call)
 *	FLEXSC_CHAIN_ALWAYS	run whatever the result was
 *	FLEXSC_CHAIN_FULL	run only if before transferred all that it was asked
 *				to: a short read or write counts as a failure (not with
 *				ALWAYS). Only calls that transfer bytes can be short:
 *				flexsc-call(3) lists them
 *
 * A deadline runs from when it is set, also while the call waits for before. The call
 * then ends with -ETIME without having run, and its own successor with -ECANCELED.
 *
 * Errors of flexsc_loop_call(), and -ENOENT: before isn't a pending call;
 * -EBUSY: another call waits for it already; -EINVAL: before or args is
 * NULL, before is cb, or unknown flags.
 */
#define FLEXSC_CHAIN_ARG(n)	((unsigned int)(n) + 1)
#define FLEXSC_CHAIN_ALWAYS	0x10U
#define FLEXSC_CHAIN_FULL	0x20U

int flexsc_loop_call_after(struct flexsc_loop *loop, struct flexsc_cb *cb,
			   struct flexsc_cb *before, unsigned int chain,
			   unsigned int nr, const uint64_t args[6]);

#pragma GCC visibility pop

#ifdef __cplusplus
}
#endif

#endif /* FLEXSC_CALL_H */
