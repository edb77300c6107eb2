/* SPDX-License-Identifier: MIT */
/*
 * Entries that wait for their descriptor in an epoll set rather than on a
 * thread each (ATC 2011, section 7). Part of a pool; functions are called with
 * the pool's lock unless they say otherwise.
 *
 * The set has one thread, which runs when a descriptor is ready and queues an
 * entry in the pool again. A set has one registration for a descriptor. So the entries
 * of one descriptor are in two lists, for reading and for writing, oldest first. A
 * registration fires once.
 *
 *
 * One at a time
 *
 * When a descriptor is ready, only the first entry of its list is woken, because the
 * descriptor may not be ready any more when that entry is done. The registration is
 * renewed when the woken entry has completed, or is parked again. It fires at once if
 * the descriptor is still ready, and the next entry follows.
 *
 *
 * Ready for something else
 *
 * A descriptor can be ready while a call on it has to wait. Its error queue isn't
 * empty, its data has been peeked at, or it has room for another peer's datagram. Its
 * registration would fire at once each time it is renewed. So an entry that was woken,
 * and would wait while poll(2) reports the descriptor as ready, waits on a thread
 * instead, as a plain call would. The next entry of the list is woken then.
 *
 *
 * Closing
 *
 * The kernel removes the registration of a descriptor that is closed. Its entries are
 * queued before, and park again with a copy: pool.h.
 */
#ifndef FLEXSC_PARKING_H
#define FLEXSC_PARKING_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "own_thread.h"

struct pool;

/* The entries of a descriptor, in a list for reading and a list for writing. */
struct parked {
	uint32_t head[2], tail[2];
};

struct parking {
	struct pool *pool;
	int epoll;
	int stop;		/* an eventfd in the set */
	bool running;
	bool failed;		/* the set can't be waited for */
	bool late;		/* its thread was made later */
	pthread_t thread;
	struct own_birth birth;
	struct parked *parked;	/* by descriptor */
	size_t size;		/* descriptors that "parked" has room for */
};

void flexsc__parking_init(struct parking *parking, struct pool *pool);
void flexsc__parking_fini(struct parking *parking);
void flexsc__parking_forked(struct parking *parking);

/*
 * Owner only, without the pool's lock: the set's thread ends. Entries block a thread
 * each from now on.
 */
void flexsc__parking_quit(struct parking *parking);

/*
 * Park an entry that waits for its descriptor to be ready. False: not possible,
 * because a resource is missing.
 */
bool flexsc__park(struct parking *parking, uint32_t index);
/* Take an entry out, which is cancelled. */
void flexsc__unpark(struct parking *parking, uint32_t index);
/* A descriptor is about to be closed: threads make the calls of its entries again. */
void flexsc__park_closing(struct parking *parking, int fd);
/* An entry is complete, and its guard's copy may be closed: the set drops that. */
void flexsc__park_forget(struct parking *parking, uint32_t index);

/*
 * Threads make the calls of all entries of a descriptor again: the set may not report
 * what they wait for. If the set has lost the descriptor, its entries end with -EBADF.
 */
void flexsc__park_again(struct parking *parking, int fd);
/*
 * An entry that was woken has completed. fd is its descriptor: a copy, if the program
 * has closed the one that it was parked on.
 */
void flexsc__park_next(struct parking *parking, int fd);

#endif /* FLEXSC_PARKING_H */
