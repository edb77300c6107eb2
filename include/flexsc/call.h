/* SPDX-License-Identifier: MIT */
/*
 * Posting system calls, and what can be done with a posted one: flexsc-call(3). The
 * typed functions of <flexsc/syscalls.h> stand on this.
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
 * A call's event control block (ATC 2011, section 4). Set callback and arg before
 * posting. The callback runs once for each post (but see <flexsc/multishot.h>), on the
 * loop's thread, never from inside the posting function.
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
 * Post system call nr with six arguments; those it doesn't take are ignored. cb == NULL
 * is fire and forget.
 */
int flexsc_loop_call(struct flexsc_loop *loop, struct flexsc_cb *cb,
		     unsigned int nr, uint64_t a0, uint64_t a1, uint64_t a2,
		     uint64_t a3, uint64_t a4, uint64_t a5);

/* For the typed functions alone: the same with three arguments, the others 0. */
int flexsc__call3(struct flexsc_loop *loop, struct flexsc_cb *cb,
		      unsigned int nr, uint64_t a0, uint64_t a1, uint64_t a2);

/*
 * Ask that a pending call, timer or signal ends early. The callback runs all the same,
 * with the true result, -EINTR (interrupted while it executed) or -ECANCELED (no effect).
 */
int flexsc_loop_cancel(struct flexsc_loop *loop, struct flexsc_cb *cb);

/* Cancel every pending call that names descriptor fd; returns how many. */
int flexsc_loop_cancel_fd(struct flexsc_loop *loop, int fd);

/* End cb's call with -ETIME unless it completes within ns nanoseconds. 0: no deadline. */
int flexsc_loop_deadline(struct flexsc_loop *loop, struct flexsc_cb *cb,
			 uint64_t ns);

/*
 * Post a call that starts when that of before has completed with ret >= 0, and otherwise
 * completes with -ECANCELED. The flags of chain: the result of before becomes argument n
 * (section 8.3's looped multi-call); run whatever the result was; run only if all bytes
 * were transferred.
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
