/* SPDX-License-Identifier: MIT */
/*
 * Calls: what the owner knows of an entry besides what the entry says, and
 * lists of calls. Owner only, except for the pool's fields.
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

/* Post system call nr, one below CALLS_ROOM, on a loop that isn't unusual. */
typedef int (*post_fn)(struct flexsc_loop *loop, struct flexsc_cb *cb,
		       unsigned int nr, uint64_t a0, uint64_t a1, uint64_t a2,
		       uint64_t a3, uint64_t a4, uint64_t a5);
/* The same, with at most three arguments; the others are 0. */
typedef int (*post3_fn)(struct flexsc_loop *loop, struct flexsc_cb *cb,
			unsigned int nr, uint64_t a0, uint64_t a1, uint64_t a2);

/* Causes that a call is cancelled for. */
enum cancel_cause {
	CANCEL_NOT = 0,
	CANCEL_ASKED,
	CANCEL_DEADLINE,
	CANCEL_TOLD,	/* ... and the callback has been run, or is about to */
};

/* No call names more descriptors. */
#define CALL_GUARDS	2U

/*
 * The private companion of an entry, at the entry's index: what the owner knows
 * of it, and what a pool of syscall threads does while the pool has it.
 */
struct call {
	struct flexsc_cb *cb;	/* NULL: none, or not in use */
	union {
		struct {
			uint32_t index;	/* the entry's */
			uint32_t gen;	/* counts uses, to tell them apart */
		};
		uint64_t name;		/* of this use: index and gen */
	};
	union {
		struct {
			uint32_t chained; /* the staged call that waits for it */
			uint32_t deadline; /* its timer */
		};
		uint64_t links;		/* either of them */
	};
	uint32_t next;		/* on the list it is on */
	union {
		struct {
			uint8_t cancel;	/* enum cancel_cause */
			/* The engine's: how it executes the entry. */
			uint8_t route;
			union {
				uint16_t nr;	/* a direct call's number */
				/* See flexsc__call_poll(). */
				bool poll_waits;
			};
		};
		uint32_t how;		/* all of this */
	};
	struct partial *partial;	/* the engine's: calls/partial.h */
	union {
		struct {	/* arguments of a call without an entry */
			uint32_t fd, len;
			uint64_t addr;
		} direct;
		struct {	/* guarded.h */
			struct guard *guards[CALL_GUARDS];
		} by_entry;
	};
	/* The pool's, under its lock. */
	uint32_t place;		/* the entry before it; or its thread's number */
	uint8_t where;		/* enum pool_where */
	bool woken;		/* from where it was parked */
	/*
	 * Execute it next without checking whether it would wait: after shutdown()
	 * (files/closing.h), or because poll(2) doesn't report for what.
	 */
	bool plainly;
	uint8_t guarded;	/* bit n: by_entry.guards[n] is used */
} __attribute__((aligned(64)));

_Static_assert(sizeof(struct call) == 64, "a call is one cache line");

/* A value of route, of all engines that have direct calls: see direct.h. */
#define ROUTE_DIRECT	0x80U

static inline bool call_is_direct(const struct call *call)
{
	return call->route == ROUTE_DIRECT;
}

/* A list of calls, oldest first; head and tail mean nothing in an empty one. */
struct call_list {
	uint32_t head, tail;
	uint32_t count;
};

/*
 * Calls that are taken all at once, oldest first. Every call is on two queues
 * in its life, so a queue is made to be cheap: tail is where the next index
 * goes, and the last call's next means nothing until all are taken.
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

/* Take all calls: returns the first, or NONE; each call's next is the next. */
static inline uint32_t queue_take(struct call_queue *queue)
{
	*queue->tail = NONE;
	queue_init(queue);
	return queue->head;
}

#ifdef SYS_poll
/*
 * Post a poll() of one descriptor without a time limit. The record can be read,
 * and nobody needs to know whether the descriptor is ready already, so an
 * engine needn't ask the kernel before it has the call wait.
 */
int flexsc__call_poll(struct flexsc_loop *loop, struct flexsc_cb *cb,
		      struct pollfd *one);
#endif

/*
 * Post a staged call, whose number and arguments are known to be good, chained to
 * "before". Errors: flexsc_loop_call_after().
 */
int flexsc__post_after(struct flexsc_loop *loop, struct flexsc_cb *cb,
		       const struct flexsc_cb *before, struct staged *call,
		       unsigned int chain);

/* All calls are posted by their entries, until an engine knows better. */
void flexsc__posts_init(struct flexsc_loop *loop);

/* The functions of these types that do for any call and any engine. */
int flexsc__post_entry(struct flexsc_loop *loop, struct flexsc_cb *cb,
		      unsigned int nr, uint64_t a0, uint64_t a1, uint64_t a2,
		      uint64_t a3, uint64_t a4, uint64_t a5);
int flexsc__post_entry3(struct flexsc_loop *loop, struct flexsc_cb *cb,
			unsigned int nr, uint64_t a0, uint64_t a1, uint64_t a2);

/* A done entry is freed, and its callback runs. */
void flexsc__call_retire(struct flexsc_loop *loop, uint32_t index);
/* ... or its cb, if there is one, is returned with its result. */
struct flexsc_cb *flexsc__call_harvest(struct flexsc_loop *loop,
				       uint32_t index);

/*
 * The same of a call that has more to be done than its callback, or whose loop
 * is unusual; it may be direct.
 */
void flexsc__call_retire_otherwise(struct flexsc_loop *loop, uint32_t index,
				   int64_t ret);

/* A call's entry is CANCEL, and no thread has begun it. */
void flexsc__call_unstarted(struct flexsc_loop *loop, uint32_t index);

#endif /* FLEXSC_LOOP_CALL_H */
