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
/* Free what the host has. u is on its host, and never leaves it again. */
void flexsc__host_fini(struct uthread *u);

/* User thread only: return to its host, or leave it. No effect if that is done. */
void flexsc__return_to_host(struct uthread *u);
void flexsc__leave_host(struct uthread *u);
/* As flexsc__leave_host(), but u computes next instead of waiting. */
void flexsc__leave_host_to_run(struct uthread *u);

/*
 * A user thread stays on its host while a function runs that needs the host: a signal
 * handler, or a function of libc's. Only the outermost one counts. A jump may leave the
 * function without flexsc__stay_end(). A later call from a frame above the function's
 * shows that. A call from further down doesn't, so longjmp() reports the frame that it
 * jumps to.
 */
struct stay {
	bool outermost;
};

/* From here on u stays on its host. low, high: the signal stack that it may run on. */
struct stay flexsc__stay_begin(struct uthread *u, uintptr_t low,
			       uintptr_t high);
void flexsc__stay_end(struct uthread *u, struct stay stay);
/* u continues at stack pointer sp. A stay whose function is left by that ends. */
void flexsc__stay_left(struct uthread *u, uintptr_t sp);
/* Does the stay go on? */
bool flexsc__stay_goes_on(struct uthread *u);
/* Is u on its host, and can't leave? Then it waits there. */
bool flexsc__stays(struct uthread *u);

/*
 * Kernel threads only: is u on its way from its host to a wait? Then it continues even
 * if it is anchored meanwhile, because on its host it would only leave again.
 */
bool flexsc__leaves_host(const struct uthread *u);

/* Kernel threads only: make u, which doesn't run, run on its host. */
void flexsc__send_to_host(struct uthread *u);

/*
 * User thread only, after each suspension: if it is on its host now, receive the
 * signals that called it there.
 */
void flexsc__settle(struct uthread *u);

/*
 * As flexsc__settle(), before the user thread returns from a signal frame. Returns the
 * mask for that frame. All signals are blocked until then; those that called the user
 * thread to its host arrive afterwards.
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
		/* Later signals are handled at once, earlier ones below. */
		atomic_signal_fence(memory_order_seq_cst);
		if (!atomic_load_explicit(&u->wanted, memory_order_relaxed) ||
		    !on_host())
			return;
		flexsc__settle(u);
	}
}

/* Any thread: if it is a user thread outside the runtime, it returns to its host. */
void flexsc__bring_to_host(void);

#endif /* FLEXSC_RUNTIME_HOST_H */
