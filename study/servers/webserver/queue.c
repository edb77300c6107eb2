/* SPDX-License-Identifier: MIT */
#include "queue.h"

#include <stddef.h>

bool queue_push(struct queue *queue, struct queued *item)
{
	bool was_empty, wake;

	item->next = NULL;
	pthread_mutex_lock(&queue->lock);
	was_empty = !queue->head;
	if (was_empty)
		queue->head = item;
	else
		queue->tail->next = item;
	queue->tail = item;
	wake = queue->sleepers;
	pthread_mutex_unlock(&queue->lock);
	if (wake)
		pthread_cond_signal(&queue->filled);
	return was_empty;
}

struct queued *queue_pop(struct queue *queue, unsigned int most)
{
	struct queued *first, *last;

	pthread_mutex_lock(&queue->lock);
	while (!queue->head) {
		queue->sleepers++;
		pthread_cond_wait(&queue->filled, &queue->lock);
		queue->sleepers--;
	}
	first = last = queue->head;
	while (--most && last->next)
		last = last->next;
	queue->head = last->next;
	pthread_mutex_unlock(&queue->lock);
	last->next = NULL;
	return first;
}

struct queued *queue_take(struct queue *queue)
{
	struct queued *first;

	pthread_mutex_lock(&queue->lock);
	first = queue->head;
	queue->head = NULL;
	pthread_mutex_unlock(&queue->lock);
	return first;
}
