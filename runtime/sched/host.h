/* SPDX-License-Identifier: MIT */
/*
 * Leaving the host thread, and returning to it. Everything that needs a thread's
 * identity, or that would block a carrier, happens on the host, where the user thread
 * is a plain NPTL thread.
 *
 * While a user thread is away, its kernel thread sleeps on a small stack of its own,
 * with the program's signal mask. A signal that arrives there calls the user thread to
 * its host: signals/signals.h.
 */
#ifndef FLEXSC_RUNTIME_HOST_H
#define FLEXSC_RUNTIME_HOST_H

#include "uthread.h"

/*
 * The calling kernel thread becomes u's host. It will sleep on this stack (stacks.h).
 * mask: u's signal mask.
 */
void flexsc__host_init(struct uthread *u, void *stack, sigmask_t mask);
/* Free what the host has allocated. u is on its host, and never leaves it again. */
void flexsc__host_fini(struct uthread *u);

/*
 * User thread only: return to the host, or leave it. No effect if u has already done
 * so.
 */
void flexsc__return_to_host(struct uthread *u);
void flexsc__leave_host(struct uthread *u);
/* As flexsc__leave_host(), for a u that doesn't wait next, but computes. */
void flexsc__leave_host_to_run(struct uthread *u);

/*
 * A user thread stays on its host while a function runs that needs the host: a signal
 * handler, or a function of libc's. If such functions are nested, only the outermost
 * one counts. A longjmp() may leave the function without flexsc__stay_end(). The
 * runtime notices that at the next check from a caller's frame, which has a higher
 * address than the function's. A check from a lower address notices nothing, so
 * longjmp() reports its target.
 */
struct stay {
	bool outermost;
};

/* u stays on its host from now on. low, high: the signal stack that u may run on. */
struct stay flexsc__stay_begin(struct uthread *u, uintptr_t low,
			       uintptr_t high);
void flexsc__stay_end(struct uthread *u, struct stay stay);
/*
 * u continues at stack pointer sp, for example after a longjmp(): end the stay if that
 * leaves the function that needs the host.
 */
void flexsc__stay_left(struct uthread *u, uintptr_t sp);
/* Does u still have to stay? Ends the stay if u has left its function. */
bool flexsc__stay_goes_on(struct uthread *u);
/* Is u on its host and unable to leave it? Then u has to wait there. */
bool flexsc__stays(struct uthread *u);

/*
 * Kernel threads only: is u on its way from its host to a wait? If so, the kernel
 * thread doesn't return u even if u was anchored meanwhile: on its host, u would only
 * leave again, to wait.
 */
bool flexsc__leaves_host(const struct uthread *u);

/* Kernel threads only: make u, which doesn't run, run on its host. */
void flexsc__send_to_host(struct uthread *u);

/*
 * User thread only, after each suspension: if u is on its host now, unblock the signals
 * that called it there, so that they are handled.
 */
void flexsc__settle(struct uthread *u);

/*
 * As flexsc__settle(), for a user thread that is going to return from a signal frame.
 * Returns the mask for the frame, and blocks all signals until then. So the signals
 * that called the user thread to its host arrive after the return.
 */
sigmask_t flexsc__settle_in_frame(struct uthread *u);

/*
 * User thread only: enter the runtime, or exit from it. Inside, signals that reach its
 * host are delayed until the exit, so a system call that may take long is made outside.
 */
static inline void flexsc__enter(struct uthread *u)
{
	RULE(u == &flexsc__self && !u->busy);
	u->busy = true;
	atomic_signal_fence(memory_order_seq_cst);
}

static inline void flexsc__exit(struct uthread *u)
{
	RULE(u == &flexsc__self && u->busy);
	for (;;) {
		u->busy = false;
		/* Later signals are handled at once; earlier ones have set "wanted". */
		atomic_signal_fence(memory_order_seq_cst);
		if (!atomic_load_explicit(&u->wanted, memory_order_relaxed) ||
		    !on_host())
			return;
		flexsc__settle(u);
	}
}

/*
 * Any thread: return the caller to its host if it is a user thread outside the runtime.
 */
void flexsc__bring_to_host(void);

#endif /* FLEXSC_RUNTIME_HOST_H */
