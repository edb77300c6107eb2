/* SPDX-License-Identifier: MIT */
/*
 * Calls: the owner's data about an entry besides the entry itself, and lists of calls.
 * Owner only, except for the pool's fields.
 */
#ifndef FLEXSC_LOOP_CALL_H
#define FLEXSC_LOOP_CALL_H

#include <flexsc/flexsc.h>
#include <linux/flexsc.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/syscall.h>

#define NONE	FLEXSC_NO_ENTRY	/* no call */

struct flexsc_loop;
struct guard;
struct staged;
struct pollfd;

/* Posts system call nr, which is below CALLS_ROOM, on a loop whose "unusual" is 0. */
typedef int (*post_fn)(struct flexsc_loop *loop, struct flexsc_cb *cb,
		       unsigned int nr, uint64_t a0, uint64_t a1, uint64_t a2,
		       uint64_t a3, uint64_t a4, uint64_t a5);
/* As post_fn, with at most three arguments; the others are 0. */
typedef int (*post3_fn)(struct flexsc_loop *loop, struct flexsc_cb *cb,
			unsigned int nr, uint64_t a0, uint64_t a1, uint64_t a2);

/* Why a call was cancelled. */
enum cancel_cause {
	CANCEL_NOT = 0,
	CANCEL_ASKED,
	CANCEL_DEADLINE,
	CANCEL_REPORTED,	/* its callback has run, or its cb is in the ready
				 * list */
};

/* The maximum number of descriptors that a call names. */
#define CALL_GUARDS	2U

/*
 * An entry's private companion, at the same index. It holds the owner's data about the
 * call, and the state of a pool of syscall threads while the pool has the call.
 */
struct call {
	struct flexsc_cb *cb;	/* NULL: no cb, or the entry isn't in use */
	union {
		struct {
			uint32_t index;	/* index of the entry */
			uint32_t gen;	/* number of earlier uses of the index */
		};
		uint64_t name;		/* identifies this use of the index: index and
					 * gen */
	};
	union {
		struct {
			/*
			 * The staged call chained to this one, or CHAINED_ENTRY: the
			 * engine continues the chain (staged.h).
			 */
			uint32_t chained;
			uint32_t deadline; /* the timer of its deadline */
		};
		uint64_t links;		/* "chained" and "deadline", to test both at
					 * once */
	};
	uint32_t next;		/* the next call in the list that this call is in */
	union {
		struct {
			uint8_t cancel;	/* enum cancel_cause */
			/*
			 * Owned by the engine: how it executes the entry, or
			 * ROUTE_DIRECT.
			 */
			uint8_t route;
			union {
				uint16_t nr;	/* a direct call's number */
				struct {
					/*
					 * Set by flexsc__call_poll(): the engine may
					 * let the call wait without first querying
					 * the kernel whether the descriptor is ready.
					 */
					bool poll_waits;
					/*
					 * Owned by the pool, and guarded by its lock:
					 * CHAIN_LEADS and the flags of the chain to
					 * the call's predecessor.
					 */
					uint8_t chain;
				};
			};
		};
		uint32_t how;		/* "route" and what follows it, in one word */
	};
	struct partial *partial;	/* owned by the engine: calls/partial.h */
	union {
		struct {	/* arguments of a direct call */
			uint32_t fd, len;
			uint64_t addr;
		} direct;
		struct {	/* guards of an entry's descriptors: guarded.h */
			struct guard *guards[CALL_GUARDS];
		} by_entry;
	};
	/* Owned by the pool, and guarded by its lock. */
	uint32_t place;		/* If a thread executes the entry (POOL_RUNNING): that
				 * thread's number. If the entry is in a list of the
				 * pool: the index of the previous entry. */
	uint8_t where;		/* enum pool_where */
	bool woken;		/* was parked, and has been woken */
	/*
	 * A syscall thread executes the call without first checking whether it would
	 * wait. Set after shutdown() (files/closing.h), or if poll(2) doesn't report
	 * the event that the call waits for.
	 */
	bool plainly;
	uint8_t guarded;	/* bit n: by_entry.guards[n] is in use */
} __attribute__((aligned(64)));

_Static_assert(sizeof(struct call) == 64, "a call is one cache line");

/* The value of route for direct calls, in all engines that have them: see direct.h. */
#define ROUTE_DIRECT	0x80U

static inline bool call_is_direct(const struct call *call)
{
	return call->route == ROUTE_DIRECT;
}

/* A list of calls, oldest first. If it is empty, head and tail are undefined. */
struct call_list {
	uint32_t head, tail;
	uint32_t count;
};

/*
 * A list of calls that are taken all at once, oldest first. Every call goes through two
 * queues, so a queue must be cheap: tail points to where the next index is stored, and
 * the last call's "next" is undefined until all calls are taken.
 */
struct call_queue {
	uint32_t *tail;
	uint32_t head;
};

static inline void queue_init(struct call_queue *queue)
{
	queue->tail = &queue->head;
}

static inline bool queue_empty(const struct call_queue *queue)
{
	return queue->tail == &queue->head;
}

static inline void queue_append(struct call_queue *queue, struct call *call,
				uint32_t index)
{
	*queue->tail = index;
	queue->tail = &call->next;
}

/* Takes all calls, linked by their "next". Returns the first, or NONE. */
static inline uint32_t queue_take(struct call_queue *queue)
{
	*queue->tail = NONE;
	queue_init(queue);
	return queue->head;
}

/*
 * Post a poll() of one descriptor without a time limit. The caller guarantees that the
 * struct pollfd is readable memory, and doesn't need an immediate result. So the engine
 * may let the call wait without querying the kernel first.
 */
int flexsc__call_poll(struct flexsc_loop *loop, struct flexsc_cb *cb,
		      struct pollfd *one);

/*
 * Post a staged call, chained to "before". The caller has checked the number and the
 * arguments. Errors: as for flexsc_loop_call_after().
 */
int flexsc__post_after(struct flexsc_loop *loop, struct flexsc_cb *cb,
		       const struct flexsc_cb *before, struct staged *call,
		       unsigned int chain);

/*
 * Initialise posts and posts3: all calls use entries, until the engine replaces
 * functions.
 */
void flexsc__posts_init(struct flexsc_loop *loop);

/* The post functions that work for any call and any engine. */
int flexsc__post_entry(struct flexsc_loop *loop, struct flexsc_cb *cb,
		      unsigned int nr, uint64_t a0, uint64_t a1, uint64_t a2,
		      uint64_t a3, uint64_t a4, uint64_t a5);
int flexsc__post_entry3(struct flexsc_loop *loop, struct flexsc_cb *cb,
			unsigned int nr, uint64_t a0, uint64_t a1, uint64_t a2);

/* Free a done entry, and run its callback. */
void flexsc__call_retire(struct flexsc_loop *loop, uint32_t index);
/*
 * Free a done entry. Returns its cb, with the result, instead of running the callback;
 * NULL: the call has no cb.
 */
struct flexsc_cb *flexsc__call_harvest(struct flexsc_loop *loop,
				       uint32_t index);

/*
 * Retires a call that needs other steps besides its callback, and any call of a loop
 * that is "unusual". The call may be direct.
 */
void flexsc__call_retire_otherwise(struct flexsc_loop *loop, uint32_t index,
				   int64_t ret);

/* Called when the call's entry became CANCEL before any thread began it. */
void flexsc__call_unstarted(struct flexsc_loop *loop, uint32_t index);

#endif /* FLEXSC_LOOP_CALL_H */
