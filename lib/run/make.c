/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/clock.h"
#include "lib/base/cores.h"
#include "lib/base/options.h"
#include "lib/files/fds.h"
#include "lib/files/plan.h"
#include "lib/engine/engine.h"
#include "lib/engine/ring.h"
#include "lib/loop/buffers.h"
#include "lib/loop/loop.h"
#include "lib/loop/signal.h"
#include "lib/files/private_fd.h"
#include "lib/files/guard.h"
#include "lib/loop/page.h"
#include "lib/loop/stats.h"
#include "lib/pool/pool.h"
#include "run.h"

#define MAX_ENTRIES	(1U << 20)
#define MAX_ENTRIES_MAX	(1U << 26)
#define MAX_THREADS	64
#define MAX_THREADS_MAX	4096

static int take_cores(struct flexsc_loop *loop)
{
	const int err = flexsc__cores_list(loop->options.kernel_cores, &loop->listed);

	CPU_ZERO(&loop->kernel_cores);
	for (unsigned int i = 0; !err && i < loop->listed.count; i++)
		CPU_SET(loop->listed.core[i], &loop->kernel_cores);
	return err;
}

static int take_options(struct flexsc_loop *loop,
			const struct flexsc_options *options)
{
	struct flexsc_options *own = &loop->options;
	int err = 0;

	if (options)
		err = options_copy(own, sizeof(*own), options,
				   offsetof(struct flexsc_options, kernel_cores));
	if (err)
		return err;
	if (own->flags & ~FLEXSC_POLL_ADAPTIVE || own->reserved)
		return -EINVAL;
	/*
	 * Parsing widens the calling thread's affinity for a moment. So parse the list
	 * here, and not when a later call creates the pool.
	 */
	if (own->kernel_cores && take_cores(loop))
		return -EINVAL;
	if (own->kernel_cores) {
		loop->cores = malloc(strlen(own->kernel_cores) + 1);
		if (!loop->cores)
			return -ENOMEM;
		strcpy(loop->cores, own->kernel_cores);
		own->kernel_cores = loop->cores;
	}
	if (!own->max_entries)
		own->max_entries = MAX_ENTRIES;
	if (!own->max_threads)
		own->max_threads = MAX_THREADS;
	if (own->max_entries > MAX_ENTRIES_MAX ||
	    own->max_threads > MAX_THREADS_MAX)
		return -EINVAL;
	patience_init(&loop->patience, own->poll_us * 1000ULL,
		      own->flags & FLEXSC_POLL_ADAPTIVE);
	/* Round the limit up to whole pages. */
	own->max_entries = (own->max_entries + FLEXSC_PAGE_ENTRIES - 1) /
			   FLEXSC_PAGE_ENTRIES * FLEXSC_PAGE_ENTRIES;
	return 0;
}

static void make_release(struct flexsc_loop *loop)
{
	flexsc__stats_fini(loop);
	flexsc__wheel_fini(&loop->wheel);
	flexsc__multishots_fini(loop);
	flexsc__arena_fini(&loop->staged);
	flexsc__pages_fini(loop);
	free(loop->cores);
	free(loop);
}

/*
 * fork(): the child must not use its copies of the loops. Their syscall threads don't
 * exist, their rings belong to the parent, and their memory isn't mapped. So in the
 * child, each loop is marked stale and its descriptors are closed.
 */

static pthread_once_t once = PTHREAD_ONCE_INIT;
static int once_err;

static void fork_abandon(struct flexsc_loop *loop)
{
	loop->stale = true;
	flexsc__pool_forked(loop);
	loop->engine->forked(loop);
	flexsc__outer_close(loop);
	if (loop->stats_fd >= 0)
		flexsc__private_fd_close(loop->stats_fd);
}

static void fork_child(void)
{
	flexsc__private_fds_forked();
	flexsc__pollers_forked();
	flexsc__guards_forked();
	flexsc__default_loop_forked();
	flexsc__signals_forked();
	flexsc__all_forked(fork_abandon);
}

/* Parent and child will share files and their positions: drop FD_ALONE. */
static void fork_begin(void)
{
	flexsc__fds_share();
	flexsc__all_lock();
	flexsc__private_fds_freeze(FREEZE_FORK);
}

static void fork_parent(void)
{
	flexsc__private_fds_thaw(FREEZE_FORK);
	/*
	 * Drop FD_ALONE once more, because other threads may have made descriptors
	 * since fork_begin().
	 */
	flexsc__fds_share();
	flexsc__all_unlock();
}

static void fork_prepare(void)
{
	once_err = -pthread_atfork(fork_begin, fork_parent, fork_child);
}

