/* SPDX-License-Identifier: MIT */
/*
 * The ways to make a user thread's system call; hook.h lists which call is made in
 * which way. Unless stated otherwise, the functions run on the user thread, inside the
 * runtime, and return the kernel's result: a value or -errno. If u->point is set, a
 * cancellation takes effect while the call waits. Away from the host, a cancellation
 * takes effect only if the call had no effect.
 */
#ifndef FLEXSC_RUNTIME_PERFORM_H
#define FLEXSC_RUNTIME_PERFORM_H

#include "lib/calls/call_info.h"
#include "runtime/sched/uthread.h"

static inline const void *flexsc__arg_pointer(uint64_t arg)
{
	return (const void *)(uintptr_t)arg;
}

/*
 * The role of a call in one turn of an event loop. A call with such a role must cost
 * hardly more than natively.
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
 * Does the call wait for any of many descriptors or requests, as an event loop does? A
 * poll() of one descriptor doesn't. A poll() without descriptors counts, because such a
 * sleep needs a host, too.
 */
static inline bool call_awaits_any(long nr, const uint64_t a[6])
{
	enum call_turn turn = call_turn(nr);

	return turn == TURN_AWAIT || (turn == TURN_POLL && a[1] != 1);
}

/* Any thread: make a call inline; the call doesn't wait. */
long flexsc__perform_plainly(long nr, const uint64_t a[6]);

/*
 * Any thread outside the runtime: make a call inline. A call of the program is a
 * cancellation point if u->point is set; a call of the runtime never is.
 */
long flexsc__perform_of_other(long nr, const uint64_t a[6]);

/*
 * Make a call inline, on any kernel thread, but outside the runtime: the call may take
 * a while, and signal handlers must run meanwhile.
 */
long flexsc__perform_exposed(struct uthread *u, long nr, const uint64_t a[6]);

/*
 * Make a call as libc's cancellation points do. As in libc, the result is lost if a
 * cancellation comes between the end of the call and the change of the cancellation
 * type. Outside the runtime.
 */
long flexsc__perform_point(long nr, const uint64_t a[6]);

/* Make a call as libc would. The user thread is on its host. */
long flexsc__perform_on_host(struct uthread *u, long nr, const uint64_t a[6]);

/* Return to the host, then make the call there. */
long flexsc__perform_go_to_host(struct uthread *u, long nr, const uint64_t a[6]);

/* Return to the host, and make a call there that waits (sched/sticky.h). */
long flexsc__perform_wait_on_host(struct uthread *u, long nr, const uint64_t a[6]);

/*
 * Make a call that neither a loop nor a poll of its descriptor can wait for: inline if
 * it needn't wait, otherwise on the host.
 */
long flexsc__perform_attempt(struct uthread *u, long nr, const uint64_t a[6]);

/*
 * Post the call to the carrier's loop. Other user threads run until it completes. After
 * handlers with SA_RESTART the call is posted again.
 */
long flexsc__perform_post(struct uthread *u, long nr, const uint64_t a[6]);
/*
 * As flexsc__perform_post(), for the second or a later part of a call: -EINTR after any
 * handler, because the call has already had an effect.
 */
long flexsc__perform_post_part(struct uthread *u, long nr, const uint64_t a[6]);

/* Did a signal handler end the wait? For calls that are never restarted. */
bool flexsc__perform_handled(struct uthread *u);

#endif /* FLEXSC_RUNTIME_PERFORM_H */
