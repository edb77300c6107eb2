/* SPDX-License-Identifier: MIT */
#include <pthread.h>

#include "loop.h"

static pthread_mutex_t all_lock = PTHREAD_MUTEX_INITIALIZER;
static struct flexsc_loop *loops;

void flexsc__all_lock(void)
{
	pthread_mutex_lock(&all_lock);
}

void flexsc__all_unlock(void)
{
	pthread_mutex_unlock(&all_lock);
}

void flexsc__all_forked(void (*each)(struct flexsc_loop *loop))
{
	for (struct flexsc_loop *loop = loops; loop; loop = loop->next)
		each(loop);
	loops = NULL;
	flexsc__all_unlock();
}

void flexsc__all_add(struct flexsc_loop *loop)
{
	flexsc__all_lock();
	loop->next = loops;
	if (loops)
		loops->prev = loop;
	loops = loop;
	flexsc__all_unlock();
}

void flexsc__all_remove(struct flexsc_loop *loop)
{
	flexsc__all_lock();
	if (loop->prev)
		loop->prev->next = loop->next;
	else
		loops = loop->next;
	if (loop->next)
		loop->next->prev = loop->prev;
	flexsc__all_unlock();
}
