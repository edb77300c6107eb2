/* SPDX-License-Identifier: MIT */
/*
 * Entries that wait for their descriptor in an epoll set instead of each blocking a
 * thread (ATC 2011, section 7). Part of a pool. The caller holds the pool's lock,
 * unless stated otherwise.
 *
 * The set has one thread. When a descriptor is ready, this thread queues an entry in
 * the pool again. An epoll set has one registration per descriptor, which fires once.
 * So a descriptor has two lists of entries, for reading and for writing, oldest first.
 *
 *
 * One at a time
 *
 * When a descriptor is ready, only the first entry of its list is woken, because the
 * descriptor may no longer be ready when that entry is done. When the woken entry has
 * completed, or is parked again, the registration is renewed. It fires at once if the
 * descriptor is still ready, and wakes the next entry.
 *
 *
 * Ready for something else
 *
 * A descriptor can be ready while a call on it has to wait: its error queue isn't
 * empty, its data has been peeked at, or it has room for another peer's datagram. Its
 * registration would fire at once each time it is renewed. So if a woken entry would
 * wait while poll(2) reports the descriptor ready, the entry blocks a thread, as a
 * plain call would. Then the next entry of the list is woken.
 *
 *
 * Closing
 *
 * The kernel removes the registration of a descriptor that is closed. Its entries are
 * queued before that, and are parked again with a duplicate: pool.h.
 */
#ifndef FLEXSC_PARKING_H
#define FLEXSC_PARKING_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "own_thread.h"

struct pool;

/* The entries of a descriptor: a list for reading and a list for writing. */
struct parked {
	uint32_t head[2], tail[2];
};

struct parking {
	struct pool *pool;
	int epoll;
	int stop;		/* an eventfd in the set */
	bool running;
	bool failed;		/* waiting for the set is impossible: block threads
				 * instead */
	bool late;		/* parking_start() got OWN_LATER for the set's thread */
	pthread_t thread;
	struct own_birth birth;
	struct parked *parked;	/* indexed by descriptor */
	size_t size;		/* number of elements in "parked" */
};

void flexsc__parking_init(struct parking *parking, struct pool *pool);
void flexsc__parking_fini(struct parking *parking);
void flexsc__parking_forked(struct parking *parking);

/*
 * Owner only, without the pool's lock: end the set's thread. From now on each entry
 * that waits blocks a thread.
 */
void flexsc__parking_quit(struct parking *parking);

/*
 * Park an entry until its descriptor is ready. False: memory or descriptors are short,
 * or the set has failed.
 */
bool flexsc__park(struct parking *parking, uint32_t index);
/* Remove an entry from its list, because it is being cancelled. */
void flexsc__unpark(struct parking *parking, uint32_t index);
/*
 * Called when a descriptor is about to be closed: queue its entries, so that threads
 * attempt their calls again.
 */
void flexsc__park_closing(struct parking *parking, int fd);
/*
 * Called when an entry is complete, before its guard may close a duplicate: remove the
 * duplicate from the set.
 */
void flexsc__park_forget(struct parking *parking, uint32_t index);

/*
 * Queue all entries of a descriptor, because the set may not report the event they wait
 * for. If the set has lost the descriptor, its entries end with -EBADF.
 */
void flexsc__park_again(struct parking *parking, int fd);
/*
 * Called when a woken entry has completed: wake the next one if the descriptor is still
 * ready. fd is the entry's descriptor; a duplicate, if the program has closed the
 * original.
 */
void flexsc__park_next(struct parking *parking, int fd);

#endif /* FLEXSC_PARKING_H */
