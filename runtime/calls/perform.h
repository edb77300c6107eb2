/* SPDX-License-Identifier: MIT */
/*
 * A user thread's system call, in each of the ways that it can be made; hook.h
 * says which call is made in which way. The functions run on the user thread,
 * inside the runtime unless they say otherwise, and return the kernel's result: a
 * value or -errno. Where "u->point" is set, a cancellation takes effect while the
 * call waits, and, of a call that isn't made on its host, only if it had no effect.
 */
#ifndef FLEXSC_RUNTIME_PERFORM_H
#define FLEXSC_RUNTIME_PERFORM_H

#include "lib/calls/call_info.h"
#include "runtime/sched/uthread.h"

/* An argument that is a pointer. */
static inline const void *flexsc__arg_pointer(uint64_t arg)
{
	return (const void *)(uintptr_t)arg;
}

/*
 * The part that a call has in an event loop's turn. What the runtime does about such
 * calls must cost little.
 */
static inline enum call_turn call_turn(long nr)
{
	return (unsigned long)nr < CALLS_ROOM ?
		       (enum call_turn)flexsc__call_turns[nr] : TURN_OTHER;
}

static inline bool call_transfers(enum call_turn turn)
{
	return turn == TURN_TRANSFER || turn == TURN_SOCKET || turn == TURN_MESSAGE;
}

/*
 * Does the call wait for any of many, as an event loop does? poll() of one
 * descriptor doesn't; poll() of none is a sleep that needs a host as well.
 */
static inline bool call_awaits_any(long nr, const uint64_t a[6])
{
	enum call_turn turn = call_turn(nr);

	return turn == TURN_AWAIT || (turn == TURN_POLL && a[1] != 1);
}

/* Make a call that doesn't wait, on the spot. Any thread. */
long flexsc__perform_plainly(long nr, const uint64_t a[6]);

/*
 * Is the caller a signal handler on a host that is asleep? It has the user thread's
 * TLS, but isn't the user thread.
 */
static inline bool flexsc__is_asleep(const struct uthread *u)
{
	return on_host() && u->host.away;
}

/*
 * Make a call in the kernel, on the spot: as a cancellation point if it is one of the
 * program's, but not if it is the runtime's own. Outside the runtime, and for threads
 * that aren't user threads.
 */
long flexsc__perform_of_other(long nr, const uint64_t a[6]);

/*
 * Make a call that may take a while outside the runtime, so that signals are
 * handled meanwhile. On any kernel thread.
 */
long flexsc__perform_exposed(struct uthread *u, long nr, const uint64_t a[6]);

/*
 * Make a call as libc's cancellation points do: a cancellation between the
 * call's end and the change of type loses the call's result, as in libc.
 * Outside the runtime.
 */
long flexsc__perform_point(long nr, const uint64_t a[6]);

/* Make the call of a user thread that is on its host, as libc would make it. */
long flexsc__perform_on_host(struct uthread *u, long nr, const uint64_t a[6]);

/* Return to the host, then make the call there. */
long flexsc__perform_go_to_host(struct uthread *u, long nr, const uint64_t a[6]);

/* Return to the host for a call that waits there: sched/sticky.h. */
long flexsc__perform_wait_on_host(struct uthread *u, long nr, const uint64_t a[6]);

/*
 * Make a call that neither a loop nor a poll of its descriptor can wait for: on
 * the spot if it needn't wait, and else on its host.
 */
long flexsc__perform_attempt(struct uthread *u, long nr, const uint64_t a[6]);

/*
 * Have the carrier's loop make the call, while other user threads run. The call
 * is posted again after handlers that have SA_RESTART.
 */
long flexsc__perform_post(struct uthread *u, long nr, const uint64_t a[6]);
/*
 * The same for a part of a call that isn't the first: -EINTR after any handler, as the
 * call has had an effect.
 */
long flexsc__perform_post_part(struct uthread *u, long nr, const uint64_t a[6]);

/*
 * Did a signal handler end the wait so that the program sees EINTR? If not, a
 * call that had no effect is begun again.
 */
bool flexsc__perform_interrupted(struct uthread *u, long nr);

#endif /* FLEXSC_RUNTIME_PERFORM_H */
