/* SPDX-License-Identifier: MIT */
/*
 * Engines execute submitted entries and report the done ones. The loop's owner calls
 * all functions except wake.
 *
 * An engine may give entries to a pool of syscall threads (pool/pool.h). The loop keeps
 * the pool, and does everything else for it: it checks the pool whenever it waits, ends
 * the pool before it closes the engine, and drops the pool in a forked child.
 */
#ifndef FLEXSC_LOOP_ENGINE_H
#define FLEXSC_LOOP_ENGINE_H

#include <stdbool.h>
#include <stdint.h>

struct flexsc_buffers;
struct flexsc_loop;

/* Usual maximum of callbacks of one kind per turn, for example of direct calls. */
#define DISPATCH_MOST	1024

/* What the kernel has done with a call whose owner is stuck: see run/handover.h. */
enum reach {
	REACH_UNSEEN,	/* the kernel hasn't taken the request */
	REACH_ARMED,	/* taken, and executed only when the owner next enters the
			 * kernel */
	REACH_EXECUTED,	/* maybe executing, or executed */
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
	 * Submit, then collect completed calls into loop->done; results of direct
	 * calls stay where they are. If no call is complete, sleep until one is,
	 * until wake() is called, or for at most ns nanoseconds (0: don't sleep).
	 * Spurious wake-ups are allowed.
	 */
	int (*wait)(struct flexsc_loop *loop, uint64_t ns);
	/*
	 * Would wait() return at once? NULL: the loop can check that without the
	 * engine.
	 */
	bool (*stirs)(const struct flexsc_loop *loop);
	/* Any thread, any signal handler: make a sleeping wait() return. */
	void (*wake)(struct flexsc_loop *loop);
	/*
	 * From now on, make this eventfd readable when a result arrives without a call
	 * of loop_notify(). 0 or -errno. NULL: the engine calls loop_notify() for all
	 * results.
	 */
	int (*attach)(struct flexsc_loop *loop, int fd);
	/*
	 * Are there calls whose results don't make the eventfd readable? If so, the
	 * loop has to poll for these results. NULL: there are never such calls.
	 */
	bool (*is_silent)(const struct flexsc_loop *loop);
	/* Called when a BUSY entry has become CANCEL: make its call end early. */
	void (*cancel)(struct flexsc_loop *loop, uint32_t index);
	/*
	 * Return when the kernel has looked up the descriptors of all submitted calls,
	 * so that their numbers may name other files. NULL: submitting does this.
	 */
	void (*settle)(struct flexsc_loop *loop);
	/*
	 * Called before a SUBMITTED entry is cancelled. If the engine would start it
	 * after its predecessor (staged.h), end it with -ECANCELED, and continue its
	 * chain as flexsc__staged_end() does. False: the entry isn't in a chain, or the
	 * engine has started it. NULL: the engine starts no chained calls.
	 */
	bool (*unchain)(struct flexsc_loop *loop, uint32_t index);
	/*
	 * The next four functions belong to engines that have direct calls
	 * (direct.h); other engines set all four to NULL.
	 *
	 * Run the callbacks of completed direct calls: loop->most at most, and
	 * if "until_stop", only until a flexsc_loop_stop(). Collect the other
	 * completed calls into loop->done. Returns how many callbacks ran.
	 */
	int (*dispatch)(struct flexsc_loop *loop, bool until_stop);
	/*
	 * Would dispatch() run a callback? Collects other calls' results that precede
	 * the first result of a direct call.
	 */
	bool (*complete)(struct flexsc_loop *loop);
	/* Collect all completed calls into loop->done, using their entries. */
	void (*collect)(struct flexsc_loop *loop);
	/*
	 * Called before a direct call is cancelled: give the call its entry. If the
	 * kernel won't see the request, the entry becomes SUBMITTED and is put into
	 * loop->submitted. If the call has its result, the entry becomes DONE and is
	 * put into loop->done. Otherwise it becomes BUSY.
	 */
	void (*shadow)(struct flexsc_loop *loop, uint32_t index);
	/*
	 * The next four functions belong to engines that have multishot requests
	 * (multishot.h); other engines set all four to NULL.
	 *
	 * Does the engine execute NR_ACCEPT entries? (It executes NR_RECV entries if
	 * it has taken their buffers on loan: buffers_lend().)
	 */
	bool (*accepts_many)(const struct flexsc_loop *loop);
	/*
	 * Take buffers->count new buffers, all free, on loan: for the NR_RECV entries
	 * of buffers->group. Sets buffers->lent. 0 or -errno.
	 */
	int (*buffers_lend)(struct flexsc_buffers *buffers);
	/*
	 * End the loan of the buffers. The caller guarantees that no entry names them
	 * any more.
	 */
	void (*buffers_unlend)(struct flexsc_buffers *buffers);
	/* Called when a lent buffer is free again. */
	void (*buffer_put)(struct flexsc_buffers *buffers, uint32_t which);
	/*
	 * See flexsc_loop_fix_fd() and flexsc_loop_unfix_fd(). NULL: fixed descriptors
	 * don't make the engine's calls cheaper.
	 */
	int (*fix)(struct flexsc_loop *loop, int fd);
	void (*unfix)(struct flexsc_loop *loop, int fd);
	/*
	 * The next five functions are for a thread that acts as the owner while the
	 * real owner is stuck outside the library (run/handover.h).
	 *
	 * How far has the engine got with this call? The caller guarantees that the
	 * call is direct, or that its entry has left loop->submitted. NULL: no thread
	 * may act as the owner.
	 */
	enum reach (*reach)(struct flexsc_loop *loop, uint32_t index);
	/* May that thread also cancel calls? NULL: no. */
	bool (*cancels_anywhere)(const struct flexsc_loop *loop);
	/*
	 * Called by that thread, if the kernel executes calls without the owner: let it
	 * continue with the calls and cancellations that it should have. May collect
	 * completed calls into loop->done. NULL: the kernel needs the owner.
	 */
	void (*tend)(struct flexsc_loop *loop);
	/*
	 * Called by the owner when it isn't stuck any more, before it enters the
	 * kernel: withdraw the request of an entry. False: the kernel has taken the
	 * request. NULL: the engine has no requests.
	 */
	bool (*withdraw)(struct flexsc_loop *loop, uint32_t index);
	/*
	 * Called when the loop ends: no call is executing any more, and the pool is
	 * gone.
	 */
	void (*close)(struct flexsc_loop *loop);
	/* In a forked child: close descriptors, and change nothing else. */
	void (*forked)(struct flexsc_loop *loop);
};

#endif /* FLEXSC_LOOP_ENGINE_H */
