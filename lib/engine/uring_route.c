/* SPDX-License-Identifier: MIT */
/*
 * The uring engine's routes: submitted calls become requests, or are executed inline or
 * by the pool. The table of calls (syscalls.tbl), the descriptors (files/plan.h) and
 * the arguments (uring_ops.c) determine which calls become requests; this file has the
 * remaining cases. The most common calls are direct and don't pass through it:
 * uring_direct.c. Owner only.
 */
#include "uring.h"

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>

#include "lib/base/compiler.h"
#include "lib/files/fds.h"
#include "lib/files/plan.h"
#include "lib/calls/partial.h"
#include "lib/calls/call_info.h"
#include "lib/loop/stats.h"
#include "lib/files/closing.h"
#include "lib/pool/pool.h"
#include "sleep.h"
#include "uring_direct.h"
#include "uring_reap.h"
#include "uring_eager.h"
#include "uring_ops.h"

/* Does uring_follow() have to handle the end of this operation's calls? */
static bool is_followed(unsigned int op)
{
	switch (op) {
	case IORING_OP_OPENAT:
	case IORING_OP_OPENAT2:
	case IORING_OP_ACCEPT:
	case IORING_OP_SOCKET:
	case IORING_OP_TIMEOUT:
	case IORING_OP_POLL_ADD:
	case IORING_OP_SPLICE:
	case IORING_OP_TEE:
		return true;
	default:
		return false;
	}
}

static void renew(struct ring *ring)
{
	struct flexsc_loop *loop =
		((struct uring *)((char *)ring - offsetof(struct uring, ring)))->loop;

	for (uint32_t i = ring_unseen(ring); i != ring->tail; i++) {
		struct io_uring_sqe *sqe = &ring->sqes[i & ring->mask];
		uint32_t index = (uint32_t)sqe->user_data;

		if (index >= CANCEL || sqe->flags & IOSQE_FIXED_FILE ||
		    call_is_direct(call_of(loop, index)) ||
		    name_of(loop, index) != sqe->user_data ||
		    call_of(loop, index)->route != BY_RING_IN_PARTS)
			continue;
		flexsc__call_renew(loop, index);
		sqe->fd = (int)entry_of(loop, index)->args[0];
	}
}

static void closing(struct guard_watcher *watcher, uint32_t fd,
		    struct guard *guard)
{
	flexsc__ring_await_handed(
		&((struct uring *)((char *)watcher -
				   offsetof(struct uring, watcher)))->ring);
}

static void closed(struct guard_watcher *watcher, uint32_t fd, bool shut)
{
}

/*
 * Prepare for long writes, whose request may be on its way to the kernel when another
 * thread closes the descriptor: that thread waits until the kernel has consumed the
 * request (ring.h, W2).
 */
static void in_parts(struct uring *uring)
{
	uring->parts = true;
	uring->ring.renew = renew;
	if (uring->watches)
		return;
	uring->watches = true;
	uring->watcher = (struct guard_watcher){ .closing = closing,
						 .closed = closed };
	flexsc__guard_watch(&uring->watcher);
}

static inline bool use_ring(struct flexsc_loop *loop, uint32_t index,
			    struct flexsc_entry *entry, struct call *call,
			    unsigned int op, enum route route)
{
	struct io_uring_sqe *sqe = uring_request(loop);
	unsigned int known = uring_of(loop)->known;

	if (route == BY_RING_FOLLOWED && call->poll_waits) {
		call->poll_waits = false;
		known |= URING_POLL_WAITS;
	}
	if (!uring_prepare(sqe, op, entry, known)) {
		uring_return(loop);
		return false;
	}
	if (op == IORING_OP_SPLICE)
		flexsc__fds_use_position(entry);
	sqe->user_data = call->name;
	entry_begin_alone(entry);
	call->route = (uint8_t)(entry->nr < NR_ACCEPT ? route :
							BY_RING_MULTISHOT);
	if (route == BY_RING_AT_ONCE && !write_is_short(entry) &&
	    flexsc__partial(entry)) {
		call->route = BY_RING_IN_PARTS;
		flexsc__call_guard(loop, index);
		in_parts(uring_of(loop));
	}
	return true;
}

