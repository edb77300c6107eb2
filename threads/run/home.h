/* SPDX-License-Identifier: MIT */
/*
 * A user thread and its own kernel thread: coming home and leaving. Home is
 * where everything happens that needs a thread's identity, or that would stop
 * a carrier: there it is a plain NPTL thread.
 *
 * While a user thread is away, its kernel thread sleeps on a small stack of
 * its own with the program's signal mask. A signal that arrives meanwhile calls
 * it home: signals.h.
 */
#ifndef FLEXSC_THREADS_HOME_H
#define FLEXSC_THREADS_HOME_H

#include "uthread.h"

/*
 * The calling kernel thread becomes the home of its user thread, which has
 * this signal mask; to be parked on this stack (park.h).
 */
void flexsc__home_init(struct uthread *u, void *stack, sigmask_t mask);
/* The user thread is at home, and won't leave again. */
void flexsc__home_fini(struct uthread *u);

/*
 * Some home has an affinity or a priority of its own, which new threads are to
 * inherit: they are made at home from then on.
 */
extern atomic_bool flexsc__home_inherited;

/* The process ends: whoever comes home stays there. */
extern atomic_bool flexsc__home_last;

/* User thread only; they do nothing if that is where it is. */
void flexsc__come_home(struct uthread *u);
void flexsc__leave(struct uthread *u);

/*
 * A user thread stays at home while a function runs that needs it there: a
 * signal handler, or one of libc's. A jump may leave it, past its end; so the
 * outermost one counts, by its frame, and who calls from above has left it.
 * (From further down it isn't seen that a frame is gone; longjmp() tells.)
 */
struct stay {
	bool outermost;
};

/* From here on it stays; from low to high is its signal stack, if any. */
struct stay flexsc__stay_begin(struct uthread *u, uintptr_t low,
			       uintptr_t high);
void flexsc__stay_end(struct uthread *u, struct stay stay);
/* The user thread goes on at this stack pointer. */
void flexsc__stay_left(struct uthread *u, uintptr_t sp);
/* It is at home and can't leave: it may as well wait there. */
bool flexsc__stays(struct uthread *u);

/* Kernel threads only: u, which doesn't run, is to run at home. */
void flexsc__send_home(struct uthread *u);

/*
 * User thread only, after any suspension: if it was sent home, the signals
 * that it was sent home for arrive here.
 */
void flexsc__settle(struct uthread *u);

/*
 * The same, where a signal frame is left next: the mask that is to be in it.
 * Until then all signals are blocked, and those it was sent home for arrive
 * after it.
 */
sigmask_t flexsc__settle_in_frame(struct uthread *u);

/*
 * User thread only: into the runtime, and out of it. Inside, signals that come
 * to its home are put off; they arrive on the way out. A system call that may
 * take long is made outside.
 */
static inline void flexsc__enter(struct uthread *u)
{
	u->busy = true;
	atomic_signal_fence(memory_order_seq_cst);
}

static inline void flexsc__exit(struct uthread *u)
{
	for (;;) {
		u->busy = false;
		/* From here on they are taken at once; what came before, now. */
		atomic_signal_fence(memory_order_seq_cst);
		if (!atomic_load_explicit(&u->wanted, memory_order_relaxed) ||
		    !at_home())
			return;
		flexsc__settle(u);
	}
}

#endif /* FLEXSC_THREADS_HOME_H */
