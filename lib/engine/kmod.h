/* SPDX-License-Identifier: MIT */
/*
 * The kmod engine's part of a loop: kmod.c. Owner only, except for the fields under the
 * lock.
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
#include "lib/files/guard.h"
#include "lib/calls/call_info.h"
#include "lib/loop/guarded.h"
#include "lib/loop/stats.h"
#include "lib/pool/pool.h"
#include "sleep.h"

/* How an entry is executed; call->route. */
enum route {
	BY_KERNEL,
	BY_KERNEL_IN_PARTS,	/* as BY_KERNEL, but with guards, because the call's
				 * remainder may enter the kernel again */
	BY_KERNEL_CLOSING,	/* closes a descriptor that calls may be waiting for */
	BY_POOL,	/* the pool makes the call */
};

struct server;

/*
 * State that decides whether a pool makes the calls, because entries bounce:
 * kmod_bounce.c.
 */
struct bouncing {
	bool spares;		/* the pool makes calls instead of the kernel */
	bool always;		/* "spares" is permanent: kmod_attach() */
	uint32_t seen;		/* flexsc_shared.bounced at the last check */
	uint32_t row;		/* consecutive entries that bounced */
	uint32_t done;		/* number of entries that completed since "row" was
				 * last 0 */
	uint32_t spared;	/* number of calls that the pool has made since
				 * "spares" was set */
	uint64_t since;
};

/* A core of the policy. */
struct kmod_core {
	uint16_t core;
	uint64_t taken;		/* flexsc_shared.taken when it was last published */
};

struct kmod {
	struct flexsc_loop *loop;
	int fd;
	int signo;
	struct flexsc_shared *shared;
	uint32_t *ring;
	uint32_t mask;
	size_t area;
	uint64_t seen;		/* number of completions taken from the queue */
	struct call_list to_pool;
	struct call_list again;	/* entries that came back INTERRUPTED */
	cpu_set_t cores;
	struct kmod_core listed[FLEXSC_CORES_MAX];	/* in the policy's order */
	uint32_t listed_count;
	bool pinned;
	bool no_more;		/* the last attempt to create a syscall thread has
				 * failed */

	bool forsaken;		/* each syscall thread ends when its ioctl returns: the
				 * loop has quit, or a filter forbids FLEXSC_IOC_END and
				 * signals interrupt the threads */
	bool deserted;		/* a syscall thread has returned with
				 * FLEXSC_SERVE_END */
	bool watched;		/* a tracer or filter watched the owner when it
				 * registered */
	atomic_bool quit;	/* the loop doesn't enter the module any more; set
				 * by the owner or its heir, read by any thread */

	struct bouncing bouncing;

	bool watches;			/* "watcher" is registered */
	struct guard_watcher watcher;
	struct lock parts;		/* kmod_parts.c */

	struct lock lock;	/* guards the fields below */
	struct call_list strays;	/* Entries that syscall threads have taken
					 * and can't continue, because a seccomp
					 * filter keeps these threads from entering
					 * the module. */
	struct server *servers;
	uint32_t count, max;
	bool ending;

