/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "crew.h"

#include <pthread.h>
#include <stdio.h>

#define THREADS_MAX	1024

/* False: no core, or one that the process may not use, is in the range. */
static bool take_cores(struct crew *crew, unsigned int first, unsigned int last)
{
	cpu_set_t ours;

	if (sched_getaffinity(0, sizeof(ours), &ours))
		return false;
	CPU_ZERO(&crew->cores);
	for (unsigned int core = first; core <= last; core++) {
		if (core >= CPU_SETSIZE || !CPU_ISSET(core, &ours))
			return false;
		CPU_SET(core, &crew->cores);
	}
	return first <= last;
}

const char *crew_parse(struct crew *crew)
{
	unsigned int first, last;
	int end = 0, n;

	n = sscanf(crew->spec, "%4u%n@%4u%n-%4u%n", &crew->threads, &end, &first,
		   &end, &last, &end);
	if (n < 1 || crew->spec[end] || crew->threads < 1 ||
	    crew->threads > THREADS_MAX)
		return "give THREADS[@CORE[-CORE]], as 4@0-1";
	crew->pinned = n > 1;
	if (n == 2)
		last = first;
	if (crew->pinned && !take_cores(crew, first, last))
		return "there are no such cores";
	return NULL;
}

int crew_start(const struct crew *crew, void *(*run)(void *), void *arg)
{
	pthread_attr_t attr;
	pthread_t thread;
	int err = pthread_attr_init(&attr);

	if (err)
		return err;
	if (crew->pinned)
		err = pthread_attr_setaffinity_np(&attr, sizeof(crew->cores),
						  &crew->cores);
	for (unsigned int i = 0; i < crew->threads && !err; i++)
		err = pthread_create(&thread, &attr, run, arg);
	pthread_attr_destroy(&attr);
	return err;
}
