/* SPDX-License-Identifier: MIT */
#include "guard.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/futex.h"
#include "fds.h"
#include "kinds.h"
#include "private_fd.h"

#define BUCKETS		64U
#define AT_ONCE		16U	/* guards allocated together; never freed */

/* The guards of all descriptors whose numbers have the same hash. */
static struct bucket {
	struct lock lock;
	_Atomic uint32_t closing;	/* closes in progress: G3; accessed without
					 * the lock */
	struct guard *first, *free;
} buckets[BUCKETS] __attribute__((aligned(64)));

static struct {
	struct lock lock;
	struct guard_watcher *first;
} watchers;

static _Atomic uint32_t all_closing;

static struct bucket *bucket_of(uint32_t fd)
{
	return &buckets[fd % BUCKETS];
}

static struct bucket *bucket_lock(const struct guard *guard)
{
	lock(&buckets[guard->bucket].lock);
	return &buckets[guard->bucket];
}

/* Returns the guard that new calls on the descriptor share. */
static struct guard *find(const struct bucket *bucket, uint32_t fd)
{
	struct guard *guard = bucket->first;

	while (guard && (guard->copied || !guard_is_named(guard, (int)fd)))
		guard = guard->next;
	return guard;
}

static void refill(struct bucket *bucket)
{
	struct guard *guards = calloc(AT_ONCE, sizeof(*guards));

	for (unsigned int i = 0; guards && i < AT_ONCE; i++) {
		guards[i].bucket = (uint32_t)(bucket - buckets);
		guards[i].next = bucket->free;
		bucket->free = &guards[i];
	}
}

/* Create a guard with one user. Doesn't add the guard to the bucket. */
static struct guard *make(struct bucket *bucket, uint32_t named, int fd)
{
	struct guard *guard;

	if (!bucket->free)
		refill(bucket);
	guard = bucket->free;
	if (!guard)
		return NULL;
	bucket->free = guard->next;
	atomic_store_explicit(&guard->named, named, memory_order_relaxed);
	atomic_store_explicit(&guard->fd, fd, memory_order_relaxed);
	guard->users = 1;
	guard->copied = false;
	return guard;
}

static void add(struct bucket *bucket, struct guard *guard)
{
	guard->next = bucket->first;
	bucket->first = guard;
}

static void take_out(struct bucket *bucket, const struct guard *guard)
{
	struct guard **link = &bucket->first;

	while (*link != guard)
		link = &(*link)->next;
	*link = guard->next;
}

/*
 * Let the guard's calls use this duplicate from now on. A negative value is an error:
 * the calls then fail with EBADF.
 */
static void set_copy(struct guard *guard, int copy)
{
	guard->copied = copy >= 0;
	atomic_store_explicit(&guard->fd, copy < 0 ? -1 : copy,
			      memory_order_relaxed);
}

static struct guard *make_or_share(struct bucket *bucket, uint32_t fd)
{
	struct guard *guard = find(bucket, fd);

	if (guard) {
		guard->users++;
		return guard;
	}
	guard = make(bucket, fd, (int)fd);
	if (guard)
		add(bucket, guard);
	return guard;
}

/*
 * Create a guard with a duplicate of its own, because another thread may be closing fd.
 * The duplicate refers either to the file being closed, or to one opened under the same
 * number afterwards.
 */
static struct guard *make_copied(struct bucket *bucket, uint32_t fd)
{
	const int copy = flexsc__private_fd_copy((int)fd);
	struct guard *guard;

	/* The duplication failed: no descriptor is free, or fd is closed already. */
	if (copy < 0)
		return make_or_share(bucket, fd);
	guard = make(bucket, fd, copy);
	if (!guard) {
		flexsc__private_fd_close(copy);
		return NULL;
	}
	guard->copied = true;
	add(bucket, guard);
	return guard;
}

struct guard *flexsc__guard_begin(uint32_t fd)
{
	struct bucket *bucket = bucket_of(fd);
	struct guard *guard;

	if (fd >= FDS_MAX)
		return NULL;
	lock(&bucket->lock);
	/* G4 */
	flexsc__fds_mark(fd);
	if ((atomic_load(&bucket->closing) || atomic_load(&all_closing)) &&
	    !(flexsc__kind(fd) & FD_PLACED))
		guard = make_copied(bucket, fd);
	else
		guard = make_or_share(bucket, fd);
	unlock(&bucket->lock);
	return guard;
}

int flexsc__guard_drop(struct guard *guard)
{
	struct bucket *bucket = bucket_lock(guard);
	int copy = -1;

	if (!--guard->users) {
		if (guard->copied)
			copy = guard_fd(guard);
		if (atomic_load_explicit(&guard->named, memory_order_relaxed) !=
		    NAMELESS)
			take_out(bucket, guard);
		guard->next = bucket->free;
		bucket->free = guard;
	}
	unlock(&bucket->lock);
	return copy;
}

void flexsc__guard_end(struct guard *guard)
{
	int copy = flexsc__guard_drop(guard);

	if (copy >= 0)
		flexsc__private_fd_close(copy);
}

