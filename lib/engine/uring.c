/* SPDX-License-Identifier: MIT */
/*
 * The uring engine: io_uring for each call that it has an operation for. Other
 * calls run inline at flush time if they can't block, and on a pool of syscall
 * threads, made when first needed, if they can; so the loop never blocks.
 * Owner only, but for wake.
 *
 * One io_uring_enter() takes a batch to the kernel, brings results back, and
 * sleeps when there is nothing else to do.
 */
#include "uring_ops.h"
#include "uring_why.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "../pool/closing.h"
#include "engine.h"
#include "../calls/fds.h"
#include "../calls/own_fd.h"
#include "../loop/loop.h"
#include "../calls/partial.h"
#include "../pool/pool.h"
#include "../calls/refine.h"
#include "../base/syscall.h"
#include "writes.h"
#include "ring.h"
#include "../base/compiler.h"
#include "../loop/stats.h"
#include "rest.h"
#include "../loop/cancel.h"

#define ARRAY_SIZE(a)	(sizeof(a) / sizeof((a)[0]))

/* Names of completions that aren't an entry's. */
#define WAKE		UINT64_MAX
#define IGNORE		(UINT64_MAX - 1)
#define CANCEL		0x80000000U	/* in a name: of a cancellation */

/* How an entry is executed, in call->route. */
enum route {
	BY_POOL,
	BY_RING,
	BY_RING_FOLLOWED,	/* uring_follow() looks at how it ends */
	BY_RING_AT_ONCE,	/* uring_follow(): a write of a few bytes */
	BY_RING_IN_PARTS,	/* uring_follow(): a long write: writes.h */
};

struct uring {
	struct ring ring;
	uint64_t operations;	/* bit n: the kernel has operation n */
	unsigned int known;	/* of enum uring_known */
	struct call_list to_pool;
	struct call_list again;		/* writes with a rest */
	struct writes writes;
	uint32_t others;		/* entries that the ring didn't get */
	/*
	 * The bell: other threads write to the eventfd, and end a pending read
	 * of it.
	 */
	int bell;
	bool armed;
	uint64_t rung;
};

static struct uring *uring_of(const struct flexsc_loop *loop)
{
	return loop->engine_data;
}

/* An entry's use, named so that a later use of the entry isn't meant. */
static uint64_t name_of(const struct flexsc_loop *loop, uint32_t index)
{
	return (uint64_t)call_of(loop, index)->gen << 32 | index;
}

/* Completions. */

static void write_on_or_end(struct flexsc_loop *loop, uint32_t index,
			    int32_t res)
{
	struct uring *uring = uring_of(loop);
	struct call *call = call_of(loop, index);

	if (call->cancel == CANCEL_NOT &&
	    flexsc__partial_rest(entry_of(loop, index), &call->partial, res)) {
		if (call->route == BY_RING_IN_PARTS)
			flexsc__write_continue(loop, &uring->writes, index);
		calls_append(loop, &uring->again, index);
		return;
	}
	if (call->route == BY_RING_IN_PARTS)
		flexsc__write_end(loop, &uring->writes, index);
	call_done(loop, index, flexsc__partial_result(&call->partial, res));
}

/*
 * End a call that io_uring does differently, that makes a descriptor, or that
 * closes one which other calls may wait for.
 */
static COLD void uring_follow(struct flexsc_loop *loop, uint32_t index,
			      int32_t res)
{
	struct flexsc_entry *entry = entry_of(loop, index);
	struct call *call = call_of(loop, index);

	if (call->route >= BY_RING_AT_ONCE) {
		write_on_or_end(loop, index, res);
		return;
	}
	if (closes(entry))
		flexsc__closing_end(entry);
	flexsc__fds_note_made(entry, res);
	call_done(loop, index, flexsc__uring_result(entry, res));
}

/*
 * A cancellation may not find its request, or not reach it, while the kernel
 * moves the request from one way of waiting to another.
 */
static void uring_cancel_ended(struct flexsc_loop *loop, uint64_t name,
			       int32_t res)
{
	uint32_t index = (uint32_t)name;

	if (res < 0 && name_of(loop, index) == name &&
	    entry_status(entry_of(loop, index)) == FLEXSC_CANCEL)
		flexsc__cancel_later(loop, index);
}

/* Collect a completion that isn't an entry's. */
static COLD void uring_collect_other(struct flexsc_loop *loop, uint64_t what,
				     int32_t res)
{
	if (what == WAKE)
		uring_of(loop)->armed = false;
	else if (what != IGNORE)
		uring_cancel_ended(loop, what & ~(uint64_t)CANCEL, res);
}

