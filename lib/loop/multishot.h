/* SPDX-License-Identifier: MIT */
/*
 * Multishot calls are posted once and complete many times. A multishot call serves a cb
 * of the program, and has at most one call of its own pending:
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
 * Between two calls that the library posts, the kernel wouldn't hold the file. So these
 * calls use a guard's copy of the descriptor. Owner only.
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
	struct flexsc_cb own;	/* the cb of its own call; arg is the loop */
	struct flexsc_cb *cb;	/* the program's cb; NULL: free */
	struct flexsc_buffers *buffers;	/* NULL: an accept */
	struct pollfd poll;
	uint64_t harvest;	/* number of the last harvest that returned the cb */
	uint32_t next;		/* in the list of free multishot calls */
	uint32_t shots;		/* how many of its shots are in the ready list */
	uint32_t taken;		/* the buffer of its own call, or NO_BUFFER */
	int fd;			/* the descriptor that the program named */
	int file;		/* the descriptor that its calls use: fd, or the guard's */
	const struct multishot_how *how;
	struct guard *guard;	/* used by multishot_repeat.c */
	int flags;
	int failed;		/* replaces its own call's result; 0: doesn't */
	bool waits, cancelled;
};

/* A loop's multishot calls. */
struct multishots {
	struct arena all, shots;
	uint32_t free, free_shots;
	uint64_t harvests;
};

/*
 * How results are found: by one request of the engine (multishot_ring.c), or by a call
 * that is posted repeatedly (multishot_repeat.c). Functions that post return 0 or
 * -errno.
 */
struct multishot_how {
	int (*begin)(struct multishot *multishot);
	/* Post the call that finds a result. */
	int (*try)(struct multishot *multishot);
	/* Continue after a success "ret". */
	int (*next)(struct multishot *multishot, int64_t ret);
	/* The call returned -EAGAIN. */
	int (*again)(struct multishot *multishot);
	/* A connection, or an error, is about to be reported. */
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

/* Its own call is complete, with own.ret: queue the end behind the shots before it. */
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

/* Encodes the result of an NR_RECV entry that received res bytes into this buffer. */
int64_t flexsc__multishot_filled(struct flexsc_cb *own, int32_t res,
				 uint32_t which);

/* An NR_ACCEPT or NR_RECV entry, whose cb is own, has this result and continues. */
void flexsc__multishot_shot(struct flexsc_cb *own, int64_t ret);

/*
 * Replaces a harvested cb that belongs to a multishot call with the program's cb, or
 * with NULL if there is nothing to report.
 */
struct flexsc_cb *flexsc__multishot_harvested(struct flexsc_cb *cb);
/* Is the cb a shot of a multishot call whose cb is in this harvest already? */
bool flexsc__multishot_is_again(const struct flexsc_cb *cb);

#endif /* FLEXSC_LOOP_MULTISHOT_H */
