/* SPDX-License-Identifier: MIT */
/*
 * fork(): the child has copies of loops that it must not use: their syscall
 * threads are gone, their rings belong to the parent, their memory isn't
 * mapped. In the child each is marked stale and its descriptors are closed.
 */
#include "fork.h"

#include <pthread.h>

#include "lib/files/fds.h"
#include "lib/files/guard.h"
#include "lib/files/private_fd.h"
#include "lib/loop/all.h"
#include "lib/loop/loop.h"
#include "lib/loop/signal.h"
#include "lib/pool/pool.h"
#include "own.h"

static pthread_once_t once = PTHREAD_ONCE_INIT;
static int once_err;

static void fork_abandon(struct flexsc_loop *loop)
{
	loop->stale = true;
	flexsc__pool_forked(loop);
	loop->engine->forked(loop);
	flexsc__outer_close(loop);
	if (loop->stats_fd >= 0)
		flexsc__own_fd_close(loop->stats_fd);
}

static void fork_child(void)
{
	flexsc__own_fds_forked();
	flexsc__guards_forked();
	flexsc__own_forked();
	flexsc__signals_forked();
	flexsc__all_forked(fork_abandon);
}

/* The child has the same files, with the same positions. */
static void fork_begin(void)
{
	flexsc__fds_share();
	flexsc__all_lock();
	flexsc__own_fds_freeze();
}

static void fork_parent(void)
{
	flexsc__own_fds_thaw();
	flexsc__all_unlock();
}

static void fork_prepare(void)
{
	once_err = -pthread_atfork(fork_begin, fork_parent, fork_child);
}

int flexsc__fork_prepare(void)
{
	pthread_once(&once, fork_prepare);
	return once_err;
}