static void uring_collect(struct flexsc_loop *loop)
{
	struct uring *uring = uring_of(loop);
	struct io_uring_cq *cq = &uring->ring.uring.cq;
	/* R3: acquires the results that the kernel released with the tail. */
	uint32_t tail = __atomic_load_n(cq->ktail, __ATOMIC_ACQUIRE);
	uint32_t head = *cq->khead;
	const uint32_t mask = cq->ring_mask;
	const struct io_uring_cqe *cqes = cq->cqes;

	for (; head != tail; head++) {
		const struct io_uring_cqe *cqe = &cqes[head & mask];
		uint32_t index = (uint32_t)cqe->user_data;

		if (index >= CANCEL) {
			uring_collect_other(loop, cqe->user_data, cqe->res);
			continue;
		}
		/* The cb's callback runs soon. */
		__builtin_prefetch(call_of(loop, index)->cb, 1);
		if (call_of(loop, index)->route == BY_RING)
			call_done(loop, index, cqe->res);
		else
			uring_follow(loop, index, cqe->res);
	}
	/* R4: the kernel may use these results' room again. */
	__atomic_store_n(cq->khead, head, __ATOMIC_RELEASE);
}

/* The ring is full of requests. */
static COLD void uring_make_room(struct flexsc_loop *loop)
{
	struct ring *ring = &uring_of(loop)->ring;

	if (flexsc__ring_submit(ring))
		uring_collect(loop);
	if (ring->polled)
		io_uring_sqring_wait(&ring->uring);
}

/* A request to fill, come what may. */
static inline struct io_uring_sqe *uring_request(struct flexsc_loop *loop)
{
	struct io_uring_sqe *sqe;

	while (!(sqe = ring_request(&uring_of(loop)->ring)))
		uring_make_room(loop);
	return sqe;
}

/* Routing. */

static bool use_pool(struct flexsc_loop *loop)
{
	return loop_pool(loop) ||
	       !flexsc__pool_create(loop, loop->options.max_threads);
}

/* Does uring_follow() have something to do for this operation's calls? */
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
		ring_return(&uring_of(loop)->ring);
		return false;
	}
	sqe->user_data = (uint64_t)call->gen << 32 | index;
	entry_begin_alone(entry);
	call->route = (uint8_t)route;
	if (route == BY_RING_AT_ONCE && !write_is_short(entry) &&
	    flexsc__partial(entry)) {
		call->route = BY_RING_IN_PARTS;
		flexsc__write_begin(loop, &uring_of(loop)->writes, index);
	}
	return true;
}

/* Make the call plainly, where it can't delay the loop. */
static void use_plain(struct flexsc_loop *loop, uint32_t index)
{
	const struct table_row *row =
		flexsc__table_row(entry_of(loop, index)->nr);

	switch (flexsc__refine(row, entry_of(loop, index))) {
	case CLASS_DISK:
		if (flexsc__engine_look(loop, index))
			break;
		/* fall through */
	case CLASS_WAIT:
		if (use_pool(loop)) {
			call_of(loop, index)->route = BY_POOL;
			calls_append(loop, &uring_of(loop)->to_pool, index);
		} else {
			/* Without a thread the call is never made. */
			call_refuse(loop, index, -ECANCELED);
		}
		break;
	case CLASS_FAST:
	case CLASS_SELF:
		flexsc__engine_inline(loop, index);
		break;
	case CLASS_NEVER:
	case CLASS_NONE:
		call_refuse(loop, index, -EOPNOTSUPP);
		break;
	}
}

/*
 * Have the ring execute a call that closes a descriptor, after telling the
 * calls that wait for that descriptor. False: the ring has no such operation.
 */
static COLD bool close_by_ring(struct flexsc_loop *loop, uint32_t index)
{
	struct flexsc_entry *entry = entry_of(loop, index);
	unsigned int op = flexsc__table_row(entry->nr)->op;

	if (!op || !(uring_of(loop)->operations >> op & 1))
		return false;
	flexsc__closing_begin(entry);
	return use_ring(loop, index, entry, call_of(loop, index), op,
			BY_RING_FOLLOWED);
}

/* Make the call without the ring; it may be cancelled already. */
static COLD void route_past_ring(struct flexsc_loop *loop, uint32_t index)
{
	uring_of(loop)->others++;
	if (entry_status(entry_of(loop, index)) == FLEXSC_SUBMITTED)
		use_plain(loop, index);
	else
		call_refuse(loop, index, -ECANCELED);
}

