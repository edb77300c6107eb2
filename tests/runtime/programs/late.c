/* SPDX-License-Identifier: MIT */
/*
 * A library between FlexSC-Threads and libc that delays the creation and the ends of
 * threads: births.c, last.c.
 */
#define _GNU_SOURCE
#include "late.h"

#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

atomic_uint late_to_make, late_to_begin, late_to_end;
atomic_uint late_ends;

typedef int make_fn(pthread_t *thread, const pthread_attr_t *attr,
		    void *(*start)(void *), void *arg);

struct beginning {
	void *(*start)(void *);
	void *arg;
};

static void *begin_late(void *arg)
{
	struct beginning beginning = *(struct beginning *)arg;
	void *ret;

	free(arg);
	usleep(late_to_begin);
	ret = beginning.start(beginning.arg);
	late_ends++;
	usleep(late_to_end);
	return ret;
}

int pthread_create(pthread_t *thread, const pthread_attr_t *attr,
		   void *(*start)(void *), void *arg)
{
	make_fn *make = (make_fn *)dlsym(RTLD_NEXT, "pthread_create");
	struct beginning *beginning;

	if (late_to_make)
		usleep(late_to_make);
	if (!late_to_begin && !late_to_end)
		return make(thread, attr, start, arg);
	beginning = malloc(sizeof(*beginning));
	if (!beginning)
		return EAGAIN;
	*beginning = (struct beginning){ start, arg };
	return make(thread, attr, begin_late, beginning);
}
