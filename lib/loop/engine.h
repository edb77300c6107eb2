/* SPDX-License-Identifier: MIT */
/*
 * Engines execute submitted entries and report the done ones. The loop's owner calls
 * all functions except wake.
 *
 * An engine may give entries to a pool of syscall threads (pool/pool.h), which the loop
 * then keeps. The engine doesn't manage the pool otherwise: the loop checks the pool
 * whenever it waits, ends it before it closes the engine, and drops it in a forked
 * child.
 */
#ifndef FLEXSC_LOOP_ENGINE_H
#define FLEXSC_LOOP_ENGINE_H

#include <stdbool.h>
#include <stdint.h>

struct flexsc_buffers;
struct flexsc_loop;

/* Callbacks per turn: so many of direct calls and so many of others. */
#define DISPATCH_MOST	1024

/* Progress of a call whose owner is stuck: see run/handover.h. */
enum reach {
	REACH_UNSEEN,	/* the kernel hasn't taken the request */
	REACH_ARMED,	/* the kernel executes it when the owner next enters */
	REACH_EXECUTED,	/* it may be executing, or may have been executed */
};

struct engine {
	const char *name;
	/*
	 * Prepare to execute: 0 or -errno. -EOPNOTSUPP: the engine doesn't work here,
	 * and loop->why gives the reason in one line.
	 */
	int (*open)(struct flexsc_loop *loop);
	/* Start executing loop->submitted, and empty its lists. */
	void (*submit)(struct flexsc_loop *loop);
	/*
	 * Submit, then collect completed calls into loop->done; results of direct calls
	 * stay where they are. If no call is complete, sleep until one is, until
	 * wake(), or for ns nanoseconds at most (0: don't sleep). Spurious wake-ups are
	 * allowed.
	 */
	int (*wait)(struct flexsc_loop *loop, uint64_t ns);
	/* Would wait() return at once? NULL: the loop itself can find out. */
	bool (*stirs)(const struct flexsc_loop *loop);
	/* Any thread, any signal handler: end wait(). */
	void (*wake)(struct flexsc_loop *loop);
	/*
	 * From now on, make this eventfd readable for each result that loop_notify()
	 * doesn't announce. 0 or -errno. NULL: loop_notify() announces all results.
	 */
	int (*attach)(struct flexsc_loop *loop, int fd);
	/*
	 * Are there calls whose results the eventfd won't announce, so that the loop
	 * has to poll for them? NULL: never.
	 */
	bool (*is_silent)(const struct flexsc_loop *loop);
	/* An entry that was BUSY is now CANCEL: end it early. */
	void (*cancel)(struct flexsc_loop *loop, uint32_t index);
	/*
	 * The next four functions belong to engines that have direct calls (direct.h);
	 * other engines set all four to NULL.
	 *
	 * Run the callbacks of completed direct calls: DISPATCH_MOST at most, and if
	 * "until_stop", only until a stop. Collect the other completed calls into
	 * loop->done. Returns how many callbacks ran.
	 */
	int (*dispatch)(struct flexsc_loop *loop, bool until_stop);
	/* Would dispatch() run a callback? Collects the results before that one. */
	bool (*complete)(struct flexsc_loop *loop);
	/* Collect all completed calls into loop->done, using their entries. */
	void (*collect)(struct flexsc_loop *loop);
	/*
	 * A direct call that is to be cancelled needs its entry. Afterwards the entry
	 * is SUBMITTED and in loop->submitted, if the kernel won't see the request; or
	 * BUSY; or DONE and in loop->done.
	 */
	void (*shadow)(struct flexsc_loop *loop, uint32_t index);
	/*
	 * The next four functions belong to engines that have multishot requests
	 * (multishot.h); other engines set all four to NULL.
	 *
	 * May NR_ACCEPT be posted? (NR_RECV may if its buffers are lent.)
	 */
	bool (*accepts_many)(const struct flexsc_loop *loop);
	/*
	 * Borrow buffers->count new buffers, all free, for NR_RECV entries that name
	 * buffers->group, and set buffers->lent. 0 or -errno.
	 */
	int (*buffers_lend)(struct flexsc_buffers *buffers);
	/* The loop takes lent buffers back. No entry names them any more. */
	void (*buffers_unlend)(struct flexsc_buffers *buffers);
	/* A buffer is free again. */
	void (*buffer_put)(struct flexsc_buffers *buffers, uint32_t which);
	/*
	 * See flexsc_loop_fix_fd(). NULL: the engine gains nothing from fixed
	 * descriptors.
	 */
	int (*fix)(struct flexsc_loop *loop, int fd);
	void (*unfix)(struct flexsc_loop *loop, int fd);
	/*
	 * The next three functions are for a thread that acts as the owner while the
	 * real owner is stuck outside the library (run/handover.h).
	 *
	 * How far has the engine got with this direct call, or with this entry, which
	 * has left loop->submitted? NULL: no thread may act as the owner.
	 */
	enum reach (*reach)(struct flexsc_loop *loop, uint32_t index);
	/* May that thread cancel calls as well? */
	bool cancels_anywhere;
	/*
	 * Called by the owner after its return, before it enters the kernel: withdraw
	 * an entry's request. False: the kernel has taken the request. NULL: the engine
	 * has no requests.
	 */
	bool (*withdraw)(struct flexsc_loop *loop, uint32_t index);
	/* The loop ends: no call is executing any more, and the pool is gone. */
	void (*close)(struct flexsc_loop *loop);
	/* In a forked child: close descriptors, and change nothing else. */
	void (*forked)(struct flexsc_loop *loop);
};

#endif /* FLEXSC_LOOP_ENGINE_H */
