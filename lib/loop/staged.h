/* SPDX-License-Identifier: MIT */
/*
 * Staged calls are posted but have no entry yet: no entry is free, or they are chained
 * to another call. Owner only, unless stated otherwise.
 *
 *	posted	-> chained	to a call that isn't complete
 *	posted	-> waiting	no entry is free, or other calls wait already
 *	chained	-> waiting	its predecessor has completed, but no entry is free
 *	chained, waiting -> free	it has got an entry, or its result
 *
 *
 * Chains that the engine continues (OSDI 2010, section 6.1: looped multi-calls)
 *
 * Normally the owner starts a chained call, after the callback of its predecessor. If
 * the predecessor has no callback, the engine may start the call itself, which saves a
 * turn of the loop. In this case the call gets its entry together with its predecessor,
 * and the predecessor's "link" leads to it. Such an entry is SUBMITTED, but no engine
 * begins it before the predecessor has its result: flexsc__staged_link().
 */
#ifndef FLEXSC_STAGED_H
#define FLEXSC_STAGED_H

#include <flexsc/flexsc.h>
#include <linux/flexsc.h>
#include <stdint.h>

struct flexsc_loop;

#define CHAIN_ARGS	0x0fU	/* the argument that gets the result, plus 1 */
#define CHAIN_LEADS	0x80U	/* in call->chain: the entry's "link" is the index of
				 * the call chained to it */
#define CHAIN_FOLLOWS	0x01U	/* ... another entry led to this one, which has its
				 * argument */
#define CHAINED_ENTRY	0xffffffffU	/* call->chained: that call has an entry */

/* No staged call: element 0 is never one, because it heads the waiting list. */
#define NO_STAGED	0U

/* A call without an entry: chained to another call, or waiting for a free entry. */
struct staged {
	struct flexsc_cb *cb;
	__u64 args[FLEXSC_ARGS_MAX];
	uint32_t next, prev;	/* in the waiting list, or (next) in the free list */
	uint32_t chained;
	uint32_t deadline;
	uint32_t before;	/* index of its predecessor, whose kind is before_kind */
	uint16_t nr;
	uint8_t chain;		/* FLEXSC_CHAIN_* */
	uint8_t state;		/* enum staged_state */
	uint8_t before_kind;	/* enum handle_kind */
};

enum staged_state {
	STAGED_FREE = 0,
	STAGED_CHAINED,	/* its predecessor hasn't completed */
	STAGED_WAITING,	/* waits for an entry, in the order of posting */
};

int flexsc__staged_init(struct flexsc_loop *loop);

/*
 * Post a call. If "before" isn't 0, it is the handle of a pending call: chain the call
 * to that one. Otherwise the call gets an entry if one is free and no other call waits
 * for one; if not, it waits. -EBUSY: another call is chained to "before" already.
 */
int flexsc__staged_post(struct flexsc_loop *loop, struct flexsc_cb *cb,
			const struct staged *call, uint64_t before);

/*
 * Give entries to the calls that are chained to this SUBMITTED entry, as far as the
 * engine can start them without the owner. Sets their "route". Returns how many calls
 * got an entry. The calls' predecessors have no callbacks. Calls that get the same
 * argument (FLEXSC_CHAIN_SAME) all get entries, or none does. At most half of the loop's
 * entries are in use, so that other calls find free ones.
 */
uint32_t flexsc__staged_link(struct flexsc_loop *loop, uint32_t index,
			     uint8_t route);

/*
 * Returns the flags of a call whose predecessor, with the flags "dropped", ended before
 * it got its argument: the call takes the predecessor's place, so it gets that argument
 * (FLEXSC_CHAIN_SAME). Any thread.
 */
static inline uint8_t chain_inherit(uint8_t chain, uint8_t dropped)
{
	return chain & FLEXSC_CHAIN_SAME ?
		       (uint8_t)((chain & ~FLEXSC_CHAIN_SAME) |
				 (dropped & FLEXSC_CHAIN_SAME)) :
		       chain;
}

/* Complete a staged call with ret. */
void flexsc__staged_end(struct flexsc_loop *loop, uint32_t index, int64_t ret);

/*
 * Called when the last entry of a chain is cancelled, although the entry "before" isn't
 * complete: the first staged call behind it with FLEXSC_CHAIN_ALWAYS must not start
 * earlier, so this call follows "before" instead.
 */
void flexsc__staged_follow(struct flexsc_loop *loop, uint32_t before,
			   uint32_t cancelled);

/*
 * Called when a call with a successor has completed with ret: returns the result to
 * pass to flexsc__staged_go(). With FLEXSC_CHAIN_FULL in "chain", this is a failure if
 * too few bytes were transferred. The entry must still have the call's arguments. Any
 * thread.
 */
int64_t flexsc__chain_outcome(unsigned int chain,
			      const struct flexsc_entry *entry, int64_t ret);

/*
 * Called when a predecessor has completed with ret: start the calls chained to it, or
 * end them.
 */
void flexsc__staged_go(struct flexsc_loop *loop, uint32_t index, int64_t ret);

/* Give a free entry to the call that has waited for one longest. */
void flexsc__staged_next(struct flexsc_loop *loop);

#endif /* FLEXSC_STAGED_H */
