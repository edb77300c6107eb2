/* SPDX-License-Identifier: MIT */
/*
 * A crew: threads that run one function, on cores of their own if the user says
 * so. The main thread parses and starts crews; a crew's threads never end.
 */
#ifndef WEBSERVER_CREW_H
#define WEBSERVER_CREW_H

#include <sched.h>
#include <stdbool.h>

struct crew {
	const char *name, *spec;	/* spec: THREADS[@CORE[-CORE]] */
	unsigned int threads;		/* crew_parse() sets the rest */
	bool pinned;
	cpu_set_t cores;
};

/* Read spec. NULL, or a static text that says what is wrong with spec. */
const char *crew_parse(struct crew *crew);

/* Start the threads with run(arg). 0, or an errno: some may run then. */
int crew_start(const struct crew *crew, void *(*run)(void *), void *arg);

#endif /* WEBSERVER_CREW_H */
