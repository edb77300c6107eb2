/* SPDX-License-Identifier: MIT */
/*
 * Declarations shared by the files of the uring engine: uring.c opens, waits and
 * closes; uring_direct.c posts calls directly to the ring; uring_route.c submits the
 * others to it; uring_reap.c takes results from it. A request is an SQE, a result is a
 * CQE. Owner only, except for uring_heir.c.
 */
#ifndef FLEXSC_URING_H
#define FLEXSC_URING_H

#include <stdbool.h>
#include <stdint.h>

#include "lib/files/guard.h"
#include "lib/loop/direct.h"
#include "lib/loop/guarded.h"
#include "lib/loop/buffers.h"
#include "lib/loop/loop.h"
#include "ring.h"

/* Values of user_data that don't name an entry. */
#define WAKE		UINT64_MAX
#define IGNORE		(UINT64_MAX - 1)
#define CANCEL		0x80000000U	/* this bit in user_data: a cancellation */

/* How an entry is executed; call->route. */
enum route {
	BY_POOL,
	BY_RING,
	BY_RING_FOLLOWED,	/* uring_follow() handles its completion */
	BY_RING_MULTISHOT,	/* uring_follow() reports each result */
	BY_RING_EAGER,		/* uring_eager.h */
	BY_RING_AT_ONCE,	/* as BY_RING_FOLLOWED, for a short write */
	BY_RING_IN_PARTS,	/* as BY_RING_FOLLOWED, for a long write; guarded */
};

struct fixed;

struct uring {
	struct ring ring;
	uint64_t operations;	/* bit n: the kernel supports operation n */
	unsigned int known;	/* of enum uring_known */
	struct call_list to_pool;
	struct call_list again;		/* calls whose remainder is submitted next */
	uint32_t others;		/* entries of this batch that don't go to the
					 * ring */
	/*
	 * "direct": number of direct calls since the last batch, as far as they were
	 * counted. "counted": index of the first request that wasn't counted yet.
	 */
	uint32_t direct, counted;
	uint32_t direct_end;	/* direct calls may take requests before this index */
	bool eager;		/* this batch has an eager read (uring_eager.h) */
	bool parts;		/* this batch has a long write (BY_RING_IN_PARTS) */
	uint64_t kinds;		/* bit n: this batch has a direct call with operation
				 * n */
	struct guard_watcher watcher;	/* is notified of closes, if "watches" is set;
					 * guarded by the watchers' lock */
	bool watches;
	struct fixed *fixed;	/* fixed descriptors; NULL: never used */
	struct io_uring_sqe *sorted;	/* room to sort a batch (uring_route.c); may be
					 * NULL */
	/*
	 * The bell is an eventfd. Another thread writes to it, which completes the
	 * read that the owner keeps pending.
	 */
	int bell;
	bool armed;
	uint64_t rung;
	struct flexsc_loop *loop;
	void (*make_room)(struct flexsc_loop *loop);	/* called if the submission
							 * queue is full */
	struct io_uring_sqe unshared;	/* the only place for requests after a polled
					 * ring has failed */
	uint32_t living;	/* requests in state "living": uring_failed.c */
	bool tells;		/* the next wait returns ring.failed */
	struct uring *left;	/* see uring_close() */
};

static inline struct uring *uring_of(const struct flexsc_loop *loop)
{
	return loop->engine_data;
}

/*
 * Returns the name of this use of the entry. An earlier use has another name, so a late
 * result can't be mistaken for one of this use.
 */
static inline uint64_t name_of(const struct flexsc_loop *loop, uint32_t index)
{
	return call_of(loop, index)->name;
}

/* Let a direct call continue with its entry, which becomes BUSY. */
static inline void uring_direct_begin(struct flexsc_loop *loop, uint32_t index)
{
	flexsc__direct_fill(loop, index);
	entry_begin_alone(entry_of(loop, index));
	call_of(loop, index)->route = BY_RING;
}

/*
 * Owner only. If the loop has a ring, stop using it, as if io_uring_enter() had failed
 * with err (-errno). Call this while the ring still works, so that no request is lost.
 */
void flexsc__uring_quit(struct flexsc_loop *loop, int err);

/* uring_route.c: calls with entries. */

/*
 * Turn submitted entries into requests. Execute the others inline, or give them to the
 * pool.
 */
void flexsc__uring_route(struct flexsc_loop *loop);

/* uring_failed.c: a ring that has failed permanently. */

/*
 * Called when the ring has failed: redirect its requests and all later calls. Call it
 * again if requests were filled since.
 */
void flexsc__uring_fail(struct flexsc_loop *loop);

/*
 * Let syscall threads execute the requests that the kernel hasn't consumed. This
 * empties the submission queue.
 */
void flexsc__uring_rescue(struct flexsc_loop *loop);

/* The functions of the engine flexsc__engine_uring_failed: see loop/engine.h. */
int flexsc__uring_failed_wait(struct flexsc_loop *loop, uint64_t ns);
void flexsc__uring_failed_submit(struct flexsc_loop *loop);
void flexsc__uring_failed_cancel(struct flexsc_loop *loop, uint32_t index);

/* uring_heir.c: the ring of a stuck owner, for the heir. See loop/engine.h. */

enum reach flexsc__uring_reach(struct flexsc_loop *loop, uint32_t index);
bool flexsc__uring_withdraw(struct flexsc_loop *loop, uint32_t index);
bool flexsc__uring_cancels_anywhere(const struct flexsc_loop *loop);
void flexsc__uring_tend(struct flexsc_loop *loop);

/* uring_fixed.c: fixed descriptors. */

/* See loop/engine.h. */
int flexsc__uring_fix(struct flexsc_loop *loop, int fd);
void flexsc__uring_unfix(struct flexsc_loop *loop, int fd);

/*
 * Called before requests are submitted to a ring with fixed descriptors: replace
 * descriptors by slots. If a request closes a fixed descriptor, submit here and release
 * the file, because the owner may sleep long after this.
 */
void flexsc__uring_use_fixed(struct flexsc_loop *loop);

void flexsc__uring_fixed_fini(struct uring *uring);

/* uring_buffers.c: multishot requests, and buffers lent to the kernel. */

/* See loop/engine.h. */
bool flexsc__uring_accepts_many(const struct flexsc_loop *loop);
int flexsc__uring_buffers_lend(struct flexsc_buffers *buffers);
void flexsc__uring_buffers_unlend(struct flexsc_buffers *buffers);
void flexsc__uring_buffer_put(struct flexsc_buffers *buffers, uint32_t which);

#endif /* FLEXSC_URING_H */
