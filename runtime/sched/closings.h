/* SPDX-License-Identifier: MIT */
/*
 * Counts how often descriptors were closed, so that no call is repeated on a wrong
 * file.
 *
 * A pending call keeps its file when its descriptor is closed, but the number may mean
 * another file when the call is made again: because it moves to another carrier
 * (moved.h), or continues after a part (calls/parts.c). So a call notes the count when
 * it is posted. If the count has changed since, only the old request is sure to have
 * the right file.
 *
 * The kernel looks a descriptor up when it takes a request. M5: an heir that moves
 * calls raises flexsc__closings_heirs, then reads counts. It lowers
 * flexsc__closings_heirs when its requests are submitted. M6: a user thread counts a
 * closing, then waits until there is no heir, then closes. All of these are
 * sequentially consistent. So the heir sees the closing, or the user thread waits until
 * the request has its file.
 */
#ifndef FLEXSC_RUNTIME_CLOSINGS_H
#define FLEXSC_RUNTIME_CLOSINGS_H

#include <stdatomic.h>
#include <stdint.h>
#include <sys/syscall.h>

#include "lib/base/poll.h"
#include "uthread.h"

#define CLOSINGS	(1U << 16)	/* counts, by a descriptor's low bits */
/*
 * close_range(2) counts once for each chunk of this many descriptors. Counting each
 * descriptor would take 0.5 ms for all of them.
 */
#define CLOSINGS_CHUNK	(1U << 10)

extern struct closings {
	_Atomic uint32_t of[CLOSINGS];
	/* Counts of close_range(2); the last element: for descriptors from CLOSINGS on. */
	_Atomic uint32_t of_chunk[CLOSINGS / CLOSINGS_CHUNK + 1];
} flexsc__closings;

extern _Atomic uint32_t flexsc__closings_heirs;

static inline uint32_t closings_of(uint64_t fd)
{
	const uint64_t chunk = (fd < CLOSINGS ? fd : CLOSINGS) / CLOSINGS_CHUNK;

	/* M5: pairs with M6. */
	return atomic_load(&flexsc__closings.of[fd % CLOSINGS]) +
	       atomic_load(&flexsc__closings.of_chunk[chunk]);
}

/*
 * The descriptor that u's call waits for. A posted poll() has it as its last argument,
 * for this function only.
 */
static inline uint64_t closings_fd(const struct uthread *u)
{
	return u->args[u->nr == POLL_NR ? 5 : 0];
}

/* Remember the count of u's descriptor. Called before u posts its call. */
static inline void closings_note(struct uthread *u)
{
	u->closings = closings_of(closings_fd(u));
}

/* User threads only: count a closing, right before the call or after it. */
static inline void closings_count(uint32_t fd)
{
	atomic_fetch_add(&flexsc__closings.of[fd % CLOSINGS], 1);
}

/* As closings_count(), for all descriptors from first to last. */
void flexsc__closings_count_range(uint32_t first, uint32_t last);

void flexsc__closings_wait_for_heirs(void);

/* User threads only, after closings_count() and before the closing: wait for heirs. */
static inline void closings_wait(void)
{
	/* M6: pairs with M5. */
	if (atomic_load(&flexsc__closings_heirs))
		flexsc__closings_wait_for_heirs();
}

/*
 * Heirs only: call heir_begins() before the first call moves, and heir_ends() when the
 * new requests are submitted.
 */
void flexsc__closings_heir_begins(void);
void flexsc__closings_heir_ends(void);

#endif /* FLEXSC_RUNTIME_CLOSINGS_H */
