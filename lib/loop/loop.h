/* SPDX-License-Identifier: MIT */
/*
 * A loop and everything it owns. One thread, the owner, runs all of it; what
 * other threads touch is atomic and says so. Which file owns what:
 *
 *	page.c		entries and calls, and the list of free ones
 *	call.c		posting, chaining, waiting for an entry, completing
 *	cancel.c	cancellation and deadlines
 *	timer.c		the timing wheel
 *	event.c		timers, signals and wake-ups as callbacks
 *	loop.c		create, run, destroy
 *	stats.c		the published counters
 *	fork.c		what fork() does to loops
 *	engine.c	the choice of an engine
 *
 *
 * The life of a call, seen by the owner
 *
 *	posted		-> submitted	a free entry was filled
 *	posted		-> held		no entry is free, or it is chained
 *	held		-> submitted	its turn came; keeps its cb
 *	held		-> ready	cancelled, or its predecessor failed
 *	submitted	-> the engine	the batch it is in was handed over
 *	the engine	-> done		see <linux/flexsc.h>
 *	done		-> free		dispatched: its callback runs
 *
 * Lists of calls are threaded through struct call; a call is on one at a time.
 * Everything that completes without an entry (timers, signals, wake-ups, held
 * calls that were cancelled) goes to the ready list, threaded through the cbs
 * themselves, which belong to the library until their callbacks run.
 */
#ifndef FLEXSC_INTERNAL_LOOP_H
#define FLEXSC_INTERNAL_LOOP_H

#include <errno.h>
#include <flexsc/flexsc.h>
#include <linux/flexsc.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "arena.h"
#include "../base/compiler.h"
#include "engine.h"
#include "entry.h"
#include "timer.h"

#define NONE	FLEXSC_NO_ENTRY

/* What cancelled a call. */
enum cancel_cause {
	CANCEL_NOT = 0,
	CANCEL_ASKED,
	CANCEL_DEADLINE,
	CANCEL_TOLD,	/* ... and the callback has been run, or is about to */
};

/*
 * The private companion of the entry with the same index: what the owner
 * knows of it, and (in "pool") what a pool of syscall threads does while it
 * has it.
 */
struct call {
	struct flexsc_cb *cb;	/* NULL: none, or not in use */
	uint32_t next;		/* on the list it is on */
	uint32_t gen;		/* counts uses, to tell them apart */
	uint32_t chained;	/* the held call that waits for this one */
	uint32_t deadline;	/* its timer */
	uint8_t cancel;		/* enum cancel_cause */
	uint8_t route;		/* the engine's: how it executes it */
	struct partial *partial;	/* the engine's: a write in parts */
	struct {		/* under the pool's lock */
		uint8_t where;	/* enum pool_where */
		bool woken;	/* from where it was parked */
		bool moved;	/* to a copy of its descriptor: parking.h */
		uint32_t prev;
		uint32_t thread;	/* the slot that executes it */
	} pool;
} __attribute__((aligned(64)));

/* No held call: element 0 of theirs heads the waiting list. */
#define NO_HELD	0U

/* A call without an entry: chained to another, or waiting for a free one. */
struct held {
	struct flexsc_cb *cb;
	__u64 args[FLEXSC_ARGS_MAX];
	uint32_t next, prev;	/* the waiting list, or the free list */
	uint32_t chained;
	uint32_t deadline;
	uint32_t before;	/* what it is chained to; see call.c */
	uint16_t nr;
	uint8_t chain;		/* FLEXSC_CHAIN_* */
	uint8_t state;		/* enum held_state */
	uint8_t before_kind;	/* enum handle_kind */
};

enum held_state {
	HELD_FREE = 0,
	HELD_CHAINED,	/* its predecessor has not completed */
	HELD_WAITING,	/* for an entry, in the order posted */
};

/* A list of calls, oldest first; head and tail mean nothing in an empty one. */
struct call_list {
	uint32_t head, tail;
	uint32_t count;
};

/*
 * Calls that are taken all at once, oldest first. Every call is on two of
 * these in its life, so it is made to be cheap: tail is where the next index
 * goes, and the last one's next means nothing until all are taken.
 */
struct call_queue {
	uint32_t *tail;
	uint32_t head;
};

/*
 * What is submitted lies in groups: calls of one group go to the kernel one
 * after the other, which is faster than a mixture. A group is an io_uring
 * operation, for the engine that makes use of it; the others have one group.
 */
#define GROUPS	64U

/* A list of cbs that have their result, oldest first. */
struct cb_list {
	struct flexsc_cb *head, *tail;
};

