/* SPDX-License-Identifier: MIT */
/*
 * A loop: the calls, timers and signals of one thread, its owner. Fields that other
 * threads use are atomic, and marked. The files of this floor and what they own:
 *
 *	page.c		entries and calls, and the list of free ones
 *	call.c		posting and consuming
 *	direct.c	calls that their engine takes without an entry
 *	staged.c	calls without an entry: chained, or waiting for one
 *	handle.c	the object that a cb is pending for
 *	cancel.c	cancellation and deadlines
 *	guarded.c	guards of an entry's descriptors
 *	ready.c		cbs that got their result without an entry
 *	wheel.c		the timing wheel
 *	signal.c	signals as callbacks
 *	wake.c		wake-ups by other threads
 *	event.c		timers as callbacks; timers, signals, wake-ups together
 *	outer.c		the descriptor for an outer loop
 *	work.c		posting the program's functions
 *	multishot.c	calls that are posted once and complete many times
 *	buffers.c	memory that multishot calls receive into
 *	fixed_fd.c	descriptors whose files the engine holds
 *	stats.c		the published counters
 *	registry.c	all loops of the process
 *	engine.h	a loop's interface to its engine
 *
 * Creating, running and destroying a loop is in run/, above the engines.
 *
 * The life of a call, seen by the owner
 *
 *	posted		-> submitted	a free entry was filled
 *	posted		-> direct	the engine has written its request
 *	posted		-> staged	no entry is free, or it is chained
 *	staged		-> submitted	an entry is free for it, and was filled
 *	staged		-> ready	cancelled, or its predecessor failed
 *	submitted	-> the engine	its batch was submitted to the engine
 *	the engine	-> done		see <linux/flexsc.h>
 *	done		-> free		dispatched: its callback runs
 *	direct		-> free		its result has arrived: its callback runs
 *	direct		-> submitted	its entry is needed, and was filled
 *
 * Lists of calls are linked through struct call; a call is in one list at a time. The
 * ready list has the cbs of signals, of cancelled timers, of calls that ended before
 * they started, and the shots of multishot calls. Expired timers and wake-ups aren't in
 * it. The ready list is linked through the cbs, which belong to the library until their
 * callbacks run.
 */
#ifndef FLEXSC_INTERNAL_LOOP_H
#define FLEXSC_INTERNAL_LOOP_H

#include <errno.h>
#include <flexsc/flexsc.h>
#include <linux/flexsc.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "lib/base/cores.h"
#include "lib/calls/call_info.h"
#include "arena.h"
#include "lib/base/patience.h"
#include "call.h"
#include "engine.h"
#include "entry.h"
#include "handle.h"
#include "staged.h"
#include "multishot.h"
#include "outer.h"
#include "ready.h"
#include "wheel.h"
#include "page.h"
#include "wake.h"

/*
 * Submitted calls are grouped by io_uring operation, because the kernel executes
 * similar calls in sequence faster than a mixture. Engines that don't benefit use a
 * single group.
 */
#define GROUPS	64U

struct flexsc_loop {
	/* Hot: used by every post and every completion. */
	struct arena entries;	/* struct flexsc_entry: the syscall pages */
	struct arena calls;	/* struct call, at the same indices */
	uint32_t free;		/* the first free entry */
	union {
		struct {
			uint32_t waiting;	/* number of staged calls that wait
						 * for an entry */
			bool closing;
			bool stale;	/* this is the copy in a forked child; only the
					 * parent may use the loop */
		};
		uint64_t unusual;	/* all flags in one word: nonzero if any is
					 * set */
	};
	uint64_t groups;	/* bit n: group n has submitted calls */
	uint32_t group_mask;	/* 0: there is one group */
	int most;		/* callbacks of one kind that run in a turn: DISPATCH_MOST, or
				 * fewer if the engine sets it */
	uint64_t posted, completed;	/* numbers of calls */
	uint64_t events;	/* pending callbacks of timers, signals and the like */
	int64_t refs;		/* flexsc_loop_ref() and flexsc_loop_unref() */
	struct call_queue done;
	struct cb_list ready;
	bool inside;		/* a callback is running */
	bool ready_first;	/* the next flexsc_loop_harvest() takes the ready list
				 * first */
	struct flexsc_stats *stats;
	uint32_t grown;		/* elements in the arenas when the counters were
				 * last published */
	struct call_queue submitted[GROUPS];

