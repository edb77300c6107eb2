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
 * sequentially consistent, so no accept() waits behind such a request. But another
 * thread may take the connection between the poll and the accept(), which then waits
 * behind that request. So such an accept() is cancelled after some milliseconds, and
 * polls again.
 */
#ifndef FLEXSC_THREADS_MOVED_H
#define FLEXSC_THREADS_MOVED_H

#include <sys/syscall.h>

#include "uthread.h"

/*
 * A descriptor that is closed while a call waits for it may be another file's by the
 * time the call is moved, and only the old request has the right file. So closings are
 * counted, by the descriptor's lower bits, and the count is noted when a call is posted.
 * If it differs, the call stays.
 */
#define MOVED_CLOSINGS	(1U << 16)

extern struct moved_closings {
	_Atomic uint32_t ranges;	/* calls of close_range(2) */
	_Atomic uint32_t of[MOVED_CLOSINGS];
} flexsc__moved_closings;

static inline uint32_t moved_closings(uint64_t fd)
{
	return atomic_load_explicit(&flexsc__moved_closings.ranges,
				    memory_order_relaxed) +
	       atomic_load_explicit(
		       &flexsc__moved_closings.of[fd % MOVED_CLOSINGS],
		       memory_order_relaxed);
}

/* User threads only: the descriptor is about to be closed. */
static inline void moved_close(uint32_t fd)
{
	atomic_fetch_add(&flexsc__moved_closings.of[fd % MOVED_CLOSINGS], 1);
}

static inline void moved_close_range(void)
{
	atomic_fetch_add(&flexsc__moved_closings.ranges, 1);
}

/* The descriptor that u's call waits for; run/ending.c has the same rule. */
static inline uint64_t moved_fd(const struct uthread *u)
{
	return u->args[u->nr == SYS_poll ? 4 : 0];
}

/* u is about to post its call. */
static inline void moved_note(struct uthread *u)
{
	u->moved.closings = moved_closings(moved_fd(u));
}

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
