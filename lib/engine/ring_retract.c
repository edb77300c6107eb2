/* SPDX-License-Identifier: MIT */
/*
 * Taking published requests back from a poller after io_uring_enter() has begun to fail.
 * The owner can't wake the poller any more, but another loop that shares it can, at any
 * moment. Lowering the tail would be wrong: a poller that has read the old tail consumes
 * more requests than the tail allows, and then takes the whole ring for new requests.
 *
 * So the owner replaces the operation of each published request by one that doesn't
 * exist, and the tail remains. Each request then is in one of these states:
 *
 *	seen		the poller had read it, and executes it: a result arrives
 *	refused		the poller reads it later: the result -EINVAL arrives
 *	left		the poller sleeps. It refuses the request if another loop wakes it
 *
 * The poller consumes requests only while IORING_SQ_NEED_WAKEUP is clear. It has stored
 * the head before it sets the flag, and clears the flag before it reads the next request.
 * T1: the owner replaces the operations, then reads the flag, both sequentially
 * consistent. If the flag is set, the poller hasn't read a request from the head on, and
 * will find the replaced operations. Owner only.
 */
#include <errno.h>
#include <time.h>

#include "lib/base/syscall.h"
#include "ring.h"

/* Interval of checks whether the poller has consumed the requests or sleeps, in ns. */
#define POLLER_NS	500000

uint32_t flexsc__ring_retract(const struct ring *ring)
{
	const struct timespec moment = { 0, POLLER_NS };
	const struct io_uring_sq *sq = &ring->uring.sq;
	bool sleeps;
	uint32_t head;

	for (uint32_t i = ring_head(ring); i != *sq->ktail; i++)
		/* T1 */
		__atomic_store_n(&sq->sqes[i & sq->ring_mask].opcode, RETRACTED,
				 __ATOMIC_SEQ_CST);
	for (;;) {
		/* T1: read the flag before the head. EOWNERDEAD: there is no poller. */
		sleeps = ring_poller_sleeps(ring) || ring->failed == -EOWNERDEAD;
		head = ring_head(ring);
		if (sleeps || head == *sq->ktail)
			return head;
		raw_syscall(SYS_nanosleep, PTR(&moment), 0, 0, 0, 0, 0);
	}
}