	const struct engine *engine;
	void *engine_data;
	struct pool *pool;	/* accessed by loop_pool() */

	struct arena staged;	/* struct staged; element 0 is the waiting list */
	uint32_t staged_free;
	struct wheel wheel;
	struct signal_target *signals;
	struct signal_wait *signal_waits;
	struct multishots multishots;
	struct flexsc_buffers *buffers;
	uint32_t groups_made;	/* number of buffer groups created */

	/* The fields from here on are also used by other threads. */
	struct flexsc_completions completions
		__attribute__((aligned(64)));
	struct wakes wakes;
	_Atomic uint32_t bell;		/* futex word on which some engines sleep */
	_Atomic uint8_t sleeping;	/* enum sleep: see loop_notify() */
	atomic_bool notified;		/* set by loop_notify(), cleared by run_collect() */
	atomic_bool stop;
	atomic_bool nudged;		/* set by flexsc_loop_wake() without a cb */
	_Atomic uint32_t visitors;	/* threads between loop_visit() and
					 * loop_leave() */
	/* The loop to notify instead of this one, or NULL: E1, E2 (run/handover.c). */
	_Atomic(struct flexsc_loop *) heir;

	/* Rarely used fields. */
	struct flexsc_cb orphan;	/* replaces the cb of a call that an heir has
					 * taken: run/handover.h */
	pthread_t owner;
	uint32_t lost;		/* number of calls that stay pending, because the
				 * engine can't end them */
	bool makes_ready;	/* Linux 6.12 or later: FD_OLD_WORKER doesn't apply
				 * (files/fds.h) */
	int no_thread;		/* result of a call if no syscall thread can be
				 * created */
	struct patience patience;	/* how long the owner polls */
	struct flexsc_options options;
	char *cores;		/* options.kernel_cores points to this copy; or NULL */
	cpu_set_t kernel_cores;	/* those of them that the creator could use */
	struct cores listed;	/* the same in the option's order */
	char why[160];
	struct flexsc_stats_page *page;
	struct flexsc_stats_cores *stats_cores;	/* NULL: no kernel_cores */
	int stats_fd;
	struct outer outer;
	struct flexsc_loop *next, *prev;	/* registry.c */

	/* The post function of each call, by number. */
	post_fn posts[CALLS_ROOM];
	post3_fn posts3[CALLS_ROOM];
};

/* Would a call posted now get an entry at once? */
static inline bool flexsc__loop_has_entry(struct flexsc_loop *loop)
{
	return !loop->waiting &&
	       (loop->free != NONE || flexsc__pages_grow(loop));
}

/*
 * End the process if another thread than the owner runs this. Under flexsc run the
 * owner is a carrier.
 */
#define loop_assert_owner(loop) \
	RULE(pthread_equal(pthread_self(), (loop)->owner))

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

/* Is there a call at this index? */
static inline bool call_in_use(const struct flexsc_loop *loop, uint32_t index)
{
	return call_is_direct(call_of(loop, index)) ||
	       entry_status(entry_of(loop, index)) != FLEXSC_FREE;
}

/* Lists of calls. */
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

/* Complete the cb: it belongs to the program from here on. */
static inline struct flexsc_cb *cb_complete(struct flexsc_cb *cb, int64_t ret)
{
	cb->ret = ret;
	cb->flags = 0;
	return cb;
}

static inline void callback(struct flexsc_cb *cb, int64_t ret)
{
	cb_complete(cb, ret);
	if (cb->callback)
		cb->callback(cb);
}

/*
 * Returns the loop's pool of syscall threads; NULL until an engine needs one. Any
 * thread, if the loop can't end meanwhile: see registry.c.
 */
static inline struct pool *loop_pool(const struct flexsc_loop *loop)
{
	/* Acquires the pool; pairs with flexsc__pool_make(). */
	return __atomic_load_n(&loop->pool, __ATOMIC_ACQUIRE);
}

static inline struct staged *staged_of(const struct flexsc_loop *loop,
				       uint32_t staged)
{
	return (struct staged *)loop->staged.base + staged;
}

/* What all engines do with a call. */