/*
 * A descriptor's facts keep the call from the ring, unless the call closes it:
 * then the calls that wait for the descriptor are told first.
 */
static COLD void route_closing(struct flexsc_loop *loop, uint32_t index)
{
	if (!closes(entry_of(loop, index)) || !close_by_ring(loop, index))
		route_past_ring(loop, index);
}

/* Go on with the rest of a write, whose entry is BUSY. */
static void write_on(struct flexsc_loop *loop, uint32_t index)
{
	const struct flexsc_entry *entry = entry_of(loop, index);
	struct io_uring_sqe *sqe = uring_request(loop);

	uring_prepare(sqe, flexsc__table[entry->nr].op, entry, 0);
	sqe->user_data = name_of(loop, index);
}

/* Route all calls of one operation; returns how many they are. */
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
		else if (!fds_admit(entry))
			route_closing(loop, index);
		else if (!known ||
			 !use_ring(loop, index, entry, call, op, route))
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
	 * Each call of route_group_by() has a constant route: only writes are
	 * asked for their length.
	 */
	if (op == IORING_OP_WRITE || op == IORING_OP_WRITEV)
		return route_group_by(loop, op, BY_RING_AT_ONCE);
	if (is_followed(op))
		return route_group_by(loop, op, BY_RING_FOLLOWED);
	return route_group_by(loop, op, BY_RING);
}

static void uring_route(struct flexsc_loop *loop)
{
	struct uring *uring = uring_of(loop);
	uint32_t n = 0, index;

	while ((index = calls_take(loop, &uring->again)) != NONE)
		write_on(loop, index);
	if (!loop->groups)
		return;
	uring->others = 0;
	for (; loop->groups; loop->groups &= loop->groups - 1)
		n += route_group(loop,
				 (unsigned int)__builtin_ctzll(loop->groups));
	count(&loop->stats->by_uring, n - uring->others);
	if (uring->to_pool.count)
		flexsc__pool_submit(loop_pool(loop), &uring->to_pool);
	flexsc__stats_batch(loop, n);
}

/* The engine. */

static void uring_submit(struct flexsc_loop *loop)
{
	uring_route(loop);
	if (ring_unsubmitted(&uring_of(loop)->ring) &&
	    flexsc__ring_submit(&uring_of(loop)->ring))
		uring_collect(loop);
}

/* Have a read pending that ends when somebody rings. */
static void uring_arm(struct flexsc_loop *loop)
{
	struct uring *uring = uring_of(loop);
	struct io_uring_sqe *sqe;

	if (uring->armed)
		return;
	sqe = uring_request(loop);
	io_uring_prep_read(sqe, uring->bell, &uring->rung,
			   sizeof(uring->rung), 0);
	io_uring_sqe_set_data64(sqe, WAKE);
	uring->armed = true;
}

static int uring_wait(struct flexsc_loop *loop, uint64_t ns)
{
	struct uring *uring = uring_of(loop);
	struct ring *ring = &uring->ring;

	uring_route(loop);
	if (ns && io_uring_cq_ready(&ring->uring))
		ns = 0;
	if (ns) {
		uring_arm(loop);
		if (flexsc__sleep_begin(loop, &ns)) {
			flexsc__ring_enter(ring, ns);
			flexsc__sleep_end(loop);
			uring_collect(loop);
			return 0;
		}
	}
	if (ring_unsubmitted(ring) || ring_needs_enter(ring))
		flexsc__ring_enter(ring, 0);
	uring_collect(loop);
	return 0;
}

static void uring_hold(struct flexsc_loop *loop, int fd)
{
	flexsc__writes_hold(loop, &uring_of(loop)->writes, fd);
}

static bool uring_stirs(const struct flexsc_loop *loop)
{
	const struct ring *ring = &uring_of(loop)->ring;

	return io_uring_cq_ready(&ring->uring) || ring_needs_enter(ring);
}

static void uring_wake(struct flexsc_loop *loop)
{
	const uint64_t one = 1;

	count_shared(&loop->stats->mode_switches, 1);
	raw_syscall(SYS_write, (uint64_t)uring_of(loop)->bell, PTR(&one),
		    sizeof(one), 0, 0, 0);
}

static void cancel_request(struct flexsc_loop *loop, uint64_t name,
			   uint64_t own_name)
{
	struct io_uring_sqe *sqe = uring_request(loop);

	io_uring_prep_cancel64(sqe, name, 0);
	io_uring_sqe_set_data64(sqe, own_name);
}

