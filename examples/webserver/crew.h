/* SPDX-License-Identifier: MIT */
/*
 * Threads that do one thing, on cores of their own if one likes. One thread makes
 * crews; they never end.
 */
#ifndef WEBSERVER_CREW_H
#define WEBSERVER_CREW_H

#include <sched.h>
#include <stdbool.h>

struct crew {
	const char *name, *spec;	/* spec: THREADS[@CORE[-CORE]] */
	unsigned int threads;		/* from here on crew_parse()'s */
	bool pinned;
	cpu_set_t cores;
};

/* Read spec. NULL, or what is wrong with it. */
const char *crew_parse(struct crew *crew);

/* Start the threads with run(arg). 0, or an errno: then some may run. */
int crew_start(const struct crew *crew, void *(*run)(void *), void *arg);

#endif /* WEBSERVER_CREW_H */