/* Make the call without io_uring: inline if it can't block, otherwise in the pool. */
static void use_plain(struct flexsc_loop *loop, uint32_t index)
{
	const struct call_info *row =
		flexsc__call_info(entry_of(loop, index)->nr);

	switch (flexsc__call_class(row, entry_of(loop, index))) {
	case CLASS_DISK:
		if (flexsc__engine_look(loop, index))
			break;
		/* fall through */
	case CLASS_WAIT:
	case CLASS_ADMIN:
	case CLASS_WORK:
		flexsc__fds_use_position(entry_of(loop, index));
		if (flexsc__pool_ensure(loop)) {
			call_of(loop, index)->route = BY_POOL;
			calls_append(loop, &uring_of(loop)->to_pool, index);
		} else {
			/* No syscall thread can be created, so the call fails. */
			call_refuse(loop, index, loop->no_thread);
		}
		break;
	case CLASS_FAST:
	case CLASS_SELF:
		flexsc__fds_use_position(entry_of(loop, index));
		flexsc__engine_inline(loop, index);
		break;
	case CLASS_NEVER:
	case CLASS_NONE:
	case CLASS_RING:
		call_refuse(loop, index, -EOPNOTSUPP);
		break;
	}
}

/*
 * Let the ring execute a call that closes a descriptor. First, calls that wait for the
 * descriptor switch to a duplicate. False: the ring has no such operation.
 */
static COLD bool close_by_ring(struct flexsc_loop *loop, uint32_t index)
{
	struct flexsc_entry *entry = entry_of(loop, index);
	unsigned int op = flexsc__call_info(entry->nr)->op;

	if (!op || !(uring_of(loop)->operations >> op & 1))
		return false;
	flexsc__closing_begin(entry);
	return use_ring(loop, index, entry, call_of(loop, index), op,
			BY_RING_FOLLOWED);
}

/* Make the call without the ring, or complete it if it was cancelled already. */
static COLD void route_past_ring(struct flexsc_loop *loop, uint32_t index)
{
	uring_of(loop)->others++;
	if (entry_status(entry_of(loop, index)) == FLEXSC_SUBMITTED)
		use_plain(loop, index);
	else
		call_refuse(loop, index, -ECANCELED);
}

/*
 * Route a call that plan_admit() keeps from the ring: make it without the ring.
 * Exception: a call that closes a descriptor goes to the ring, after the calls that
 * wait for the descriptor have switched to a duplicate.
 */
static COLD void route_closing(struct flexsc_loop *loop, uint32_t index)
{
	if (!closes(entry_of(loop, index)) || !close_by_ring(loop, index))
		route_past_ring(loop, index);
}

/* Submit the remainder of a read or write, whose entry is BUSY. */
static void go_on(struct flexsc_loop *loop, uint32_t index)
{
	const struct flexsc_entry *entry = entry_of(loop, index);
	struct io_uring_sqe *sqe = uring_request(loop);

	flexsc__call_renew(loop, index);
	uring_prepare(sqe, flexsc__calls[entry->nr].op, entry, 0);
	sqe->user_data = name_of(loop, index);
	if (call_of(loop, index)->route == BY_RING_EAGER)
		flexsc__uring_eager_request(loop, sqe);
	else if (call_of(loop, index)->route == BY_RING_IN_PARTS)
		uring_of(loop)->ring.renew = renew;
}

/* Route all calls of one operation. Returns their number. */
static inline __attribute__((always_inline)) uint32_t
route_group_by(struct flexsc_loop *loop, unsigned int op, enum route route)
{
	const bool known = op && uring_of(loop)->operations >> op & 1;
	uint32_t n = 0, index = queue_take(&loop->submitted[op]);

	while (index != NONE) {
		struct flexsc_entry *entry = entry_of(loop, index);
		struct call *call = call_of(loop, index);
		uint32_t next = call->next;

		if (entry_status(entry) != FLEXSC_SUBMITTED)
			route_past_ring(loop, index);
		else if (route == BY_RING_EAGER && known &&
			 fds_is_opened((uint32_t)entry->args[0]) &&
			 flexsc__uring_eager(loop, index))
			(void)0;
		else if (!plan_admit(entry))
			route_closing(loop, index);
		else if (!known ||
			 !use_ring(loop, index, entry, call, op,
				   route == BY_RING_EAGER ? BY_RING : route))
			route_past_ring(loop, index);
		n++;
		index = next;
	}
	return n;
}