/*
 * cb->handle while it is pending: what kind of thing it is, and which. The
 * handle of a cb that isn't pending is whatever memory it was made of, so a
 * handle is believed only if what it names points back at the cb.
 */
enum handle_kind {
	HANDLE_NONE = 0,
	HANDLE_CALL,
	HANDLE_HELD,
	HANDLE_TIMER,
	HANDLE_SIGNAL,
};

#define HANDLE_SHIFT	60

struct flexsc_loop {
	/* Hot: every post and every completion. */
	struct arena entries;	/* struct flexsc_entry: the syscall pages */
	struct arena calls;	/* struct call, the same indices */
	uint32_t free;		/* entries that are */
	union {
		struct {
			uint32_t waiting;	/* held calls without an entry */
			uint8_t chain;	/* the next post's: flags | CHAINED */
			bool closing;
			bool stale;	/* belongs to the parent process */
		};
		uint64_t unusual;	/* any of these */
	};
	uint64_t groups;	/* those with something submitted: a bit each */
	uint32_t group_mask;	/* 0: all in one */
	uint64_t last;		/* what chain follows: a handle; see call.c */
	int64_t last_ret;	/* its result, once it has completed */
	uint64_t posted, completed;	/* calls */
	uint64_t events;	/* callbacks owed for anything else */
	struct call_queue done;
	struct cb_list ready;
	bool inside;		/* a callback is running */
	struct flexsc_stats *stats;
	struct call_queue submitted[GROUPS];

	const struct engine *engine;
	void *engine_data;

	struct arena held;	/* struct held; element 0 is the waiting list */
	uint32_t held_free;
	struct wheel wheel;
	struct signal_target *signals;
	struct signal_wait *signal_waits;

	/* Other threads', from here on. */
	struct flexsc_completions completions
		__attribute__((aligned(64)));
	_Atomic(struct flexsc_cb *) woken;	/* newest first */
	_Atomic uint32_t bell;		/* engines that sleep on a futex */
	atomic_bool sleeping;		/* see loop_notify() */
	atomic_bool stop;
	atomic_bool nudged;		/* a wake-up without a cb */

	/* Cold. */
	pthread_t owner;
	struct flexsc_options options;
	char cores[256];
	char why[160];
	struct flexsc_stats_page *page;
	int stats_fd;
	struct flexsc_loop *next, *prev;	/* all loops: fork.c */
};

/* page.c */
int flexsc__pages_init(struct flexsc_loop *loop, uint32_t max_entries);
void flexsc__pages_fini(struct flexsc_loop *loop);
bool flexsc__pages_grow(struct flexsc_loop *loop);

/* Would a call that is posted now have an entry at once? */
static inline bool flexsc__loop_has_entry(struct flexsc_loop *loop)
{
	return !loop->waiting &&
	       (loop->free != NONE || flexsc__pages_grow(loop));
}

static inline struct flexsc_entry *entry_of(const struct flexsc_loop *loop,
					    uint32_t index)
{
	return (struct flexsc_entry *)loop->entries.base + index;
}

static inline struct call *call_of(const struct flexsc_loop *loop,
				   uint32_t index)
{
	return (struct call *)loop->calls.base + index;
}

/* A list of calls. */
static inline void calls_append(struct flexsc_loop *loop,
				struct call_list *list, uint32_t index)
{
	if (list->count++)
		call_of(loop, list->tail)->next = index;
	else
		list->head = index;
	list->tail = index;
}

static inline uint32_t calls_take(struct flexsc_loop *loop,
				  struct call_list *list)
{
	uint32_t index = list->head;

	if (!list->count)
		return NONE;
	list->head = call_of(loop, index)->next;
	list->count--;
	return index;
}

/* A queue of calls. */
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

/* The first of all there are, or NONE; each one's next is the next. */
static inline uint32_t queue_take(struct call_queue *queue)
{
	*queue->tail = NONE;
	queue_init(queue);
	return queue->head;
}

static inline void callback(struct flexsc_cb *cb, int64_t ret)
{
	cb->ret = ret;
	if (cb->callback)
		cb->callback(cb);
}

/* call.c */
int flexsc__held_init(struct flexsc_loop *loop);
void flexsc__held_end(struct flexsc_loop *loop, uint32_t held, int64_t ret);
void flexsc__call_retire(struct flexsc_loop *loop, uint32_t index);
void flexsc__call_unstarted(struct flexsc_loop *loop, uint32_t index);
int flexsc__post_check(struct flexsc_loop *loop, struct flexsc_cb *cb);
bool flexsc__cb_pending(struct flexsc_loop *loop, const struct flexsc_cb *cb);