/* Install the fork handlers. Called before a loop is created. 0 or -errno. */
static int fork_prepared(void)
{
	pthread_once(&once, fork_prepare);
	return once_err;
}

static int make_init(struct flexsc_loop *loop)
{
	int err;

	loop->completions.head = FLEXSC_NO_ENTRY;
	loop->most = DISPATCH_MOST;
	for (unsigned int group = 0; group < GROUPS; group++)
		queue_init(&loop->submitted[group]);
	queue_init(&loop->done);
	flexsc__posts_init(loop);
	err = flexsc__stats_init(loop);
	if (!err)
		err = flexsc__pages_init(loop, loop->options.max_entries);
	if (!err)
		err = flexsc__staged_init(loop);
	if (!err)
		err = flexsc__wheel_init(&loop->wheel, time_monotonic());
	if (!err)
		err = flexsc__plan_init();
	if (!err)
		err = fork_prepared();
	if (!err)
		err = flexsc__engine_open(loop);
	if (err)
		return err;
	flexsc__wakes_init(&loop->wakes);
	flexsc__stats_publish(loop);
	flexsc__all_add(loop);
	return 0;
}

int flexsc__loop_create(struct flexsc_loop **out,
			const struct flexsc_options *options, char *why,
			size_t size)
{
	struct flexsc_loop *loop;
	int err;

	loop = aligned_alloc(64, (sizeof(*loop) + 63) / 64 * 64);
	if (!loop) {
		if (why)
			snprintf(why, size, "%s", strerror(ENOMEM));
		return -ENOMEM;
	}
	memset(loop, 0, sizeof(*loop));
	loop->stats_fd = -1;
	loop->outer.fd = -1;
	loop->owner = pthread_self();
	loop->no_thread = -EAGAIN;
	err = take_options(loop, options);
	if (!err)
		err = make_init(loop);
	if (err) {
		if (why)
			snprintf(why, size, "%s",
				 loop->why[0] ? loop->why : strerror(-err));
		make_release(loop);
		return err;
	}
	*out = loop;
	return 0;
}

int flexsc_loop_create(struct flexsc_loop **loop,
		       const struct flexsc_options *options)
{
	return loop ? flexsc__loop_create(loop, options, NULL, 0) : -EINVAL;
}

/*
 * Wait for threads that have reported the last completion, and may still be using the
 * loop.
 */
static void make_await_visitors(const struct flexsc_loop *loop)
{
	/* N2: acquires the end of each visit; pairs with N1 in loop.h. */
	while (atomic_load_explicit(&loop->visitors, memory_order_acquire))
		sched_yield();
}

int flexsc_loop_destroy(struct flexsc_loop *loop)
{
	int err;

	if (!loop)
		return 0;
	if (loop->inside)
		return -EBUSY;
	if (!loop->stale && !pthread_equal(loop->owner, pthread_self()))
		return -EPERM;
	flexsc__default_loop_forget(loop);
	if (loop->stale) {
		/*
		 * A stale loop: its mappings don't exist here, and its descriptors are
		 * closed.
		 */
		flexsc__buffers_fini(loop);
		free(loop->cores);
		free(loop);
		return 0;
	}
	flexsc__drain(loop);
	err = loop->lost ? -EIO : 0;
	make_await_visitors(loop);
	flexsc__all_remove(loop);
	flexsc__pool_destroy(loop);
	/*
	 * Don't free the buffers if the engine couldn't end calls: the kernel may
	 * still receive into them.
	 */
	if (!loop->lost)
		flexsc__buffers_fini(loop);
	loop->engine->close(loop);
	flexsc__outer_close(loop);
	make_release(loop);
	return err;
}

int flexsc_engine_probe(const char *name, char *why, size_t size)
{
	struct flexsc_options options = FLEXSC_OPTIONS_INIT;
	struct flexsc_loop *loop;
	int err;

	if (!name)
		return -EINVAL;
	options.engine = name;
	err = flexsc__loop_create(&loop, &options, why, size);
	if (err)
		return err;
	if (why)
		snprintf(why, size, "%s", loop->why);
	flexsc_loop_destroy(loop);
	return 0;
}

int flexsc_identity_changed(void)
{
	flexsc__rings_identify();
	return 0;
}

unsigned int flexsc_version(void)
{
	return FLEXSC_VERSION;
}

const char *flexsc_loop_engine(const struct flexsc_loop *loop)
{
	return loop ? loop->engine->name : NULL;
}

const char *flexsc_loop_why(const struct flexsc_loop *loop)
{
	return loop && loop->why[0] ? loop->why : NULL;
}
