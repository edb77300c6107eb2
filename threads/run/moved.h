/* SPDX-License-Identifier: MIT */
/*
 * Waits that move from a carrier that is stuck to its heir (adopt.h), and what the
 * requests that they leave behind do to others.
 *
 * io_uring waits for connections exclusively: a connection wakes one request only,
 * the oldest. A request that was left behind takes such a wake-up and can't go on.
 * So while there are any, an accept() first polls, as a poll is woken each time. M3:
 * the heir counts them, then has accepts end that wait elsewhere, which begin again
 * by a poll. M4: a user thread's wait begins, then it looks at the count. Both are
 * sequentially consistent, so no accept() waits behind such a request.
 */
#ifndef FLEXSC_THREADS_MOVED_H
#define FLEXSC_THREADS_MOVED_H

#include <sys/syscall.h>

#include "uthread.h"

/* Heir only: c is stuck. Waits that can be moved go on at s, the calling carrier. */
void flexsc__moved_take(struct carrier *s, struct carrier *c);

/*
 * Carrier c is back, and has revoked the requests that it had left behind. Waits that
 * stayed, and were to be ended meanwhile, end.
 */
void flexsc__moved_back(struct carrier *c);

/* Stuck carriers with requests that wait for connections. */
extern _Atomic uint32_t flexsc__moved_accepts;

static inline bool moved_is_accept(const struct uthread *u)
{
	return u->nr == SYS_accept || u->nr == SYS_accept4;
}

/* Does u's call, which isn't posted yet, have to poll first? M4, pairs with M3. */
static inline bool moved_polls(const struct uthread *u)
{
	return atomic_load(&flexsc__moved_accepts) && moved_is_accept(u);
}

/* Carrier c posts a poll for what u's call needs; then the call. */
void flexsc__moved_poll(struct carrier *c, struct uthread *u);

/* Carrier c: u's accept() is posted; have it poll. */
void flexsc__moved_repoll(struct carrier *c, struct uthread *u);

#endif /* FLEXSC_THREADS_MOVED_H */
