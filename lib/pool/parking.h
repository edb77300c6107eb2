/* SPDX-License-Identifier: MIT */
/*
 * Entries that wait for their descriptor in an epoll set rather than on a
 * thread each (ATC 2011, section 7). Part of a pool; functions are called with
 * the pool's lock unless they say otherwise.
 *
 * The set has one thread, which runs when a descriptor is ready and queues an
 * entry in the pool again. A set knows a descriptor once, so the entries of
 * one descriptor are two lists, those that want to read and those that want to
 * write, oldest first. A registration fires once.
 *
 *
 * One at a time
 *
 * When a descriptor is ready, the first entry that wanted this is woken, and
 * no other of that list: what it was ready for may be gone when the first one
 * is done. Then it is the next one's turn: the registration is renewed when
 * the woken entry has completed, or is parked again. It fires at once if there
 * is still something to be had.
 *
 *
 * Closing
 *
 * A call in the kernel holds its file, whoever closes the descriptor meanwhile.
 * So who sees a descriptor being closed, as the runtime of flexsc run does, says
 * so before: those that are parked on it move to a copy of it, which is closed
 * when the last of them has completed. One that is just being executed doesn't
 * move: it was ready, or has only been posted.
 */
#ifndef FLEXSC_PARKING_H
#define FLEXSC_PARKING_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct pool;
struct watch;

/* The entries of a descriptor: those that read, those that write. */
struct parked {
	uint32_t head[2], tail[2];
	uint32_t moved;		/* to here, and not complete; 0: no copy */
};

struct parking {
	struct pool *pool;
	int epoll;
	int stop;		/* an eventfd in the set */
	bool running;
	pthread_t thread;
	struct parked *parked;	/* by descriptor */
	size_t size;		/* descriptors that "parked" has room for */
};

void flexsc__parking_init(struct parking *parking, struct pool *pool);
void flexsc__parking_fini(struct parking *parking);
void flexsc__parking_forked(struct parking *parking);

/*
 * Park an entry that waits for its descriptor to be ready. False: not possible,
 * for lack of some resource.
 */
bool flexsc__park(struct parking *parking, uint32_t index);
/* Take one out, which is cancelled. */
void flexsc__unpark(struct parking *parking, uint32_t index);
/* This descriptor is about to be closed. */
void flexsc__park_hold(struct parking *parking, int fd);
/* An entry that was moved to this copy has completed. */
void flexsc__park_release(struct parking *parking, int copy);
/* An entry that was woken has completed; fd was its descriptor. */
void flexsc__park_next(struct parking *parking, int fd);

/* pool.c */
struct flexsc_loop *flexsc__pool_loop(struct pool *pool);
void flexsc__pool_lock(struct pool *pool);
void flexsc__pool_unlock(struct pool *pool);
void flexsc__pool_wake(struct pool *pool, uint32_t index);
uint64_t flexsc__pool_look(struct pool *pool, struct watch *watch);
void flexsc__pool_finish(struct pool *pool, uint32_t index, int64_t ret);
int flexsc__pool_spawn(struct pool *pool, pthread_t *thread,
		       void *(*run)(void *), void *arg);

#endif /* FLEXSC_PARKING_H */
