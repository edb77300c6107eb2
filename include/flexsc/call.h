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
	void *arg;				/* the caller's own */
	int64_t ret;				/* the kernel's: result or -errno */
	uint64_t handle;			/* the library's, while posted */
};

/*
 * When a cb has completed, from the start of its callback on or harvested,
 * handle holds what <flexsc/multishot.h> reads from it, and is 0 after any other
 * call. A program that meets bits it doesn't know ignores them.
 */

/*
 * Post system call nr with six arguments; those it doesn't take are ignored.
 * cb == NULL is fire and forget. Costs a few stores, and never a mode switch.
 *
 *	0		posted; the callback will run
 *	-EOPNOTSUPP	refused: the call can't be asynchronous by nature
 *			(flexsc-syscalls(7) lists them with the reasons)
 *	-ENOSYS		no such call in the library's table
 *	-ENXIO		loop is NULL: the thread has no default loop, perhaps
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
 * The same of a call with three arguments at most, which cost less to pass; of
 * a longer call the others are 0. The typed functions choose.
 */
int flexsc_loop_call3(struct flexsc_loop *loop, struct flexsc_cb *cb,
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

/* Flags of flexsc_loop_chain() and flexsc_loop_call_after(). */
#define FLEXSC_CHAIN_ARG(n)	((unsigned int)(n) + 1)
#define FLEXSC_CHAIN_ALWAYS	0x10U
#define FLEXSC_CHAIN_FULL	0x20U

/*
 * Order. Two calls posted one after the other may run in any order, or at the
 * same time. After flexsc_loop_chain(), the next call posted waits for the
 * one posted last: it starts when that one has completed with ret >= 0, and
 * otherwise completes with -ECANCELED without having run.
 *
 *	FLEXSC_CHAIN_ARG(n)	argument n (0 to 5) of the next call is
 *				replaced by the result of the one before it
 *				(section 8.3's looped multi-call)
 *	FLEXSC_CHAIN_ALWAYS	the next call runs whatever the result was
 *	FLEXSC_CHAIN_FULL	the next call runs only if the one before it
 *				transferred all that it was asked to: a short
 *				read or write ends the chain (not with ALWAYS)
 *
 * FULL is about bytes: of read, write, recv and send with their kin (p, v, v2,
 * msg, from and to), sendfile, splice, vmsplice, tee and copy_file_range. After
 * other calls it says nothing.
 *
 * A call that is refused leaves the chain open: the next call that is accepted is the
 * chained one. Timers, signals and wake-ups aren't calls, and leave it open, too.
 *
 * Chains may be longer than two. The first call's callback runs before the
 * second call starts. A chained call's deadline runs from when it is set, also
 * while the call waits for the one before it; it then ends with -ETIME without
 * having run, and what is chained to it with -ECANCELED.
 *
 * -EINVAL: unknown flags; -ENXIO: no loop; -ESRCH: nothing was posted that is
 * still pending; -ESHUTDOWN, -ESTALE.
 */
int flexsc_loop_chain(struct flexsc_loop *loop, unsigned int flags);

/*
 * Post system call nr with these six arguments, chained to "before", the cb of
 * any pending call, in a chain of its own or not; flags as above. Doesn't see
 * an open flexsc_loop_chain(), and leaves it open.
 *
 * Errors of flexsc_loop_call(), and -ENOENT: before isn't a pending call;
 * -EBUSY: another call is chained to it already; -EINVAL: before or args is
 * NULL, before is cb, or unknown flags. If this function chains a call to the one that
 * an open flexsc_loop_chain() is about, the next post is refused with -EBUSY while that
 * call is pending.
 */
int flexsc_loop_call_after(struct flexsc_loop *loop, struct flexsc_cb *cb,
			   struct flexsc_cb *before, unsigned int flags,
			   unsigned int nr, const uint64_t args[6]);

struct flexsc_loop *flexsc_loop_default(void);

/* Functions of the calling thread's default loop. */

static inline int flexsc_cancel(struct flexsc_cb *cb)
{
	return flexsc_loop_cancel(flexsc_loop_default(), cb);
}

static inline int flexsc_cancel_fd(int fd)
{
	return flexsc_loop_cancel_fd(flexsc_loop_default(), fd);
}

static inline int flexsc_deadline(struct flexsc_cb *cb, uint64_t ns)
{
	return flexsc_loop_deadline(flexsc_loop_default(), cb, ns);
}

static inline int flexsc_chain(unsigned int flags)
{
	return flexsc_loop_chain(flexsc_loop_default(), flags);
}

static inline int flexsc_call_after(struct flexsc_cb *cb,
				    struct flexsc_cb *before, unsigned int flags,
				    unsigned int nr, const uint64_t args[6])
{
	return flexsc_loop_call_after(flexsc_loop_default(), cb, before, flags,
				      nr, args);
}

#pragma GCC visibility pop

#ifdef __cplusplus
}
#endif

#endif /* FLEXSC_CALL_H */
