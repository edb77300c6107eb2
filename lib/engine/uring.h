/* SPDX-License-Identifier: MIT */
/*
 * What the files of the uring engine share: uring.c opens, waits and closes,
 * uring_direct.c posts calls straight to the ring, uring_route.c takes others
 * there, uring_reap.c takes results from it. Owner only.
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

/* Names of completions that aren't an entry's. */
#define WAKE		UINT64_MAX
#define IGNORE		(UINT64_MAX - 1)
#define CANCEL		0x80000000U	/* in a name: of a cancellation */

/* How an entry is executed, in call->route. */
enum route {
	BY_POOL,
	BY_RING,
	BY_RING_FOLLOWED,	/* uring_follow() looks at how it ends */
	BY_RING_MULTISHOT,	/* uring_follow() tells each result */
	BY_RING_EAGER,		/* uring_eager.h */
	BY_RING_AT_ONCE,	/* uring_follow(): a write of a few bytes */
	BY_RING_IN_PARTS,	/* uring_follow(): a long write */
};

struct fixed;

struct uring {
	struct ring ring;
	uint64_t operations;	/* bit n: the kernel has operation n */
	unsigned int known;	/* of enum uring_known */
	struct call_list to_pool;
	struct call_list again;		/* reads and writes with a rest */
	uint32_t others;		/* entries that the ring didn't get */
	/* Direct calls since the last batch; requests that were counted. */
	uint32_t direct, counted;
	uint32_t direct_end;	/* direct calls have the requests before it */
	bool eager;		/* a read that is eager is in this batch */
	bool parts;		/* a long write is in this batch */
	uint64_t kinds;		/* bit n: a direct call's operation is n */
	struct guard_watcher watcher;	/* if "watches"; under the watchers' lock */
	bool watches;
	struct fixed *fixed;	/* descriptors; NULL: there was none yet */
	struct io_uring_sqe *sorted;	/* see uring_route.c; may be NULL */
	/*
	 * The bell: other threads write to the eventfd, and end a pending read
	 * of it.
	 */
	int bell;
	bool armed;
	uint64_t rung;
	struct flexsc_loop *loop;
	void (*make_room)(struct flexsc_loop *loop);	/* the ring is full */
	uint32_t living;	/* see uring_failed.c */
	bool tells;		/* the next wait returns ring.failed */
	struct uring *left;	/* see uring_close() */
};

static inline struct uring *uring_of(const struct flexsc_loop *loop)
{
	return loop->engine_data;
}

/* An entry's use, named so that a later use of the entry isn't meant. */
static inline uint64_t name_of(const struct flexsc_loop *loop, uint32_t index)
{
	return call_of(loop, index)->name;
}

/* A direct call goes on with an entry, which is BUSY. */
static inline void uring_direct_begin(struct flexsc_loop *loop, uint32_t index)
{
	flexsc__direct_fill(loop, index);
	entry_begin_alone(entry_of(loop, index));
	call_of(loop, index)->route = BY_RING;
}

/*
 * Owner only. If the loop has a ring, stop using it, before entering it begins to fail
 * with err (-errno). The ring still works, so no request is lost.
 */
void flexsc__uring_quit(struct flexsc_loop *loop, int err);

/* uring_route.c: calls by their entries. */

/* What was submitted becomes requests, or goes where it is executed. */
void flexsc__uring_route(struct flexsc_loop *loop);

/* uring_failed.c: a ring that fails for good. */

/*
 * The ring has failed: have its requests and all later calls go another way. To be
 * called again if requests were filled since.
 */
void flexsc__uring_fail(struct flexsc_loop *loop);

/* Give the requests that the kernel hasn't taken to threads, which empties the ring. */
void flexsc__uring_rescue(struct flexsc_loop *loop);

/* Collect late results, and try again to take back lost requests. */
void flexsc__uring_take_back(struct flexsc_loop *loop);

/* uring_fixed.c: fixed descriptors. */

/* See loop/engine.h. */
int flexsc__uring_fix(struct flexsc_loop *loop, int fd);
void flexsc__uring_unfix(struct flexsc_loop *loop, int fd);

/*
 * Requests are about to be submitted, of a ring that has fixed descriptors. If
 * one closes such a descriptor they are submitted here, and the file is let go
 * of: the owner may sleep long after this.
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