static void uring_cancel(struct flexsc_loop *loop, uint32_t index)
{
	uint64_t name = name_of(loop, index);

	if (call_of(loop, index)->route == BY_POOL)
		flexsc__pool_cancel(loop_pool(loop), index);
	else
		cancel_request(loop, name, name | CANCEL);
}

/* Opening and closing. */

/*
 * Ask the kernel what it can do, instead of concluding that from its version. A
 * filter may forbid io_uring's other two calls as well: both are tried.
 */
static int uring_probe(struct uring *uring)
{
	struct io_uring_probe *probe;
	long err;

	probe = calloc(1, sizeof(*probe) + GROUPS * sizeof(probe->ops[0]));
	if (!probe)
		return -ENOMEM;
	err = io_uring_register_probe(&uring->ring.uring, probe, GROUPS);
	for (unsigned int op = 0; !err && op < probe->ops_len; op++)
		if (probe->ops[op].flags & IO_URING_OP_SUPPORTED)
			uring->operations |= 1ULL << op;
	free(probe);
	/* Sending to an address came in together with this operation. */
	if (uring->operations >> IORING_OP_SEND_ZC & 1)
		uring->known = URING_SENDS_TO;
	return err ? (int)err : flexsc__ring_submit(&uring->ring);
}

static int uring_set_up(struct flexsc_loop *loop, struct uring *uring)
{
	unsigned int workers[2] = { 0, loop->options.max_threads };
	int err = uring_probe(uring);

	if (err)
		return err;
	uring->bell = flexsc__own_fd(eventfd(0, EFD_CLOEXEC));
	if (uring->bell < 0)
		return -errno;
	/* The limit of workers is better to have, and not needed. */
	io_uring_register_iowq_max_workers(&uring->ring.uring, workers);
	return 0;
}

static int uring_explain(struct flexsc_loop *loop, int err)
{
	switch (err) {
	case -EMFILE:
	case -ENFILE:
		return err;
	case -ERANGE:
		return -EINVAL;
	default:
		flexsc__uring_why(err, loop->why, sizeof(loop->why));
		return -EOPNOTSUPP;
	}
}

static int uring_open(struct flexsc_loop *loop)
{
	const unsigned int needed = IORING_FEAT_NODROP | IORING_FEAT_FAST_POLL |
				    IORING_FEAT_RW_CUR_POS |
				    IORING_FEAT_EXT_ARG;
	struct uring *uring = calloc(1, sizeof(*uring));
	int err;

	if (!uring)
		return -ENOMEM;
	err = flexsc__ring_init(&uring->ring, &loop->options,
			&loop->stats->mode_switches);
	if (err) {
		free(uring);
		return uring_explain(loop, err);
	}
	if ((uring->ring.uring.features & needed) == needed) {
		err = uring_set_up(loop, uring);
	} else {
		snprintf(loop->why, sizeof(loop->why),
			 "the kernel's io_uring is older than 5.11: it lacks "
			 "time limits on waiting");
		err = -EOPNOTSUPP;
	}
	if (err) {
		flexsc__ring_fini(&uring->ring);
		free(uring);
		return loop->why[0] ? err : uring_explain(loop, err);
	}
	flexsc__writes_init(&uring->writes);
	loop->engine_data = uring;
	loop->group_mask = GROUPS - 1;
	return 0;
}

/* The kernel must not write to "rung" after it was freed. */
static void uring_disarm(struct flexsc_loop *loop)
{
	while (uring_of(loop)->armed) {
		cancel_request(loop, WAKE, IGNORE);
		flexsc__ring_enter(&uring_of(loop)->ring, 1000000);
		uring_collect(loop);
	}
}

static void uring_close(struct flexsc_loop *loop)
{
	struct uring *uring = uring_of(loop);

	uring_disarm(loop);
	flexsc__ring_fini(&uring->ring);
	flexsc__own_fd_close(uring->bell);
	free(uring);
}

static void uring_forked(struct flexsc_loop *loop)
{
	struct uring *uring = uring_of(loop);

	flexsc__own_fd_close(uring->ring.uring.ring_fd);
	flexsc__own_fd_close(uring->bell);
	free(uring);
}

const struct engine flexsc__engine_uring = {
	.name = "uring",
	.open = uring_open,
	.submit = uring_submit,
	.wait = uring_wait,
	.stirs = uring_stirs,
	.wake = uring_wake,
	.cancel = uring_cancel,
	.hold = uring_hold,
	.close = uring_close,
	.forked = uring_forked,
};
