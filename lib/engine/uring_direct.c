/* SPDX-License-Identifier: MIT */
#include "uring_direct.h"

#include <sys/syscall.h>

#include "lib/files/fds.h"
#include "lib/files/plan.h"
#include "lib/loop/direct.h"
#include "lib/files/closing.h"
#include "uring_reap.h"
#include "uring_fields.h"
#include "uring_ops.h"

/* Posting. */

/* Do the descriptor's facts allow io_uring to make the call? */
static inline bool direct_admits(uint32_t fd, uint8_t use)
{
	return !use || use == EFFECT_CLOSES ||
	       (fd < FDS_MAX && (fds_known(fd) & use) == use);
}

static inline bool direct_has_room(const struct flexsc_loop *loop)
{
	const struct uring *uring = uring_of(loop);

	return loop->free != NONE &&
	       (int32_t)(uring->direct_end - uring->ring.tail) > 0;
}

/* Take the request for the call that will use the first free entry. */
static inline struct io_uring_sqe *direct_request(struct flexsc_loop *loop,
						  uint8_t op)
{
	struct uring *uring = uring_of(loop);
	struct ring *ring = &uring->ring;

	uring->kinds |= 1ULL << op;
	return &ring->sqes[ring->tail++ & ring->mask];
}

/*
 * The macros' arguments are function names and lists, which can't be put in parentheses
 * in the expansion.
 */
/* NOLINTBEGIN(bugprone-macro-parentheses) */

/*
 * Defines a function that posts calls of one number. All properties are constants, so
 * that the compiler leaves only a few comparisons. "parameters" are the call's three or
 * six arguments. "otherwise" posts the call with an entry, if it can't be direct.
 */
#define DIRECT_OF(word, op, use, parameters, arguments, otherwise,	\
		  fits, f_fd, f_addr, f_len, f_off, f_flags)		\