int flexsc__guard_copy(struct guard **guard)
{
	struct guard *was = *guard, *alone = was;
	struct bucket *bucket = bucket_lock(was);
	const int fd = guard_fd(was);
	int copy = fd;

	if (fd < 0)
		copy = -EBADF;
	else if (!was->copied)
		copy = flexsc__private_fd_copy(fd);
	if (copy != fd && copy >= 0) {
		if (was->users > 1) {
			alone = make(bucket, was->named, copy);
			if (alone) {
				was->users--;
				add(bucket, alone);
			} else {
				alone = was;
			}
		}
		set_copy(alone, copy);
		*guard = alone;
	}
	unlock(&bucket->lock);
	return copy < 0 ? copy : 0;
}

void flexsc__guard_join(struct guard *guard)
{
	struct bucket *bucket = bucket_lock(guard);

	guard->users++;
	if (!guard->copied && guard_fd(guard) >= 0)
		set_copy(guard, flexsc__private_fd_copy(guard_fd(guard)));
	unlock(&bucket->lock);
}

/* Subscribers to closes. */

void flexsc__guard_watch(struct guard_watcher *watcher)
{
	lock(&watchers.lock);
	watcher->next = watchers.first;
	watcher->link = &watchers.first;
	if (watcher->next)
		watcher->next->link = &watcher->next;
	watchers.first = watcher;
	unlock(&watchers.lock);
}

void flexsc__guard_unwatch(struct guard_watcher *watcher)
{
	lock(&watchers.lock);
	*watcher->link = watcher->next;
	if (watcher->next)
		watcher->next->link = watcher->link;
	unlock(&watchers.lock);
}

/* Closing. */

static void set_nameless(struct bucket *bucket, struct guard *guard)
{
	take_out(bucket, guard);
	atomic_store_explicit(&guard->named, NAMELESS, memory_order_relaxed);
}

/* With the lock held: if guards of this number have a duplicate, make them nameless. */
static void unname_copied(struct bucket *bucket, uint32_t fd)
{
	struct guard *next;

	for (struct guard *guard = bucket->first; guard; guard = next) {
		next = guard->next;
		if (guard->copied && guard_is_named(guard, (int)fd))
			set_nameless(bucket, guard);
	}
}

/*
 * With the lock held: make all guards of this number nameless. Returns the guard that
 * calls shared, which now has a duplicate, or a new guard. The caller becomes one of
 * its users.
 */
static struct guard *unname(struct bucket *bucket, uint32_t fd)
{
	struct guard *shared;

	unname_copied(bucket, fd);
	shared = find(bucket, fd);
	if (!shared)
		return make(bucket, NAMELESS, (int)fd);
	set_nameless(bucket, shared);
	set_copy(shared, flexsc__private_fd_copy((int)fd));
	shared->users++;
	return shared;
}

static _Atomic uint32_t *closings_of(uint32_t fd)
{
	return fd == NAMELESS ? &all_closing : &bucket_of(fd)->closing;
}

void flexsc__guard_count_closing(uint32_t fd)
{
	/* G3 */
	atomic_fetch_add(closings_of(fd), 1);
}

void flexsc__guard_count_closed(uint32_t fd)
{
	atomic_fetch_sub(closings_of(fd), 1);
}

/*
 * FD_MARKED is cleared last. So another thread that closes the same descriptor takes
 * the locks here, and doesn't close before the duplicate exists.
 */
void flexsc__guard_closing(uint32_t fd)
{
	struct bucket *bucket = bucket_of(fd);
	struct guard *guard;

	lock(&watchers.lock);
	lock(&bucket->lock);
	guard = unname(bucket, fd);
	unlock(&bucket->lock);
	for (struct guard_watcher *w = watchers.first; w; w = w->next)
		w->closing(w, fd, guard);
	lock(&bucket->lock);
	/*
	 * Calls may have begun guards of this number while the bucket was unlocked. A
	 * duplicate that they have refers to the file that is about to be closed.
	 */
	unname_copied(bucket, fd);
	if (!find(bucket, fd))
		flexsc__fds_unmark(fd);
	unlock(&bucket->lock);
	unlock(&watchers.lock);
	if (guard)
		flexsc__guard_end(guard);
}

static void report(uint32_t fd, bool shut)
{
	for (struct guard_watcher *w = watchers.first; w; w = w->next)
		w->closed(w, fd, shut);
}

void flexsc__guard_closed(uint32_t fd)
{
	lock(&watchers.lock);
	report(fd, false);
	unlock(&watchers.lock);
}

/*
 * Returns the lowest duplicate above "above" that guards of this number have, or -1.
 */
static int next_copy(uint32_t fd, int above)
{
	struct bucket *bucket = bucket_of(fd);
	int next = -1;

	lock(&bucket->lock);
	for (struct guard *guard = bucket->first; guard; guard = guard->next) {
		const int copy = guard_fd(guard);

		if (guard->copied && guard_is_named(guard, (int)fd) &&
		    copy > above && (next < 0 || copy < next))
			next = copy;
	}
	unlock(&bucket->lock);
	return next;
}

/*
 * Calls may be waiting with a duplicate. A guard that begins meanwhile may be missed,
 * but its calls see the shutdown.
 */
void flexsc__guard_shut(uint32_t fd)
{
	int copy = -1;

	lock(&watchers.lock);
	report(fd, true);
	while ((copy = next_copy(fd, copy)) >= 0)
		report((uint32_t)copy, true);
	unlock(&watchers.lock);
}

void flexsc__guards_forked(void)
{
	memset(buckets, 0, sizeof(buckets));
	memset(&watchers, 0, sizeof(watchers));
	atomic_store(&all_closing, 0);
}
