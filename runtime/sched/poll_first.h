/* SPDX-License-Identifier: MIT */
/*
 * Calls that poll before they are made, because a stuck carrier's ring has requests for
 * connections. Carriers only.
 *
 * io_uring waits for connections exclusively: a connection wakes only the oldest request.
 * A request in a stuck carrier's ring takes that wake-up and can't go on. While there are
 * such requests, an accept() polls first, because a connection wakes every poll.
 *
 *	accept	-> poll		flexsc__poll_first_instead(): it is cancelled
 *	poll	-> attempt	there is a connection: accept() with a time limit
 *	attempt	-> poll		another thread has taken the connection
 *	poll	-> last		no carrier is stuck any more; or it is a connect()
 *	attempt, last -> over	with the call's result
 *
 * The attempt's time limit is some milliseconds, because without the connection it would
 * wait behind the stuck carrier's request after all.
 *
 * M3: an heir counts its stuck carrier, then has accepts that wait on other carriers
 * cancelled. M4: an accept()'s wait begins, then reads the count. Both are sequentially
 * consistent, so one of the two sees the other.
 *
 * Such a call uses a copy of its descriptor from the first poll to its end. The program
 * may close the descriptor meanwhile, and its number may mean another file when the call
 * is made. The carrier that ends the wait closes the copy. If the descriptor was closed
 * before the call moved, it can't be copied and the call can't poll: a stuck carrier's
 * request may take its wake-up. Then it returns with the next connection after that
 * carrier is back.
 */
#ifndef FLEXSC_RUNTIME_POLL_FIRST_H
#define FLEXSC_RUNTIME_POLL_FIRST_H

#include <sys/syscall.h>

#include "lib/calls/call_info.h"
#include "uthread.h"

struct carrier;

/* How many stuck carriers have requests that wait for connections: M3, M4. */
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
 * Post a poll for u's descriptor to c, and when that is over, post u's call. Without a
 * copy of the descriptor the call is posted at once.
 */
void flexsc__poll_first(struct carrier *c, struct uthread *u);

/*
 * Cancel u's accept(), which is posted to c; then it polls. Without effect if the
 * descriptor can't be copied.
 */
void flexsc__poll_first_instead(struct carrier *c, struct uthread *u);

/* Does the descriptor of u's call still mean the file that it meant when posted? */
bool flexsc__poll_first_keeps_file(const struct uthread *u);

/*
 * From here on u's call uses a copy of its descriptor. False: the descriptor may mean
 * another file already, or it can't be copied.
 */
bool flexsc__poll_first_copy(struct uthread *u);

/* Undo flexsc__poll_first_copy(), if it has replaced these arguments. */
void flexsc__poll_first_drop_copy(struct uthread *u, const uint64_t *args);

#endif /* FLEXSC_RUNTIME_POLL_FIRST_H */