static int post_##word(struct flexsc_loop *loop, struct flexsc_cb *cb,	\
		       unsigned int nr, UNPACK parameters)		\
{									\
	const uint64_t a[FLEXSC_ARGS_MAX] = { UNPACK arguments };	\
	struct io_uring_sqe *sqe;					\
	struct call *call;						\
									\
	if (!direct_admits((uint32_t)a0, use) || !(fits) ||		\
	    !direct_has_room(loop) ||					\
	    ((use) & EFFECT_CLOSES && !fds_forget_closed((uint32_t)a0))) \
		return otherwise(loop, cb, nr, UNPACK arguments);	\
	sqe = direct_request(loop, op);					\
	sqe_fill(sqe, op, f_fd, f_addr, f_len, f_off, f_flags);		\
	call = direct_post(loop, cb, SYS_##word);			\
	sqe->user_data = call->name;					\
	call->direct.fd = (uint32_t)a0;					\
	call->direct.len = (uint32_t)a2;				\
	if (op != IORING_OP_CLOSE && op != IORING_OP_READ)		\
		call->direct.addr = a1;					\
	return 0;							\
}
#define UNPACK(...)	__VA_ARGS__
#define DIRECT_(...)	DIRECT_OF(__VA_ARGS__)
#define DIRECT3(word, op, use, ...)					\
	DIRECT_(word, op, use, (uint64_t a0, uint64_t a1, uint64_t a2),	\
		(a0, a1, a2), flexsc__post_entry3, __VA_ARGS__)
#define DIRECT6(word, op, use, ...)					\
	DIRECT_(word, op, use,						\
		(uint64_t a0, uint64_t a1, uint64_t a2, uint64_t a3,	\
		 uint64_t a4, uint64_t a5),				\
		(a0, a1, a2, a3, a4, a5), flexsc__post_entry, __VA_ARGS__)

/* NOLINTEND(bugprone-macro-parentheses) */

#define WAITS		NEED_WAITS
#define READS		(NEED_WAITS | NEED_POLLS_IN)
#define SEEKS		NEED_SEEKS
#define CLOSES		EFFECT_CLOSES

/*
 * The calls that may be direct: X(name, operation, required facts, fields). The first
 * list has those with at most three arguments.
 */
#define DIRECT_CALLS3(X)						\
	X(close,	IORING_OP_CLOSE,	CLOSES,	 FIELDS_FD)	\
	X(read,		IORING_OP_READ,		READS,	 FIELDS_RW)	\
	X(readv,	IORING_OP_READV,	READS,	 FIELDS_RW)	\
	X(recvmsg,	IORING_OP_RECVMSG,	WAITS,	 FIELDS_RECVMSG) \
	X(sendmsg,	IORING_OP_SENDMSG,	WAITS,	 FIELDS_SENDMSG) \
	X(fsync,	IORING_OP_FSYNC,	0,	 FIELDS_FD)	\
	X(fdatasync,	IORING_OP_FSYNC,	0,	 FIELDS_DATASYNC)
#define DIRECT_CALLS6(X)						\
	X(pread64,	IORING_OP_READ,		SEEKS,	 FIELDS_RW_AT)	\
	X(preadv,	IORING_OP_READV,	SEEKS,	 FIELDS_RW_AT)	\
	X(recvfrom,	IORING_OP_RECV,		WAITS,	 FIELDS_RECVFROM) \
	X(sendto,	IORING_OP_SEND,		WAITS,	 FIELDS_SEND)	\
	X(statx,	IORING_OP_STATX,	0,	 FIELDS_STATX)

DIRECT_CALLS3(DIRECT3)
DIRECT_CALLS6(DIRECT6)

/* A post function with six arguments for a call that has at most three. */
static int post_by_three(struct flexsc_loop *loop, struct flexsc_cb *cb,
			 unsigned int nr, uint64_t a0, uint64_t a1, uint64_t a2,
			 uint64_t a3, uint64_t a4, uint64_t a5)
{
	return loop->posts3[nr](loop, cb, nr, a0, a1, a2);
}

#define ROW3(word, op, use, ...) \
	{ SYS_##word, op, use, post_by_three, post_##word },
#define ROW6(word, op, use, ...) \
	{ SYS_##word, op, use, post_##word, flexsc__post_entry3 },

static const struct {
	uint16_t nr;
	uint8_t op, use;
	post_fn post;
	post3_fn post3;
} directs[] = { DIRECT_CALLS3(ROW3) DIRECT_CALLS6(ROW6) };

/*
 * Called when a call is posted that may make the cached facts of descriptors wrong.
 * io_uring has no operation for such a call, so it is made before the batch is submitted.
 * Post the batch's remaining calls with entries: the facts of their descriptors are then
 * read after the change.
 */
static void direct_pause(struct flexsc_loop *loop)
{
	uring_of(loop)->direct_end = uring_of(loop)->ring.tail;
}

static int post_changing(struct flexsc_loop *loop, struct flexsc_cb *cb,
			 unsigned int nr, uint64_t a0, uint64_t a1, uint64_t a2,
			 uint64_t a3, uint64_t a4, uint64_t a5)
{
	direct_pause(loop);
	return flexsc__post_entry(loop, cb, nr, a0, a1, a2, a3, a4, a5);
}

static int post3_changing(struct flexsc_loop *loop, struct flexsc_cb *cb,
			  unsigned int nr, uint64_t a0, uint64_t a1,
			  uint64_t a2)
{
	direct_pause(loop);
	return flexsc__post_entry3(loop, cb, nr, a0, a1, a2);
}

static void posts_set(struct flexsc_loop *loop, unsigned int nr, post_fn post,
		      post3_fn post3)
{
	loop->posts[nr] = post;
	loop->posts3[nr] = post3;
}

void flexsc__uring_posts(struct flexsc_loop *loop)
{
	const struct uring *uring = uring_of(loop);

	for (unsigned int nr = 0; nr < flexsc__call_count; nr++)
		if (flexsc__plan_uses[nr] & EFFECT_CHANGES &&
		    call_can_be_posted(&flexsc__calls[nr]))
			posts_set(loop, nr, post_changing, post3_changing);
	for (size_t i = 0; i < sizeof(directs) / sizeof(directs[0]); i++) {
		unsigned int nr = directs[i].nr, op = directs[i].op;

		RULE(flexsc__calls[nr].op == op);
		RULE(flexsc__plan_uses[nr] == directs[i].use);
		RULE(!(flexsc__calls[nr].fds & ~1U));
		if (uring->operations >> op & 1 &&
		    !flexsc__uring_in_parts(op, uring->known))
			posts_set(loop, nr, directs[i].post, directs[i].post3);
	}
}

/* Shadows. */

struct io_uring_sqe *flexsc__uring_unseen(const struct uring *uring,
					  uint64_t name)
{
	const struct ring *ring = &uring->ring;

	for (uint32_t i = ring->tail; i != ring_unseen(ring);) {
		struct io_uring_sqe *sqe = &ring->sqes[--i & ring->mask];

		if (sqe->user_data == name)
			return sqe;
	}
	return NULL;
}

/*
 * Turn the request whose user_data is "name" into a no-op. False: the kernel may have
 * seen the request.
 */
static bool direct_withdraw(struct uring *uring, uint64_t name)
{
	struct io_uring_sqe *sqe = flexsc__uring_unseen(uring, name);

	if (!sqe)
		return false;
	do_nothing(sqe);
	uring->direct--;
	return true;
}

void flexsc__uring_shadow(struct flexsc_loop *loop, uint32_t index)
{
	struct call *call = call_of(loop, index);

	flexsc__uring_collect(loop);
	if (!call_is_direct(call))
		return;
	if (!direct_withdraw(uring_of(loop), call->name)) {
		uring_direct_begin(loop, index);
		return;
	}
	flexsc__direct_fill(loop, index);
	queue_append(&loop->submitted[0], call, index);
	loop->groups |= 1;
}

/*
 * Called if calls may be waiting for the descriptor that a direct close() closes: give
 * the close() an entry, so that uring_follow() reports the close to those calls.
 */
static void direct_follow(struct flexsc_loop *loop, uint32_t index)
{
	uring_direct_begin(loop, index);
	call_of(loop, index)->route = BY_RING_FOLLOWED;
	flexsc__closing_begin(entry_of(loop, index));
}

void flexsc__uring_direct_closing(struct flexsc_loop *loop)
{
	const struct ring *ring = &uring_of(loop)->ring;

	for (uint32_t i = ring_unseen(ring); i != ring->tail; i++) {
		const struct io_uring_sqe *sqe = &ring->sqes[i & ring->mask];
		uint32_t index = (uint32_t)sqe->user_data;

		if (sqe->opcode == IORING_OP_CLOSE &&
		    call_is_direct(call_of(loop, index)) &&
		    fds_is_marked(call_of(loop, index)->direct.fd))
			direct_follow(loop, index);
	}
}