	_Atomic uint32_t unborn;	/* number of servers that are created later;
					 * read without the lock */
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
 * Make an ioctl() that takes no struct. If it fails, make the equivalent lseek(),
 * because a filter may forbid ioctl() and allow lseek().
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

/*
 * Any thread: end the owner's sleep. The owner stores "quit" before it announces its next
 * sleep in loop->sleeping, so a thread that finds it asleep in a futex finds "quit", too.
 */
static inline void kmod_end_sleep(struct kmod *kmod)
{
	if (atomic_load(&kmod->quit))
		flexsc__engine_ring(kmod->loop);
	else
		command(kmod, FLEXSC_IOC_WAKE, 0);
}

/* Are there entries in the submission ring that the kernel hasn't taken? */
static inline bool is_submitted(const struct kmod *kmod)
{
	return kmod->shared->tail !=
	       __atomic_load_n(&kmod->shared->head, __ATOMIC_RELAXED);
}

/* kmod_area.c: the memory shared with the module. Used when the engine is opened. */

/*
 * Register with the module, and map the area. From now on the loop's entries are in the
 * area, so none may be in use when this is called. 0 or -errno.
 */
int flexsc__kmod_area_map(struct kmod *kmod);

/* Restore the loop's own entries, because another engine is tried next. */
int flexsc__kmod_area_unmap(struct kmod *kmod, const struct arena *was);

/*
 * kmod_threads.c: the module's syscall threads, and the pool that replaces them when no
 * more can be created.
 */

/*
 * The maximum number of the module's syscall threads. The rest of options.max_threads
 * is left for a pool.
 */
uint32_t flexsc__kmod_threads_max(const struct flexsc_loop *loop);

/* Any thread: create one more syscall thread; false if that is impossible. */
bool flexsc__kmod_thread_create(struct kmod *kmod);

/*
 * Called after an entry has become CANCEL: if a syscall thread makes its call in user
 * mode, interrupt that call.
 */
void flexsc__kmod_threads_cancel(struct kmod *kmod, uint32_t index);

/* Does a syscall thread make the entry's call in user mode? */
bool flexsc__kmod_threads_bounce(struct kmod *kmod, uint32_t index);

/* Make all syscall threads end, and wait for them. */
void flexsc__kmod_threads_end(struct kmod *kmod);

/*
 * Free the records of syscall threads in a forked child, where the threads don't exist.
 */
void flexsc__kmod_threads_forked(struct kmod *kmod);

/*
 * Create the pool. In flexsc run before any call: later, its first thread might have to
 * wait for malloc(), and so for a call. Ignores a failure. Not if the address space is
 * limited: libc reserves 64 MB of it for each carrier that creates a thread.
 */
void flexsc__kmod_begin_pool(struct flexsc_loop *loop);
/*
 * Let the pool make the entry's call, when kmod->to_pool is submitted next. False: no
 * thread can be created.
 */
bool flexsc__kmod_to_pool(struct flexsc_loop *loop, uint32_t index);

static inline void kmod_submit_to_pool(struct kmod *kmod)
{
	if (kmod->to_pool.count)
		flexsc__pool_submit(loop_pool(kmod->loop), &kmod->to_pool);
}

/*
 * Handle an entry that may block, and for which the module has no thread left. True:
 * the pool makes the call, when kmod->to_pool is submitted. False: the entry has its
 * result, because the call can't block, or no thread could be created.
 */
bool flexsc__kmod_give_to_pool(struct flexsc_loop *loop, uint32_t index);

/* kmod_place.c: submitted entries, and where each one executes. */

/* Enter the module, which starts to execute the submitted entries. 0 or -errno. */
int flexsc__kmod_kick(struct kmod *kmod);

/*
 * Submit entries that came back INTERRUPTED to syscall threads: the module doesn't
 * interrupt a syscall thread's call when the owner is needed.
 */
COLD void flexsc__kmod_place_again(struct flexsc_loop *loop);

/*
 * Place all submitted entries: in the submission ring, in the pool, or inline. "waits":
 * the owner will wait for the results next.
 */
void flexsc__kmod_place_all(struct flexsc_loop *loop, bool waits);

/* kmod_reap.c: entries that the module returns, complete or INTERRUPTED. */

/* Collect the entries that the kernel has completed; false: there are none. */
bool flexsc__kmod_collect(struct flexsc_loop *loop);

/*
 * Collect the entries that syscall threads can't return, because a filter keeps these
 * threads from entering the kernel.
 */
COLD void flexsc__kmod_collect_strays(struct flexsc_loop *loop);

/*
 * Called when the loop ends, and a filter forbids the module's calls: complete the
 * incomplete entries here. The syscall threads have ended, so no other thread executes
 * an entry.
 */
COLD void flexsc__kmod_abandon(struct flexsc_loop *loop);

/* kmod_parts.c: calls that may take several parts. */

/* Guard the call's descriptors, because its remainder may enter the kernel again. */
COLD void flexsc__kmod_in_parts(struct flexsc_loop *loop, uint32_t index);

/* flexsc__call_keep() for such a call. */
bool flexsc__kmod_keep(struct flexsc_loop *loop, uint32_t index);

/* Set the route of any call to BY_POOL. */
void flexsc__kmod_by_pool(struct flexsc_loop *loop, uint32_t index);

/*
 * Called when the kernel has completed the call with ret: report the close of a
 * descriptor, or add up the parts of a partial transfer. Returns the call's result.
 */
int64_t flexsc__kmod_finish(struct flexsc_loop *loop, uint32_t index,
			    int64_t ret);

/* kmod_bounce.c: entries that bounce, and how to avoid them. */

/*
 * Called if a tracer or filter watched the owner when the owner registered: let the
 * pool make the calls from the start.
 */
void flexsc__kmod_spare_first(struct flexsc_loop *loop);

/*
 * Called when n entries have completed: count those that the module returned for
 * execution in user mode, and switch to the pool if there are too many in a row.
 */
void flexsc__kmod_note_bounces(struct flexsc_loop *loop, uint32_t n);

/* Does flexsc__kmod_note_bounces() need to run? */
static inline bool bounced_lately(const struct kmod *kmod)
{
	return kmod->bouncing.row ||
	       __atomic_load_n(&kmod->shared->bounced, __ATOMIC_RELAXED) !=
		       kmod->bouncing.seen;
}

/*
 * Called when a batch begins while the pool makes the calls: return to the module if it
 * is time for a trial.
 */
void flexsc__kmod_try_again(struct flexsc_loop *loop);

/*
 * Have the call made without the module. False: no syscall thread can be created to
 * make it.
 */
bool flexsc__kmod_spare(struct flexsc_loop *loop, uint32_t index,
			enum call_class class);

#endif /* FLEXSC_ENGINE_KMOD_H */
