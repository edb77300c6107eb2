/* SPDX-License-Identifier: MIT */
/*
 * What fork() does to loops. The child has copies of them that it must not
 * use: their syscall threads are gone, their rings belong to the parent, their
 * memory isn't mapped. So every loop is registered here, and in the child each
 * is marked stale and its descriptors are closed.
 */
#include "../calls/fds.h"
#include "../loop/loop.h"

#include <pthread.h>

static pthread_mutex_t loops_lock = PTHREAD_MUTEX_INITIALIZER;
static struct flexsc_loop *loops;

static pthread_once_t once = PTHREAD_ONCE_INIT;
static int once_err;

static void prepare(void)
{
	pthread_mutex_lock(&loops_lock);
}

static void parent(void)
{
	pthread_mutex_unlock(&loops_lock);
}

static void child(void)
{
	flexsc__default_forked();
	flexsc__events_forked();
	for (struct flexsc_loop *loop = loops; loop; loop = loop->next) {
		loop->stale = true;
		loop->engine->forked(loop);
		if (loop->stats_fd >= 0)
			flexsc__fds_close(loop->stats_fd);
	}
	loops = NULL;
	pthread_mutex_unlock(&loops_lock);
}

static void register_once(void)
{
	once_err = -pthread_atfork(prepare, parent, child);
}

int flexsc__fork_register(struct flexsc_loop *loop)
{
	pthread_once(&once, register_once);
	if (once_err)
		return once_err;
	pthread_mutex_lock(&loops_lock);
	loop->next = loops;
	if (loops)
		loops->prev = loop;
	loops = loop;
	pthread_mutex_unlock(&loops_lock);
	return 0;
}

void flexsc__fork_unregister(struct flexsc_loop *loop)
{
	pthread_mutex_lock(&loops_lock);
	if (loop->prev)
		loop->prev->next = loop->next;
	else
		loops = loop->next;
	if (loop->next)
		loop->next->prev = loop->prev;
	pthread_mutex_unlock(&loops_lock);
}
