/* SPDX-License-Identifier: MIT */
#include "uthreads.h"

#include <stddef.h>
#include <string.h>

#include "lib/base/futex.h"

/*
 * Buckets of the table by thread id. Ids of threads that are created in a row are
 * consecutive, so they spread evenly.
 */
#define TIDS		1024U

__thread struct uthread flexsc__self
	__attribute__((tls_model("initial-exec")));

static struct lock all_lock;
static struct uthread *all, *by_tid[TIDS];

static struct uthread **with_tid(int32_t tid)
{
	return &by_tid[(uint32_t)tid % TIDS];
}

void flexsc__uthreads_add(struct uthread *u)
{
	struct uthread **same = with_tid(u->host.k.tid);

	lock(&all_lock);
	u->tid_next = *same;
	*same = u;
	u->all_prev = NULL;
	u->all_next = all;
	if (all)
		all->all_prev = u;
	all = u;
	u->listed = true;
	unlock(&all_lock);
}

void flexsc__uthreads_remove(struct uthread *u)
{
	struct uthread **same = with_tid(u->host.k.tid);

	lock(&all_lock);
	while (*same != u)
		same = &(*same)->tid_next;
	*same = u->tid_next;
	if (u->all_prev)
		u->all_prev->all_next = u->all_next;
	else
		all = u->all_next;
	if (u->all_next)
		u->all_next->all_prev = u->all_prev;
	u->listed = false;
	unlock(&all_lock);
}

void flexsc__uthreads_lock(void)
{
	lock(&all_lock);
}

void flexsc__uthreads_unlock(void)
{
	unlock(&all_lock);
}

bool flexsc__uthreads_trylock(void)
{
	return lock_at_once(&all_lock);
}

struct uthread *flexsc__uthreads_first(void)
{
	return all;
}

struct uthread *flexsc__uthread_of(pthread_t thread)
{
	/* flexsc__self is at the same offset in every thread's TLS. */
	ptrdiff_t offset = (char *)&flexsc__self - (char *)pthread_self();
	struct uthread *u = (struct uthread *)((char *)thread + offset);

	lock_assert_held(&all_lock);
	/* A user thread that is no longer listed may end at any moment. */
	return u->listed ? u : NULL;
}

struct uthread *flexsc__uthread_with(int32_t tid)
{
	struct uthread *u = *with_tid(tid);

	lock_assert_held(&all_lock);
	while (u && u->host.k.tid != tid)
		u = u->tid_next;
	return u;
}

void flexsc__uthreads_forked(void)
{
	all = NULL;
	memset(by_tid, 0, sizeof(by_tid));
	all_lock = (struct lock){ 0 };
}
