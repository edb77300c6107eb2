/* SPDX-License-Identifier: MIT */
/*
 * The kmod engine's part of a loop: kmod.c. Owner only, except for the fields
 * under the lock.
 */
#ifndef FLEXSC_ENGINE_KMOD_H
#define FLEXSC_ENGINE_KMOD_H

#include <linux/flexsc.h>
#include <sched.h>
#include <stdbool.h>
#include <stdint.h>

#include "lib/base/futex.h"
#include "lib/base/compiler.h"
#include "lib/loop/loop.h"
#include "lib/base/syscall.h"
#include "lib/calls/call_info.h"
#include "lib/loop/guarded.h"
#include "lib/loop/stats.h"
#include "lib/pool/pool.h"

/* How an entry is executed, in call->route. */
enum route {
	BY_KERNEL,
	BY_KERNEL_IN_PARTS,	/* may go there again; guarded */
	BY_KERNEL_CLOSING,	/* calls may wait for what it closes */
	BY_POOL,	/* the kernel had no thread left for it */
};

struct server;

/* Calls that bounce, and where they go instead: see kmod_bounce.c. */
struct bouncing {
	bool spares;		/* spares the kernel: the pool makes calls */
	bool always;		/* ... from now on: kmod_attach() */
	uint32_t seen;		/* flexsc_shared.bounced, when looked at last */
	uint32_t row;		/* entries that bounced in a row */
	uint32_t done;		/* entries that completed meanwhile */
	uint32_t spared;	/* calls since the kernel is spared */
	uint64_t since;
};

struct kmod {
	struct flexsc_loop *loop;
	int fd;
	int signo;
	struct flexsc_shared *shared;
	uint32_t *ring;
	uint32_t mask;
	size_t area;
	uint64_t seen;		/* completions taken from the queue */
	struct call_list to_pool;
	struct call_list again;	/* entries that came back INTERRUPTED */
	cpu_set_t cores;
	bool pinned;
	bool no_more;		/* no thread could be made, the last time */

	bool forsaken;		/* syscall threads can't be told to end */
	bool deserted;		/* the kernel has sent a syscall thread home */
	bool watched;		/* the owner was, when it registered */

	struct bouncing bouncing;

	struct lock lock;	/* guards the fields below */
	struct call_list strays;	/* entries of threads shut out */
	struct server *servers;
	uint32_t count, max;
	bool ending;
};

static inline struct kmod *kmod_of(const struct flexsc_loop *loop)
{
	return loop->engine_data;
}

static inline long control(struct kmod *kmod, unsigned long command,
			   uint64_t arg)
{
	count_shared(&kmod->loop->stats->mode_switches, 1);
	return raw_syscall(SYS_ioctl, (uint64_t)kmod->fd, command, arg, 0, 0,
			   0);
}

/*
 * Make an ioctl that takes no struct, or its lseek(): a filter may forbid
 * ioctl() and leave lseek().
 */
static inline long command(struct kmod *kmod, unsigned long request,
			   uint64_t arg)
{
	long ret = control(kmod, request, arg);

	return ret >= 0 ? ret :
			  raw_syscall(SYS_lseek, (uint64_t)kmod->fd,
				      FLEXSC_CALL(request, arg),
				      FLEXSC_CALL_SEEK, 0, 0, 0);
}

/* kmod_area.c: the memory that the module shares. When the engine is opened. */

/*
 * Register with the module, and map the area. The loop's entries are there from
 * now on; none is in use yet. 0 or a negative error code.
 */
int flexsc__kmod_area_map(struct kmod *kmod);

/* Another engine is tried: give the loop entries of its own, as it had. */
int flexsc__kmod_area_unmap(struct kmod *kmod, const struct arena *was);

/* kmod_threads.c: the module's syscall threads, and the pool where it has none left. */

/* How many syscall threads there may be: the rest is for a pool. */
uint32_t flexsc__kmod_threads_max(const struct flexsc_loop *loop);

/* Any thread: make one more; false if there can be none. */
bool flexsc__kmod_thread_create(struct kmod *kmod);

/*
 * An entry is CANCEL now: if a thread makes its call in user mode, interrupt
 * it.
 */
void flexsc__kmod_threads_cancel(struct kmod *kmod, uint32_t index);

/* Let all syscall threads end, and wait for that. */
void flexsc__kmod_threads_end(struct kmod *kmod);

/* In a forked child, which has no syscall threads. */
void flexsc__kmod_threads_forked(struct kmod *kmod);

/*
 * Have the pool make the entry's call, with kmod->to_pool's next submission.
 * False: no thread can be made.
 */
bool flexsc__kmod_to_pool(struct flexsc_loop *loop, uint32_t index);

static inline void kmod_submit_to_pool(struct kmod *kmod)
{
	if (kmod->to_pool.count)
		flexsc__pool_submit(loop_pool(kmod->loop), &kmod->to_pool);
}

/*
 * Have an entry made for which the kernel has no thread left that may block.
 * The pool has it when kmod->to_pool is submitted. Without a pool (no thread
 * can be made at all) the call is made here. True: the pool has it.
 */
bool flexsc__kmod_give_to_pool(struct flexsc_loop *loop, uint32_t index);

/* kmod_reap.c: entries that the module gives back, complete or INTERRUPTED. */

/* The entry may go to the kernel again, with the rest. */
COLD void flexsc__kmod_in_parts(struct flexsc_loop *loop, uint32_t index);

/* The kernel has completed the call with ret; returns the call's result. */
int64_t flexsc__kmod_finish(struct flexsc_loop *loop, uint32_t index,
			    int64_t ret);

/* Collect the entries that the kernel has completed; false: there are none. */
bool flexsc__kmod_collect(struct flexsc_loop *loop);

/* Likewise those of syscall threads that a filter keeps from the kernel. */
COLD void flexsc__kmod_collect_strays(struct flexsc_loop *loop);

/*
 * The loop is about to end, and a filter forbids the module's calls. Once the
 * syscall threads have ended nothing is executed any more, so entries that
 * aren't complete are completed here.
 */
COLD void flexsc__kmod_abandon(struct flexsc_loop *loop);

/* kmod_bounce.c: entries that bounce, and how the kernel is spared them. */

/* Registering found the thread watched: begin with the pool. */
void flexsc__kmod_spare_first(struct flexsc_loop *loop);

/* The kernel has executed n entries: did they bounce? */
void flexsc__kmod_note_bounces(struct flexsc_loop *loop, uint32_t n);

/* Has flexsc__kmod_note_bounces() something to look at? */
static inline bool bounced_lately(const struct kmod *kmod)
{
	return kmod->bouncing.row ||
	       __atomic_load_n(&kmod->shared->bounced, __ATOMIC_RELAXED) !=
		       kmod->bouncing.seen;
}

/* A batch begins while the kernel is spared: is it time for a trial? */
void flexsc__kmod_try_again(struct flexsc_loop *loop);

/* Have the call made without the kernel. False: there is no thread for it. */
bool flexsc__kmod_spare(struct flexsc_loop *loop, uint32_t index,
			enum call_class class);

#endif /* FLEXSC_ENGINE_KMOD_H */
