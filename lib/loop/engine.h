/* SPDX-License-Identifier: MIT */
/*
 * Engines execute submitted entries and report the done ones. Every function
 * but wake is called by the loop's owner.
 *
 * An engine may give entries to a pool of syscall threads (pool/pool.h), which
 * the loop has from then on. The pool's other needs are no engine's business:
 * the loop checks it whenever it waits, ends it before the engine is closed, and
 * forgets it in a forked child.
 */
#ifndef FLEXSC_LOOP_ENGINE_H
#define FLEXSC_LOOP_ENGINE_H

#include <stdbool.h>
#include <stdint.h>

struct flexsc_buffers;
struct flexsc_loop;

#define DISPATCH_MOST	1024	/* callbacks of a kind in one turn */

/* How far the engine has got with a call whose owner is stuck: see run/handover.h. */
enum reach {
	REACH_UNSEEN,	/* the kernel hasn't taken its request */
	REACH_ARMED,	/* the kernel executes it when the owner enters next */
	REACH_EXECUTED,	/* it may be executing, or have been executed */
};

struct engine {
	const char *name;
	/*
	 * Get ready to execute: 0, or -errno. -EOPNOTSUPP means that the
	 * engine doesn't work here, and loop->why says why in one line.
	 */
	int (*open)(struct flexsc_loop *loop);
	/* Start executing loop->submitted; leaves its lists empty. */
	void (*submit)(struct flexsc_loop *loop);
	/*
	 * Submit, then collect what is complete into loop->done; results of
	 * direct calls are left where they are. When nothing is complete, sleep
	 * until something is, until wake, or for ns nanoseconds at most; 0
	 * doesn't sleep. Waking up for no reason is allowed.
	 */
	int (*wait)(struct flexsc_loop *loop, uint64_t ns);
	/* Would wait find something at once? NULL: the loop knows itself. */
	bool (*stirs)(const struct flexsc_loop *loop);
	/* Any thread, any signal handler: end the wait. */
	void (*wake)(struct flexsc_loop *loop);
	/*
	 * From now on make this eventfd readable with each result that isn't
	 * told by loop_notify(). 0 or -errno. NULL: all of them are.
	 */
	int (*attach)(struct flexsc_loop *loop, int fd);
	/*
	 * Are there calls that the eventfd won't tell of, so that they have to
	 * be looked for? NULL: never.
	 */
	bool (*is_silent)(const struct flexsc_loop *loop);
	/* An entry that was BUSY is CANCEL now: end it early. */
	void (*cancel)(struct flexsc_loop *loop, uint32_t index);
	/*
	 * Of an engine that has direct calls (direct.h); the others have none
	 * of these four.
	 *
	 * Run the callbacks of direct calls that are complete now, DISPATCH_MOST
	 * of them at most, and before a stop if "until_stop"; collect the rest
	 * of what is complete into loop->done. Returns how many ran.
	 */
	int (*dispatch)(struct flexsc_loop *loop, bool until_stop);
	/* Would dispatch() run one? Collects what comes before it. */
	bool (*complete)(struct flexsc_loop *loop);
	/* Collect all that is complete into loop->done, by their entries. */
	void (*collect)(struct flexsc_loop *loop);
	/*
	 * A direct call is to be cancelled, and needs its entry: SUBMITTED and
	 * in loop->submitted, if the kernel will not see the request; BUSY; or
	 * DONE, and in loop->done.
	 */
	void (*shadow)(struct flexsc_loop *loop, uint32_t index);
	/*
	 * The next four are of engines that have multishot requests
	 * (multishot.h); other engines have none of the four.
	 *
	 * May NR_ACCEPT be posted? (NR_RECV may if its buffers are lent.)
	 */
	bool (*accepts_many)(const struct flexsc_loop *loop);
	/*
	 * Take buffers->count new buffers, all free, for NR_RECV entries that
	 * name buffers->group, and set buffers->lent. 0 or -errno.
	 */
	int (*buffers_lend)(struct flexsc_buffers *buffers);
	/* The loop takes lent buffers back; no entry names them. */
	void (*buffers_unlend)(struct flexsc_buffers *buffers);
	/* A buffer is free again. */
	void (*buffer_put)(struct flexsc_buffers *buffers, uint32_t which);
	/* See flexsc_loop_fix_fd(). NULL: there is nothing to gain. */
	int (*fix)(struct flexsc_loop *loop, int fd);
	void (*unfix)(struct flexsc_loop *loop, int fd);
	/*
	 * The next three are for a thread that acts as owner while the owner is
	 * stuck outside the library (run/handover.h).
	 *
	 * How far has the engine got with this direct call, or with this entry,
	 * which has left loop->submitted? NULL: no thread may act as owner.
	 */
	enum reach (*reach)(struct flexsc_loop *loop, uint32_t index);
	/* May that thread cancel calls, too? */
	bool cancels_anywhere;
	/*
	 * Owner, when it is back, before it enters the kernel: withdraw an entry's
	 * request. False: the kernel has taken it. NULL: the engine has no requests.
	 */
	bool (*withdraw)(struct flexsc_loop *loop, uint32_t index);
	/* Nothing is executing any more, and the pool is gone. */
	void (*close)(struct flexsc_loop *loop);
	/* In a forked child: close descriptors, touch nothing else. */
	void (*forked)(struct flexsc_loop *loop);
};

#endif /* FLEXSC_LOOP_ENGINE_H */
