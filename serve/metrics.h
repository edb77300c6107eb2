/* SPDX-License-Identifier: MIT */
/*
 * Counters for Prometheus, over HTTP on an address of their own. A thread
 * answers these requests, also while the workers are overloaded.
 */
#ifndef SERVE_METRICS_H
#define SERVE_METRICS_H

#include <stdbool.h>

#include <pthread.h>

#define METRICS_PATH	"/metrics"

struct worker;

struct metrics {
	const struct worker *first;	/* the list of all workers */
	int fd;			/* a listening socket; -1: no metrics */
	int stop;		/* an eventfd that ends the thread */
	pthread_t thread;
};

/*
 * Start to answer requests on the listening socket fd. -1: do nothing. The
 * workers must exist until metrics_stop(). False: it failed, after a message.
 */
bool metrics_start(struct metrics *metrics, int fd,
		   const struct worker *first);

void metrics_stop(struct metrics *metrics);

#endif /* SERVE_METRICS_H */
