/* SPDX-License-Identifier: MIT */
/*
 * A user thread's system call, in each of the ways that it can be made; hook.h
 * says which call is made in which way. All of these run on the user thread,
 * inside the runtime, and return the kernel's result: a value or -errno. Where
 * "u->point" is set, a cancellation takes effect while the call waits, and only
 * if the call had no effect.
 */
#ifndef FLEXSC_THREADS_CALL_H
#define FLEXSC_THREADS_CALL_H

#include "../run/uthread.h"

/* An argument that is a pointer. */
static inline const void *flexsc__arg_pointer(uint64_t arg)
{
	return (const void *)(uintptr_t)arg;
}

/* Does the call receive or send by the descriptor that is its first argument? */
static inline bool call_transfers(long nr)
{
	switch (nr) {
	case SYS_read:
	case SYS_write:
	case SYS_readv:
	case SYS_writev:
	case SYS_recvfrom:
	case SYS_sendto:
	case SYS_recvmsg:
	case SYS_sendmsg:
		return true;
	default:
		return false;
	}
}

/* Make a call that doesn't wait. On any kernel thread, inside the runtime. */
long flexsc__call_plainly(long nr, const uint64_t a[6]);

/*
 * Make a call that may take a while outside the runtime, so that signals are
 * handled meanwhile. On any kernel thread.
 */
long flexsc__call_exposed(struct uthread *u, long nr, const uint64_t a[6]);

/*
 * Make a call as libc's cancellation points do: a cancellation between the
 * call's end and the change of type loses the call's result, as in libc.
 * Outside the runtime.
 */
long flexsc__call_point(long nr, const uint64_t a[6]);

/* Make the call of a user thread that is at home, as libc would make it. */
long flexsc__call_at_home(struct uthread *u, long nr, const uint64_t a[6]);

/* Come home, then make the call there. */
long flexsc__call_go_home(struct uthread *u, long nr, const uint64_t a[6]);

/* Come home for a call that waits there: run/lodge.h. */
long flexsc__call_wait_home(struct uthread *u, long nr, const uint64_t a[6]);

/*
 * Make a call that neither a loop nor a poll of its descriptor can wait for: on
 * the spot if it needn't wait, and else at home.
 */
long flexsc__call_attempt(struct uthread *u, long nr, const uint64_t a[6]);

/*
 * Have the carrier's loop make the call, while other user threads run. The call
 * is posted again after handlers that have SA_RESTART.
 */
long flexsc__call_post(struct uthread *u, long nr, const uint64_t a[6]);

/*
 * Did a signal handler end the wait so that the program sees EINTR? If not, a
 * call that had no effect is begun again.
 */
bool flexsc__call_interrupted(struct uthread *u, long nr);

#endif /* FLEXSC_THREADS_CALL_H */
