/* SPDX-License-Identifier: MIT */
/*
 * Between the files of the kmod engine.
 */
#ifndef FLEXSC_ENGINE_KMOD_H
#define FLEXSC_ENGINE_KMOD_H

#include <linux/flexsc.h>
#include <sched.h>
#include <stdbool.h>
#include <stdint.h>

#include "../base/futex.h"
#include "../loop/loop.h"
#include "../base/syscall.h"

/* How an entry is executed, in call->route. */
enum route {
	BY_KERNEL,
	BY_POOL,	/* the kernel had no thread left for it */
};

struct pool;
struct server;

struct kmod {
	struct flexsc_loop *loop;
	int fd;
	int signo;
	struct flexsc_shared *shared;
	uint32_t *ring;
	uint32_t mask;
	size_t area;
	uint64_t seen;		/* completions taken from the queue */
	struct pool *pool;	/* NULL until needed */
	struct call_list to_pool;
	struct call_list again;	/* came back INTERRUPTED */
	cpu_set_t cores;
	bool pinned;
	bool no_more;		/* no thread could be made, the last time */

	bool forsaken;		/* threads can't be told to end */

	struct lock lock;	/* of the following */
	struct call_list strays;	/* of threads that can't go back */
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

/* One that takes no struct: a filter may forbid ioctl(), and leave lseek(). */
static inline long command(struct kmod *kmod, unsigned long request,
			   uint64_t arg)
{
	long ret = control(kmod, request, arg);

	return ret >= 0 ? ret :
			  raw_syscall(SYS_lseek, (uint64_t)kmod->fd,
				      FLEXSC_CALL(request, arg),
				      FLEXSC_CALL_SEEK, 0, 0, 0);
}

/* kmod_threads.c */

/* How many syscall threads there may be: the rest is for a pool. */
uint32_t flexsc__kmod_threads_max(const struct flexsc_loop *loop);

/* Any thread: make one more; false if there can be none. */
bool flexsc__kmod_thread_create(struct kmod *kmod);

/* An entry is CANCEL now: if a thread has it in user mode, interrupt that. */
void flexsc__kmod_threads_cancel(struct kmod *kmod, uint32_t index);

/* Let all end, and wait for that. */
void flexsc__kmod_threads_end(struct kmod *kmod);

/* In a forked child, where there are none. */
void flexsc__kmod_threads_forked(struct kmod *kmod);

/*
 * The kernel has no thread left that may block: a pool has other ways, once
 * kmod->to_pool is submitted. Without one (no thread can be made at all) the
 * call is made here. True: the pool has it.
 */
bool flexsc__kmod_give_to_pool(struct flexsc_loop *loop, uint32_t index);

#endif /* FLEXSC_ENGINE_KMOD_H */