/* Called when the owner has executed the entry: put it into loop->done. */
static inline void call_done(struct flexsc_loop *loop, uint32_t index,
			     int64_t ret)
{
	entry_finish(entry_of(loop, index), ret);
	queue_append(&loop->done, call_of(loop, index), index);
}

/* End an entry that was never begun, with this result. */
static inline void call_refuse(struct flexsc_loop *loop, uint32_t index,
			       int64_t ret)
{
	entry_refuse(entry_of(loop, index), ret);
	queue_append(&loop->done, call_of(loop, index), index);
}

/*
 * May the engine execute the entry? False: the entry was cancelled, and is completed
 * here.
 */
static inline bool call_admit(struct flexsc_loop *loop, uint32_t index)
{
	if (entry_status(entry_of(loop, index)) == FLEXSC_SUBMITTED)
		return true;
	call_refuse(loop, index, -ECANCELED);
	return false;
}

/* Whether and where the owner sleeps. */
enum sleep {
	AWAKE = 0,
	ASLEEP,		/* in engine->wait(): engine->wake() wakes it */
	ASLEEP_OUTSIDE,	/* in an outer loop: making outer.fd readable wakes it */
};

/*
 * Wake the owner if it sleeps. The owner sets "sleeping", checks once more for work,
 * and sleeps. Another thread makes work visible, then reads "sleeping". All four
 * accesses are sequentially consistent, so at least one of the threads sees the other's
 * store, and no wake-up is lost. Only the thread that clears "sleeping" wakes the owner.
 *
 * While awake, the owner checks for other threads' work only if "notified" is set. The
 * owner clears "notified" before it checks, so the same argument applies.
 */
static inline void loop_notify(struct flexsc_loop *loop)
{
	struct flexsc_loop *heir;
	uint8_t was;

	if (!atomic_load(&loop->notified))
		atomic_store(&loop->notified, true);
	/*
	 * E2: this thread reads "heir" after it has made its work visible; pairs with
	 * E1 in run/handover.c. "nudged" ends the heir's wait; the heir then checks
	 * the loops that it has adopted.
	 */
	while ((heir = atomic_load(&loop->heir))) {
		loop = heir;
		atomic_store(&loop->notified, true);
		atomic_store(&loop->nudged, true);
	}
	if (!atomic_load(&loop->sleeping))
		return;
	was = atomic_exchange(&loop->sleeping, AWAKE);
	if (was == ASLEEP)
		/*
		 * Acquires the engine, because the owner may have replaced it before
		 * it fell asleep: flexsc__uring_fail().
		 */
		__atomic_load_n(&loop->engine, __ATOMIC_ACQUIRE)->wake(loop);
	else if (was == ASLEEP_OUTSIDE)
		flexsc__outer_ring(loop);
}

/*
 * Called before and after a notification from another thread, respectively. Meanwhile
 * the owner may return from its wait and destroy the loop, but it doesn't free the loop
 * before all visits have ended. N1: loop_leave() is the thread's last use of the loop;
 * pairs with N2 in run/make.c.
 */
static inline void loop_visit(struct flexsc_loop *loop)
{
	atomic_fetch_add(&loop->visitors, 1);
}

static inline void loop_leave(struct flexsc_loop *loop)
{
	atomic_fetch_sub_explicit(&loop->visitors, 1, memory_order_release);
}

/*
 * Can a turn skip collecting, because there is nothing to collect: no notification, no
 * completion (syscall threads push completions before they notify), no armed timer and
 * no signal?
 */
static inline bool loop_is_quiet(struct flexsc_loop *loop)
{
	return !atomic_load_explicit(&loop->notified, memory_order_relaxed) &&
	       __atomic_load_n(&loop->completions.head, __ATOMIC_RELAXED) ==
		       FLEXSC_NO_ENTRY &&
	       !loop->wheel.armed && !loop->signals;
}

/* registry.c: all loops of the process. Any thread. */

void flexsc__all_add(struct flexsc_loop *loop);
void flexsc__all_remove(struct flexsc_loop *loop);

/*
 * Call these two functions before and after fork(), respectively. In the child no loop
 * is registered afterwards.
 */
void flexsc__all_lock(void);
void flexsc__all_unlock(void);
void flexsc__all_forked(void (*each)(struct flexsc_loop *loop));

#endif /* FLEXSC_INTERNAL_LOOP_H */