static __attribute__((noinline)) uint32_t
route_group(struct flexsc_loop *loop, unsigned int op)
{
	/*
	 * route_group_by() is inlined with a constant route, so that only writes,
	 * and sends on old kernels, pay for comparing the length.
	 */
	if (flexsc__uring_in_parts(op, uring_of(loop)->known))
		return route_group_by(loop, op, BY_RING_AT_ONCE);
	if (is_followed(op))
		return route_group_by(loop, op, BY_RING_FOLLOWED);
	if (op == IORING_OP_READ)
		return route_group_by(loop, op, BY_RING_EAGER);
	return route_group_by(loop, op, BY_RING);
}

/*
 * Sort all requests of the batch by operation, because the kernel executes similar
 * calls in sequence faster. Calls with entries are in groups already, but direct calls
 * are in the order of posting.
 */
static void route_sort(struct uring *uring)
{
	const struct ring *ring = &uring->ring;
	const uint32_t first = *ring->uring.sq.ktail;
	const uint32_t n = ring->tail - first;
	uint32_t place[GROUPS] = { 0 }, sum = 0;

	if (!uring->sorted)
		uring->sorted = calloc(ring->mask + 1, sizeof(*uring->sorted));
	if (!uring->sorted)
		return;
	for (uint32_t i = 0; i < n; i++)
		place[ring->sqes[(first + i) & ring->mask].opcode % GROUPS]++;
	for (unsigned int op = 0; op < GROUPS; op++) {
		uint32_t count = place[op];

		place[op] = sum;
		sum += count;
	}
	for (uint32_t i = 0; i < n; i++) {
		const struct io_uring_sqe *sqe =
			&ring->sqes[(first + i) & ring->mask];

		uring->sorted[place[sqe->opcode % GROUPS]++] = *sqe;
	}
	for (uint32_t i = 0; i < n; i++)
		ring->sqes[(first + i) & ring->mask] = uring->sorted[i];
}

/* Route all calls that aren't direct. Returns their number. */
static __attribute__((noinline)) uint32_t route_all(struct flexsc_loop *loop)
{
	struct uring *uring = uring_of(loop);
	uint32_t n = 0, index;

	while ((index = calls_take(loop, &uring->again)) != NONE)
		go_on(loop, index);
	for (; loop->groups; loop->groups &= loop->groups - 1)
		n += route_group(loop,
				 (unsigned int)__builtin_ctzll(loop->groups));
	if (uring->parts)
		flexsc__uring_direct_closing(loop);
	if (uring->to_pool.count) {
		/*
		 * Submit eager reads before the pool gets calls: a call on a syscall
		 * thread could move the file's position before the kernel reads there.
		 */
		if (uring->eager)
			flexsc__uring_eager_submit(loop);
		flexsc__pool_submit(loop_pool(loop), &uring->to_pool);
	}
	return n;
}

static void route_batch(struct flexsc_loop *loop)
{
	struct uring *uring = uring_of(loop);
	uint32_t n = 0;

	uring->direct += uring->ring.tail - uring->counted;
	uring->counted = uring->ring.tail;
	if (loop->groups || uring->again.count)
		n = route_all(loop);
	n += uring->direct;
	if (!n)
		return;
	count(&loop->stats->by_uring, n - uring->others);
	flexsc__stats_batch(loop, n);
	if (uring->parts || uring->kinds & (uring->kinds - 1))
		route_sort(uring);
	uring->others = 0;
	uring->direct = 0;
	uring->kinds = 0;
	uring->parts = false;
	uring->eager = false;
}

void flexsc__uring_route(struct flexsc_loop *loop)
{
	route_batch(loop);
	if (uring_of(loop)->fixed)
		flexsc__uring_use_fixed(loop);
}
