/* SPDX-License-Identifier: MIT */
/*
 * Multishot calls: posted once, completing many times. A multishot call stands
 * behind a cb of the program's, and has at most one call of its own pending:
 *
 *	tries	an accept or a receive is pending. If the engine has multishot
 *		requests the call is one (NR_ACCEPT, NR_RECV), and each result
 *		is told by flexsc__multishot_shot(). Otherwise the call is
 *		posted again after each result
 *	waits	an entry that awaits (await.h) is pending, or a timer. Without
 *		the engine's requests a receive begins here: a receive that is
 *		pending takes a buffer, an entry that awaits takes none
 *
 *	tries	-> tries	a result is told; the call goes on, or is posted
 *				again
 *	tries	-> waits	the call found nothing, or a receive has a result
 *	waits	-> tries	the entry that awaits, or the timer, has ended
 *	tries, waits -> free	an error, the end, cancelled: the last completion
 *
 * A shot is a result of such a call while the call goes on. Shots lie on the
 * ready list; the call's end, if it comes after shots, is put behind them there.
 *
 * Nothing would hold the file between two calls that the library posts, so these
 * calls name a guard's copy of the descriptor. Owner only.
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
	struct flexsc_cb own;	/* of its own call; arg is the loop */
	struct flexsc_cb *cb;	/* the program's; NULL: free */
	struct flexsc_buffers *buffers;	/* NULL: it accepts */
	struct pollfd poll;
	uint64_t harvest;	/* number of the last one that had the cb */
	uint32_t next;		/* free list */
	uint32_t shots;		/* on the ready list */
	uint32_t taken;		/* the buffer of its own call; NO_BUFFER */
	int fd;			/* the descriptor that the program named */
	int file;		/* the one that own's calls name: fd, or the guard's */
	const struct multishot_how *how;
	struct guard *guard;	/* multishot_repeat.c's */
	int flags;
	int failed;		/* instead of the call's own result; 0 */
	bool waits, cancelled;
};

/* A loop's multishot calls. */
struct multishots {
	struct arena all, shots;
	uint32_t free, free_shots;
	uint64_t harvests;
};

/*
 * How results are found: by one request of the engine's (multishot_ring.c), or by a
 * call that is posted again (multishot_repeat.c). Functions that post return 0 or
 * -errno.
 */
struct multishot_how {
	int (*begin)(struct multishot *multishot);
	/* Post the call that finds a result. */
	int (*try)(struct multishot *multishot);
	/* Go on after the good result ret. */
	int (*next)(struct multishot *multishot, int64_t ret);
	/* The call returned -EAGAIN. */
	int (*again)(struct multishot *multishot);
	/* A connection, or an error, is about to be reported. */
	void (*accepted)(const struct multishot *multishot, int64_t ret);
	void (*end)(struct multishot *multishot);
};

extern const struct multishot_how flexsc__multishot_ring;
extern const struct multishot_how flexsc__multishot_repeat;

/* Arguments of an NR_RECV entry: 0 is the socket, 3 the flags. */
enum { RECV_GROUP = 1, RECV_ONCE = 2, RECV_FLAGS = 3 };

static inline struct flexsc_loop *multishot_loop(const struct multishot *multishot)
{
	return multishot->own.arg;
}

/* Post a call of the library's. NR_ACCEPT and NR_RECV aren't the program's numbers. */
int flexsc__multishot_post(struct flexsc_loop *loop, struct flexsc_cb *own,
			   unsigned int nr, const uint64_t args[FLEXSC_ARGS_MAX]);

static inline int multishot_post_own(struct multishot *multishot, unsigned int nr,
				     const uint64_t args[FLEXSC_ARGS_MAX])
{
	return flexsc__multishot_post(multishot_loop(multishot), &multishot->own,
				      nr, args);
}

/* The call of its own is complete, by own.ret, behind the shots before it. */
void flexsc__multishot_postpone(struct multishot *multishot);

static inline uint32_t multishot_index(uint64_t handle)
{
	return (uint32_t)handle;
}

void flexsc__multishots_fini(struct flexsc_loop *loop);

void flexsc__multishot_cancel(struct multishot *multishot);
/* End all that the program posted with this descriptor; returns how many. */
int flexsc__multishots_cancel_fd(struct flexsc_loop *loop, int fd);

/* What an NR_RECV entry returns that has received res bytes into this buffer. */
int64_t flexsc__multishot_filled(struct flexsc_cb *own, int32_t res,
				 uint32_t which);

/*
 * An NR_ACCEPT or NR_RECV entry, whose cb is own, has this result and goes on.
 */
void flexsc__multishot_shot(struct flexsc_cb *own, int64_t ret);

/*
 * A harvested cb: a multishot's own is replaced by the program's, or by NULL if
 * there is nothing to tell.
 */
struct flexsc_cb *flexsc__multishot_harvested(struct flexsc_cb *cb);
/* Is it a shot whose cb is in this harvest already? */
bool flexsc__multishot_is_again(const struct flexsc_cb *cb);

#endif /* FLEXSC_LOOP_MULTISHOT_H */
