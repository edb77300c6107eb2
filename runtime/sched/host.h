/* SPDX-License-Identifier: MIT */
/*
 * A user thread and its own kernel thread: leaving the host, and returning. Everything
 * that needs a thread's identity, or that would stop a carrier, happens on the host, where
 * the user thread is a plain NPTL thread.
 *
 * While a user thread is away, its kernel thread sleeps on a small stack of its own, with
 * the program's signal mask. A signal that arrives meanwhile calls the user thread to its
 * host: signals/signals.h.
 */
#ifndef FLEXSC_RUNTIME_HOST_H
#define FLEXSC_RUNTIME_HOST_H

#include "uthread.h"

/*
 * The calling kernel thread becomes the host of its user thread, and will sleep on this
 * stack (stacks.h). The mask is the user thread's.
 */
void flexsc__host_init(struct uthread *u, void *stack, sigmask_t mask);
/* The user thread is on its host and won't leave again. */
void flexsc__host_fini(struct uthread *u);

/* User thread only: return to its host, and leave it. No effect if it is there already. */
void flexsc__return_to_host(struct uthread *u);
void flexsc__leave_host(struct uthread *u);

/*
 * A user thread stays on its host while a function runs that needs it there: a signal
 * handler, or a function of libc's. Only the outermost such function counts. A jump may
 * leave it without its end: a later call whose frame is above that function's shows that.
 * A call further down doesn't, so longjmp() reports the frame that it jumps to.
 */
struct stay {
	bool outermost;
};

/*
 * The user thread stays on its host from here on. Its signal stack, if it is on
 * one, is from low to high.
 */
struct stay flexsc__stay_begin(struct uthread *u, uintptr_t low,
			       uintptr_t high);
void flexsc__stay_end(struct uthread *u, struct stay stay);
/* The user thread goes on at this stack pointer. */
void flexsc__stay_left(struct uthread *u, uintptr_t sp);
/* Does such a function still run? */
bool flexsc__stay_goes_on(struct uthread *u);
/*
 * Is the user thread on its host and can't leave? Then it may as well wait there.
 */
bool flexsc__stays(struct uthread *u);

/*
 * Kernel threads only: is u on its way from its host to a wait? If u is anchored
 * meanwhile it goes on to its wait, because it would leave again if it was sent
 * to its host.
 */
bool flexsc__leaves_host(const struct uthread *u);

/* Kernel threads only: u, which doesn't run, is to run on its host. */
void flexsc__send_to_host(struct uthread *u);

/*
 * User thread only, after any suspension: if it was sent to its host, the signals that
 * it was sent to its host for arrive here.
 */
void flexsc__settle(struct uthread *u);

/*
 * flexsc__settle() for a user thread that leaves a signal frame next. Returns
 * the mask that the frame is to have. All signals are blocked until then, and
 * those that the user thread was sent to its host for arrive after it.
 */
sigmask_t flexsc__settle_in_frame(struct uthread *u);

/*
 * User thread only: enter the runtime, and exit from it. Inside, signals that come to its
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
		/*
		 * Signals that come after this store are handled at once; those
		 * that came before it are handled now.
		 */
		atomic_signal_fence(memory_order_seq_cst);
		if (!atomic_load_explicit(&u->wanted, memory_order_relaxed) ||
		    !on_host())
			return;
		flexsc__settle(u);
	}
}

/*
 * Any thread: the calling thread returns to its host, if it is a user thread outside the
 * runtime.
 */
void flexsc__bring_to_host(void);

#endif /* FLEXSC_RUNTIME_HOST_H */
