/* SPDX-License-Identifier: MIT */
/*
 * A queue of clients between threads. Clients are linked by their "queued"
 * fields, so pushing allocates no memory and never waits for room; a client is
 * in at most one queue. Any thread may call the functions.
 */
#ifndef WEBSERVER_QUEUE_H
#define WEBSERVER_QUEUE_H

#include <pthread.h>
#include <stdbool.h>

struct queued {
	struct queued *next;
};

struct queue {
	pthread_mutex_t lock;
	pthread_cond_t filled;
	struct queued *head, *tail;
	unsigned int sleepers;	/* threads waiting in queue_pop() */
};

#define QUEUE_INIT	\
	{ .lock = PTHREAD_MUTEX_INITIALIZER, .filled = PTHREAD_COND_INITIALIZER }

/* Append a client, and wake a waiting thread. True: the queue was empty. */
bool queue_push(struct queue *queue, struct queued *item);

/*
 * Take at least one and at most "most" clients, as a list that begins with the
 * oldest. Waits while the queue is empty.
 */
struct queued *queue_pop(struct queue *queue, unsigned int most);

/*
 * Take all clients, as a list that begins with the oldest. NULL: the queue is
 * empty.
 */
struct queued *queue_take(struct queue *queue);

#endif /* WEBSERVER_QUEUE_H */