static inline struct held *held_of(const struct flexsc_loop *loop,
				   uint32_t held)
{
	return (struct held *)loop->held.base + held;
}

static inline uint64_t handle_make(enum handle_kind kind, uint64_t index)
{
	return (uint64_t)kind << HANDLE_SHIFT | index;
}

static inline enum handle_kind handle_kind(uint64_t handle)
{
	return (enum handle_kind)(handle >> HANDLE_SHIFT);
}

static inline uint64_t handle_index(uint64_t handle)
{
	return handle & ((1ULL << HANDLE_SHIFT) - 1);
}

/* cancel.c */
void flexsc__cancel_call(struct flexsc_loop *loop, uint32_t index,
			 enum cancel_cause cause);
void flexsc__cancel_later(struct flexsc_loop *loop, uint32_t index);
void flexsc__cancel_all(struct flexsc_loop *loop);
void flexsc__deadline_passed(struct flexsc_loop *loop,
			     const struct timer *timer);
void flexsc__deadline_clear(struct flexsc_loop *loop, uint32_t *deadline);

/* event.c */
uint64_t flexsc__now(void);
void flexsc__ready(struct flexsc_loop *loop, struct flexsc_cb *cb,
		   int64_t ret);
void flexsc__events_collect(struct flexsc_loop *loop);
bool flexsc__events_waiting(const struct flexsc_loop *loop);
struct signal_wait **flexsc__signal_find(struct flexsc_loop *loop,
					 const struct flexsc_cb *cb);
void flexsc__signal_end(struct flexsc_loop *loop, struct signal_wait **link,
			int64_t ret);
struct flexsc_cb *flexsc__ready_take(struct flexsc_loop *loop);
void flexsc__events_cancel(struct flexsc_loop *loop);
void flexsc__events_forked(void);

/* What engines do for each call. */

/* An entry the owner executed has its result; the callback is next. */
static inline void call_done(struct flexsc_loop *loop, uint32_t index,
			     int64_t ret)
{
	entry_finish(entry_of(loop, index), ret);
	queue_append(&loop->done, call_of(loop, index), index);
}

/* Is it to be executed? If it was cancelled, it is completed here. */
static inline bool call_wanted(struct flexsc_loop *loop, uint32_t index)
{
	if (entry_status(entry_of(loop, index)) == FLEXSC_SUBMITTED)
		return true;
	call_done(loop, index, -ECANCELED);
	return false;
}

/* loop.c */
int flexsc__loop_create(struct flexsc_loop **out,
			const struct flexsc_options *options, char *why,
			size_t size);
void flexsc__collect(struct flexsc_loop *loop);
bool flexsc__loop_ready(const struct flexsc_loop *loop);
/* The same, and what the engine hasn't been asked for; by spinning owners. */
bool flexsc__loop_stirs(const struct flexsc_loop *loop);
void flexsc__default_forked(void);

/*
 * Waking a loop that sleeps. The owner sets "sleeping", looks once more for
 * work, and sleeps; others make work visible, then look at "sleeping". All
 * four are sequentially consistent, so at least one side sees the other's: no
 * wake-up is lost. Whoever clears the flag rings, so it is rung once.
 */
static inline void loop_notify(struct flexsc_loop *loop)
{
	if (atomic_load(&loop->sleeping) &&
	    atomic_exchange(&loop->sleeping, false))
		loop->engine->wake(loop);
}

/* stats.c */
int flexsc__stats_init(struct flexsc_loop *loop);
void flexsc__stats_fini(struct flexsc_loop *loop);
void flexsc__stats_publish(const struct flexsc_loop *loop);
void flexsc__stats_batch(struct flexsc_loop *loop, uint32_t calls);

/*
 * Counters have one writer, so a plain sum does, stored whole for readers.
 * Those that syscall threads count too take an atomic one.
 */
static inline void count(uint64_t *counter, uint64_t n)
{
	__atomic_store_n(counter, *counter + n, __ATOMIC_RELAXED);
}

static inline void count_shared(uint64_t *counter, uint64_t n)
{
	__atomic_fetch_add(counter, n, __ATOMIC_RELAXED);
}

/* fork.c */
int flexsc__fork_register(struct flexsc_loop *loop);
void flexsc__fork_unregister(struct flexsc_loop *loop);

#endif /* FLEXSC_INTERNAL_LOOP_H */
