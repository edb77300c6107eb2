/* SPDX-License-Identifier: MIT */
/*
 * Multishot calls are posted once and complete many times. A multishot call serves a cb
 * of the program. To find results, the library posts plain calls for it, at most one at
 * a time:
 *
 *	tries	an accept or a receive is pending. If the engine has multishot
 *		requests, the call is one of them (NR_ACCEPT, NR_RECV), and
 *		flexsc__multishot_shot() reports each result. Otherwise the call
 *		is posted again after each result
 *	waits	an await entry (await.h) or a timer is pending. Without the
 *		engine's requests, a receive begins in this state: a pending
 *		receive occupies a buffer, an await entry doesn't
 *
 *	tries	-> tries	a result is reported; the call continues, or is
 *				posted again
 *	tries	-> waits	the call found no data, or a receive has a result
 *	waits	-> tries	the await entry, or the timer, has completed
 *	tries, waits -> free	an error, the end, cancelled: the last completion
 *
 * A shot is a result of a multishot call that continues. Shots are in the ready list.
 * If the call ends after shots, its end is queued there behind them.
 *
 * Between two posted calls, the kernel doesn't hold the file. So posted calls use a
 * guard's duplicate of the descriptor. Owner only.
 */
#ifndef FLEXSC_LOOP_MULTISHOT_H
#define FLEXSC_LOOP_MULTISHOT_H

#include <flexsc/multishot.h>
#include <linux/flexsc.h>
#include <poll.h>
#include <stdbool.h>
#include <stdint.h>

#include "arena.h"
#include "handle.h"

struct flexsc_loop;

struct multishot {
	struct flexsc_cb own;	/* the cb of the call that the library posts; arg is
				 * the loop */
	struct flexsc_cb *cb;	/* the program's cb; NULL: free */
	struct flexsc_buffers *buffers;	/* NULL: an accept */
	struct pollfd poll;
	uint64_t harvest;	/* number of the last flexsc_loop_harvest() that
				 * returned the cb */
	uint32_t next;		/* in the list of free multishot calls */
	uint32_t shots;		/* number of its shots in the ready list */
	uint32_t taken;		/* the buffer of the posted call, or NO_BUFFER */
	int fd;			/* the descriptor that the program named */
	int file;		/* the descriptor for posted calls: fd, or the
				 * guard's */
	const struct multishot_how *how;
	struct guard *guard;	/* NULL, or the guard: multishot_repeat.c */
	int flags;
	int failed;		/* if nonzero, the error to report instead of the
				 * posted call's result */
	bool waits, cancelled;
};

/* A loop's multishot calls. */
struct multishots {
	struct arena all, shots;
	uint32_t free, free_shots;
	uint64_t harvests;
};

/*
 * The two ways to find results: one request of the engine (multishot_ring.c), or a call
 * that is posted repeatedly (multishot_repeat.c). Functions that post return 0 or
 * -errno.
 */
struct multishot_how {
	int (*begin)(struct multishot *multishot);
	/* Post the call that finds a result. */
	int (*try)(struct multishot *multishot);
	/* The posted call has succeeded with ret: continue the multishot call. */
	int (*next)(struct multishot *multishot, int64_t ret);
	/* The posted call has returned -EAGAIN: wait for data or a connection. */
	int (*again)(struct multishot *multishot);
	/*
	 * Called before a new connection (ret), or an error, is reported: record the
	 * connection's facts.
	 */
	void (*accepted)(const struct multishot *multishot, int64_t ret);
	void (*end)(struct multishot *multishot);
};

extern const struct multishot_how flexsc__multishot_ring;
extern const struct multishot_how flexsc__multishot_repeat;

/* Arguments of an NR_RECV entry; argument 0 is the socket. */
enum { RECV_GROUP = 1, RECV_ONCE = 2, RECV_FLAGS = 3 };

static inline struct flexsc_loop *multishot_loop(const struct multishot *multishot)
{
	return multishot->own.arg;
}

/* Post a call on behalf of the library. The program can't use NR_ACCEPT and NR_RECV. */
int flexsc__multishot_post(struct flexsc_loop *loop, struct flexsc_cb *own,
			   unsigned int nr, const uint64_t args[FLEXSC_ARGS_MAX]);

static inline int multishot_post_own(struct multishot *multishot, unsigned int nr,
				     const uint64_t args[FLEXSC_ARGS_MAX])
{
	return flexsc__multishot_post(multishot_loop(multishot), &multishot->own,
				      nr, args);
}

/*
 * Called when the posted call is complete, with its result in own.ret, while shots are
 * in the ready list: queue the multishot call's end behind the shots.
 */
void flexsc__multishot_postpone(struct multishot *multishot);

static inline uint32_t multishot_index(uint64_t handle)
{
	return (uint32_t)handle;
}

void flexsc__multishots_fini(struct flexsc_loop *loop);

void flexsc__multishot_cancel(struct multishot *multishot);
/*
 * Cancel all multishot calls that the program posted with this descriptor; returns how
 * many.
 */
int flexsc__multishots_cancel_fd(struct flexsc_loop *loop, int fd);

/*
 * Returns the result of an NR_RECV entry, which encodes two numbers: it has received
 * res bytes, into buffer "which".
 */
int64_t flexsc__multishot_filled(struct flexsc_cb *own, int32_t res,
				 uint32_t which);

/*
 * Called when an NR_ACCEPT or NR_RECV entry, whose cb is own, has a result and
 * continues.
 */
void flexsc__multishot_shot(struct flexsc_cb *own, int64_t ret);

/*
 * Returns the cb that a harvest reports for "cb": the program's cb if "cb" belongs to a
 * multishot call, otherwise "cb" itself. NULL: there is nothing to report yet.
 */
struct flexsc_cb *flexsc__multishot_harvested(struct flexsc_cb *cb);
/*
 * Does the cb belong to a multishot call, of which this harvest has already returned the
 * program's cb?
 */
bool flexsc__multishot_is_again(const struct flexsc_cb *cb);

#endif /* FLEXSC_LOOP_MULTISHOT_H */
