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
#include "lib/loop/loop.h"
#include "lib/base/syscall.h"
#include "lib/calls/call_info.h"
#include "lib/loop/guarded.h"
#include "lib/loop/stats.h"

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

#endif /* FLEXSC_ENGINE_KMOD_H */
