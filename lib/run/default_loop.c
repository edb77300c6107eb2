/* SPDX-License-Identifier: MIT */
#include "run.h"

#include <errno.h>
#include <flexsc/default.h>
#include <pthread.h>
#include <stddef.h>

/* The thread's default loop, and the loop that flexsc_init() created for the thread. */
static _Thread_local struct flexsc_loop *default_loop;
static _Thread_local struct flexsc_loop *own_loop;

/* The key whose destructor destroys the loop that flexsc_init() created. */
static pthread_key_t at_thread_end;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static int once_err;

void flexsc__default_loop_forget(const struct flexsc_loop *loop)
{
	if (default_loop == loop)
		default_loop = NULL;
	if (own_loop != loop)
		return;
	own_loop = NULL;
	pthread_setspecific(at_thread_end, NULL);
}

static void own_destroy(void *loop)
{
	flexsc_loop_destroy(loop);
}

static void own_make_key(void)
{
	once_err = -pthread_key_create(&at_thread_end, own_destroy);
}

struct flexsc_loop *flexsc_loop_default(void)
{
	return default_loop;
}

int flexsc_loop_set_default(struct flexsc_loop *loop)
{
	default_loop = loop;
	return 0;
}

int flexsc_init(void)
{
	struct flexsc_loop *loop;
	int err;

	if (default_loop || own_loop)
		return -EEXIST;
	pthread_once(&once, own_make_key);
	if (once_err)
		return once_err;
	err = flexsc_loop_create(&loop, NULL);
	if (err)
		return err;
	err = -pthread_setspecific(at_thread_end, loop);
	if (err) {
		flexsc_loop_destroy(loop);
		return err;
	}
	own_loop = loop;
	default_loop = loop;
	return 0;
}

int flexsc_fini(void)
{
	return flexsc_loop_destroy(own_loop);
}

void flexsc__default_loop_forked(void)
{
	default_loop = NULL;
	if (own_loop)
		pthread_setspecific(at_thread_end, NULL);
	own_loop = NULL;
}
