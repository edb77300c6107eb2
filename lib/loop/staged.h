/* SPDX-License-Identifier: MIT */
/*
 * Staged calls: posted, and without an entry, because none is free or because
 * they are chained to another call. Owner only.
 *
 *	posted	-> chained	to a call that isn't complete
 *	posted	-> waiting	no entry is free, or others wait already
 *	chained	-> waiting	its predecessor has completed, no entry is free
 *	chained, waiting -> free	it has an entry, or its result
 */
#ifndef FLEXSC_STAGED_H
#define FLEXSC_STAGED_H

#include <flexsc/flexsc.h>
#include <linux/flexsc.h>
#include <stdint.h>

struct flexsc_loop;

#define CHAIN_ARGS	0x0fU	/* which argument is the result */

/* No staged call: element 0 heads the waiting list. */
#define NO_STAGED	0U

/* A call without an entry: chained to another, or waiting for a free one. */
struct staged {
	struct flexsc_cb *cb;
	__u64 args[FLEXSC_ARGS_MAX];
	uint32_t next, prev;	/* the waiting list, or the free list */
	uint32_t chained;
	uint32_t deadline;
	uint32_t before;	/* its predecessor's index, of before_kind */
	uint16_t nr;
	uint8_t chain;		/* FLEXSC_CHAIN_* */
	uint8_t state;		/* enum staged_state */
	uint8_t before_kind;	/* enum handle_kind */
};

enum staged_state {
	STAGED_FREE = 0,
	STAGED_CHAINED,	/* its predecessor has not completed */
	STAGED_WAITING,	/* for an entry, in the order posted */
};

int flexsc__staged_init(struct flexsc_loop *loop);

/*
 * Post with an entry, behind all that wait for one, or chained to "before", the
 * handle of a pending call; 0: to none.
 * -EBUSY: another one is chained to it already.
 */
int flexsc__staged_post(struct flexsc_loop *loop, struct flexsc_cb *cb,
			const struct staged *call, uint64_t before);

/* End a staged call that has no entry. */
void flexsc__staged_end(struct flexsc_loop *loop, uint32_t index, int64_t ret);

/*
 * A call has completed with ret. The result that flexsc__staged_go() is to see
 * where "chain" is the flags: a failure, if too little was transferred. The
 * entry has the call's arguments still.
 */
int64_t flexsc__chain_outcome(unsigned int chain,
			      const struct flexsc_entry *entry, int64_t ret);

/*
 * A predecessor has completed with ret: start the calls chained to it, or end
 * them.
 */
void flexsc__staged_go(struct flexsc_loop *loop, uint32_t index, int64_t ret);

/* An entry is free: the call that waits longest gets it. */
void flexsc__staged_next(struct flexsc_loop *loop);

#endif /* FLEXSC_STAGED_H */
