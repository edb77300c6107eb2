/* SPDX-License-Identifier: MIT */
/*
 * Waits that move from a stuck carrier to its heir (adopt.h), and the effect on others
 * of the requests that stay armed in the stuck carrier's ring. Carriers run the
 * functions; user threads count the descriptors that they close.
 *
 * io_uring waits for connections exclusively: a connection wakes only the oldest
 * request. A request in a stuck carrier's ring takes that wake-up and can't go on. So
 * while there are such requests, an accept() polls first, because a connection wakes
 * every poll.
 *
 * M3: the heir counts its stuck carrier, then has accepts that wait on other carriers
 * cancelled, which makes them poll. M4: an accept()'s wait begins, then reads the
 * count. Both are sequentially consistent, so one of the two sees the other.
 *
 * Another thread may take the connection between the poll and the accept(), which then
 * waits behind a stuck carrier's request after all. So an accept() after a poll is
 * cancelled after some milliseconds, and polls again.
 *
 * A call that polls first uses a copy of its descriptor from the first poll to its end.
 * The program may close the descriptor meanwhile, and its number may mean another file
 * when the call is made. The carrier that ends the wait closes the copy.
 *
 * An accept() whose descriptor was closed before the call moved can't poll, because the
 * descriptor can't be copied. A stuck carrier's request may take its wake-up. Then it
 * returns with the next connection that comes after that carrier is back.
 */
#ifndef FLEXSC_RUNTIME_MOVED_H
#define FLEXSC_RUNTIME_MOVED_H

#include <sys/syscall.h>

#include "lib/calls/table.h"
#include "uthread.h"

/*
 * How often descriptors were closed, by their lower bits. A call that waits keeps its
 * file when its descriptor is closed, but the number may mean another file by the time
 * the call is moved. So a call notes the count when it is posted. If the count has
 * changed, only the old request is sure to have the right file, and the call stays.
 */
#define MOVED_CLOSINGS	(1U << 16)
/* close_range(2) counts so many at once, or it would take half a millisecond. */
#define MOVED_CHUNK	(1U << 10)

extern struct moved_closings {
	_Atomic uint32_t of[MOVED_CLOSINGS];
	/* By close_range(2). The last is for all descriptors from MOVED_CLOSINGS on. */
	_Atomic uint32_t of_chunk[MOVED_CLOSINGS / MOVED_CHUNK + 1];
} flexsc__moved_closings;

static inline uint32_t moved_closings(uint64_t fd)
{
	const uint64_t chunk = (fd < MOVED_CLOSINGS ? fd : MOVED_CLOSINGS) /
			       MOVED_CHUNK;

	/* M5: pairs with M6. */
	return atomic_load(&flexsc__moved_closings.of[fd % MOVED_CLOSINGS]) +
	       atomic_load(&flexsc__moved_closings.of_chunk[chunk]);
}

/* User threads only: the descriptor is about to be closed, or was closed just now. */
static inline void moved_close(uint32_t fd)
{
	atomic_fetch_add(&flexsc__moved_closings.of[fd % MOVED_CLOSINGS], 1);
}

/* The same of all descriptors from first to last. */
void flexsc__moved_close_range(uint32_t first, uint32_t last);

/*
 * The number of heirs that are moving calls. Between an heir's look at the count of
 * closings and its submission, the new request has no file: the kernel looks the
 * descriptor's number up when it takes the request.
 *
 * M5: an heir adds itself, then reads the count of closings. M6: a user thread counts a
 * closing, then waits until no heir is left, then closes. All are sequentially
 * consistent, so either the heir sees the closing, or the user thread waits until the
 * request has its file.
 */
extern _Atomic uint32_t flexsc__moved_heirs;

void flexsc__moved_wait_for_heirs(void);

/* User threads only, between moved_close() and the call that closes. */
static inline void moved_settle(void)
{
	/* M6: pairs with M5. */
	if (atomic_load(&flexsc__moved_heirs))
		flexsc__moved_wait_for_heirs();
}

/* Heirs only: before the first call is moved; when the new requests are submitted. */
void flexsc__moved_begin(void);
void flexsc__moved_end(void);

/* The descriptor that u's call waits for. */
static inline uint64_t moved_fd(const struct uthread *u)
{
	return u->args[u->nr == SYS_poll ? 4 : 0];
}

/* u is about to post its call. */
static inline void moved_note(struct uthread *u)
{
	u->moved.closings = moved_closings(moved_fd(u));
}

/* Heir s only, while c is stuck: move the waits that can be moved from c to s. */
void flexsc__moved_take(struct carrier *s, struct carrier *c);

/*
 * Carrier c only, when it is back and has revoked its requests of calls that moved. End
 * the waits that stayed and that were wanted to end meanwhile.
 */
void flexsc__moved_back(struct carrier *c);

/* How many stuck carriers have requests that wait for connections: M3, M4. */
extern _Atomic uint32_t flexsc__moved_accepts;

static inline bool moved_is_accept(const struct uthread *u)
{
	return flexsc__table_row(u->nr)->makes == MAKES_ACCEPTED;
}

static inline bool moved_is_connect(const struct uthread *u)
{
	return u->nr == SYS_connect;
}

/* Does u's call have to poll before it is made? M4: pairs with M3 in moved.c. */
static inline bool moved_polls(const struct uthread *u)
{
	return atomic_load(&flexsc__moved_accepts) && moved_is_accept(u);
}

/*
 * Carrier c only: post a poll for u's descriptor; when that is over, post u's call.
 * Without a copy of the descriptor the call is posted at once.
 */
void flexsc__moved_poll(struct carrier *c, struct uthread *u);

/*
 * Carrier c only: cancel u's accept(), which is posted to c; then it polls. Without
 * effect if the descriptor can't be copied.
 */
void flexsc__moved_repoll(struct carrier *c, struct uthread *u);

#endif /* FLEXSC_RUNTIME_MOVED_H */
