/* SPDX-License-Identifier: MIT */
/*
 * Calls that poll before they are made, while a stuck carrier's ring has requests for
 * connections. Carriers only.
 *
 * io_uring waits for connections exclusively: a connection wakes only the oldest
 * request. A request in a stuck carrier's ring takes that wake-up but can't continue.
 * While there are such requests, an accept() polls first, because a connection wakes
 * every poll.
 *
 *	accept	-> poll		flexsc__poll_first_instead() cancels the accept()
 *	poll	-> attempt	there is a connection: accept() with a time limit
 *	attempt	-> poll		another thread has taken the connection
 *	poll	-> last		no carrier is stuck any more; or it is a connect()
 *	attempt, last -> over	with the call's result
 *
 * The attempt has a time limit of some milliseconds, because if another thread has
 * taken the connection, the accept() waits behind the stuck carrier's request after
 * all.
 *
 * M3: an heir raises flexsc__poll_first_stuck, then cancels accepts that wait on other
 * carriers. M4: an accept()'s wait begins, then reads flexsc__poll_first_stuck. Both
 * are sequentially consistent, so one of the two sees the other.
 *
 * From the first poll to its end, such a call uses a copy of its descriptor: the
 * program may close the descriptor, and the number may then mean another file. The
 * carrier that ends the wait closes the copy. If the descriptor was closed before the
 * call moved, it can't be copied and the call can't poll: a stuck carrier's request may
 * take its wake-up. Then the call returns with the next connection after that carrier
 * is back.
 */
#ifndef FLEXSC_RUNTIME_POLL_FIRST_H
#define FLEXSC_RUNTIME_POLL_FIRST_H

#include <sys/syscall.h>

#include "lib/calls/call_info.h"
#include "uthread.h"

struct carrier;

/* Stuck carriers with requests that wait for connections: M3, M4. */
extern _Atomic uint32_t flexsc__poll_first_stuck;

static inline bool poll_first_is_accept(const struct uthread *u)
{
	return flexsc__call_info(u->nr)->makes == MAKES_ACCEPTED;
}

static inline bool poll_first_is_connect(const struct uthread *u)
{
	return u->nr == SYS_connect;
}

/* Does u's call have to poll before it is made? M4: pairs with M3 in moved.c. */
static inline bool poll_first_is_needed(const struct uthread *u)
{
	return atomic_load(&flexsc__poll_first_stuck) && poll_first_is_accept(u);
}

/*
 * Post a poll of u's descriptor to c, and u's call after it. If the descriptor can't be
 * copied, post the call at once.
 */
void flexsc__poll_first(struct carrier *c, struct uthread *u);

/*
 * Cancel u's accept(), which is posted to c, and poll instead. No effect if the
 * descriptor can't be copied.
 */
void flexsc__poll_first_instead(struct carrier *c, struct uthread *u);

/* Does u's descriptor still refer to the same file as when u's call was posted? */
bool flexsc__poll_first_keeps_file(const struct uthread *u);

/*
 * Make u's call use a copy of its descriptor. False: the descriptor can't be copied, or
 * may refer to another file already.
 */
bool flexsc__poll_first_copy(struct uthread *u);

/* Undo flexsc__poll_first_copy(), if it replaced the arguments "args". */
void flexsc__poll_first_drop_copy(struct uthread *u, const uint64_t *args);

#endif /* FLEXSC_RUNTIME_POLL_FIRST_H */
