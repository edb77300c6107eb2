/* SPDX-License-Identifier: MIT */
/*
 * Signals that are queued: a queue for each group, first in, first out. All have
 * their entries from one store of RTSIG_QUEUE_MAX.
 *
 * Any thread and any signal handler appends. It pushes an entry to a list, newest
 * first, as sources push slots; the owner takes the whole list and turns it round.
 */
#ifndef STUDY_RTSIGNAL_QUEUE_H
#define STUDY_RTSIGNAL_QUEUE_H

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* What a handler is told of a signal. */
struct queued {
	int32_t code;
	pid_t pid;
	uid_t uid;
	uint32_t link;		/* the next entry + 1; 0: none */
	union sigval value;
};

/* Any thread, any signal handler. */

/* Get a free entry, and give it back. 0: none is free. */
uint32_t rtsig__queue_get(void);
void rtsig__queue_put(uint32_t entry);
/* Append it to a group's queue. */
void rtsig__queue_push(uint32_t group, uint32_t entry,
			const struct queued *queued);
/* Groups whose queues aren't empty. */
uint32_t rtsig__queue_pending(void);

/* Owner only, in a critical section. */

/* Likewise; all that is queued can be taken from here on. */
uint32_t rtsig__queue_ready(void);
/* Take the oldest of a group that is ready. */
struct queued rtsig__queue_take(uint32_t group);
/* Forget all. In a forked child, and before the first append. */
void rtsig__queue_reset(void);

#endif /* STUDY_RTSIGNAL_QUEUE_H */
