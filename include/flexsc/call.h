/* SPDX-License-Identifier: MIT */
/*
 * Posts system calls, and cancels, limits and chains pending ones: flexsc-call(3). The
 * typed functions of <flexsc/syscalls.h> are built on this.
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
 * A call's callback and result (the event control block of ATC 2011, section 4). Set
 * callback and arg before posting. The callback runs once per post (except as in
 * <flexsc/multishot.h>), on the loop's thread, and never inside the posting function.
 */
struct flexsc_cb {
	void (*callback)(struct flexsc_cb *cb);	/* NULL: the loop only sets ret */
	void *arg;		/* for the caller */
	int64_t ret;		/* the kernel's result or -errno */
	uint64_t handle;	/* for the library */
	uint32_t flags;		/* of a completed cb: FLEXSC_CB_*,
				 * <flexsc/multishot.h> */
	uint32_t buffer;	/* for the library: flexsc_buffers_data() */
	uint64_t reserved;	/* for the library */
};

/*
 * Post system call nr with six arguments; those that the call doesn't have are ignored.
 * cb == NULL: the result is discarded.
 */
int flexsc_loop_call(struct flexsc_loop *loop, struct flexsc_cb *cb,
		     unsigned int nr, uint64_t a0, uint64_t a1, uint64_t a2,
		     uint64_t a3, uint64_t a4, uint64_t a5);

/* The same with three arguments, the others being 0. Only for the typed functions. */
int flexsc__call3(struct flexsc_loop *loop, struct flexsc_cb *cb,
		      unsigned int nr, uint64_t a0, uint64_t a1, uint64_t a2);

/*
 * Request the early end of a pending call, timer or signal. The callback still runs,
 * with the real result, -EINTR (interrupted while it executed) or -ECANCELED (no
 * effect).
 */
int flexsc_loop_cancel(struct flexsc_loop *loop, struct flexsc_cb *cb);

/* Cancel all pending calls that name descriptor fd. Returns their number. */
int flexsc_loop_cancel_fd(struct flexsc_loop *loop, int fd);

/*
 * Limit the time of cb's call to ns nanoseconds: after that, the call ends with -ETIME.
 * 0: no limit.
 */
int flexsc_loop_deadline(struct flexsc_loop *loop, struct flexsc_cb *cb,
			 uint64_t ns);

/*
 * Post a call that starts when the call of "before" has completed with ret >= 0, and
 * otherwise completes with -ECANCELED. Flags in chain change that: FLEXSC_CHAIN_ARG(n)
 * stores the result of "before" in argument n (OSDI 2010, section 6.1: a
 * looped multi-call), FLEXSC_CHAIN_ALWAYS starts the call after any result, and
 * FLEXSC_CHAIN_FULL starts it only if all bytes were transferred. FLEXSC_CHAIN_SAME, in
 * addition to FLEXSC_CHAIN_ARG(n), stores what replaces an argument of "before" instead.
 */
#define FLEXSC_CHAIN_ARG(n)	((unsigned int)(n) + 1)
#define FLEXSC_CHAIN_ALWAYS	0x10U
#define FLEXSC_CHAIN_FULL	0x20U
#define FLEXSC_CHAIN_SAME	0x40U

int flexsc_loop_call_after(struct flexsc_loop *loop, struct flexsc_cb *cb,
			   struct flexsc_cb *before, unsigned int chain,
			   unsigned int nr, const uint64_t args[6]);

#pragma GCC visibility pop

#ifdef __cplusplus
}
#endif

#endif /* FLEXSC_CALL_H */
