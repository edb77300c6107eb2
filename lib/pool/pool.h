/* SPDX-License-Identifier: MIT */
/*
 * Syscall threads in user space (OSDI 2010, section 3.5; ATC 2011, section
 * 3.2.1): they execute entries by plain system calls. A pool serves one loop.
 *
 *
 * Who runs when
 *
 * A thread that executes or looks for entries is active; no more than one per
 * core is. A thread whose call is going to block hands that over first, so the
 * next entry need not wait for it:
 *
 *	idle		-> active	woken: entries were queued
 *	active		-> blocked	its call will wait; another goes active
 *	blocked		-> active	its call ended, there is work
 *	blocked		-> idle		its call ended, there is none
 *	active		-> idle		the queue is empty
 *	idle		-> gone		nothing to do for two seconds
 *	(none)		-> active	nobody is idle, and the limit not reached
 *
 * User space isn't told when a thread blocks. What the table knows decides
 * instead. Calls that may wait for their descriptor are told not to, or asked
 * for by poll(2): see nowait.h. Those that would wait are parked, which is to
 * wait in an epoll set and take no thread. Calls that wait for anything else
 * block one. For calls that only may wait for a device there is a watch: an
 * owner that sees a queue and no progress starts one more thread.
 *
 *
 * Why it never comes to a standstill
 *
 * One thread is always left unblocked, to take what is queued: the entries
 * that would wake the others may be among it. When the limit is reached and
 * only one thread is left, it doesn't block. An entry that would make it, and
 * can't be parked, is deferred until a second thread is unblocked again.
 *
 * What poll(2) says can be wrong a moment later, or true only of a write's
 * beginning, so the last thread may find itself waiting all the same. The
 * watch sees that too, and interrupts calls that were not expected to wait:
 * they go back to the queue, those that transferred a part with the rest. As
 * the owner may sleep when the epoll set's thread queues an entry, that thread
 * is a watchman, too.
 */
#ifndef FLEXSC_POOL_H
#define FLEXSC_POOL_H

#include <stdbool.h>
#include <stdint.h>

struct call_list;
struct flexsc_loop;
struct pool;

/* Where an entry is in the pool; call->pool.where. */
enum pool_where {
	POOL_NOT = 0,	/* not in it */
	POOL_QUEUED,	/* for any thread */
	POOL_RUNNING,	/* call->pool.thread executes it */
	POOL_PARKED,
	POOL_DEFERRED,
};

/*
 * All by the loop's owner. At most max threads, but at least two. -EAGAIN: not
 * one could be made; -EINVAL: options.cores is no list of usable cores.
 */
int flexsc__pool_create(struct pool **pool, struct flexsc_loop *loop,
			uint32_t max);
/* Queue SUBMITTED entries; empties the list. */
void flexsc__pool_submit(struct pool *pool, struct call_list *list);
/* A BUSY entry of the pool is CANCEL now. */
void flexsc__pool_cancel(struct pool *pool, uint32_t index);
/*
 * Are entries queued? Then the owner sleeps no longer than that many
 * nanoseconds, and calls this again: the watch. UINT64_MAX: as it likes.
 */
uint64_t flexsc__pool_watch(struct pool *pool);

/* What a watchman has seen. */
struct watch {
	uint32_t taken;		/* entries taken, at the last look */
	uint64_t since;		/* when that was new; 0: nothing to watch */
};
/* Any thread: this descriptor is about to be closed. */
void flexsc__pool_hold(struct pool *pool, int fd);
/* No entry is left in it. */
void flexsc__pool_destroy(struct pool *pool);
/* In a forked child. */
void flexsc__pool_forked(struct pool *pool);

#endif /* FLEXSC_POOL_H */
