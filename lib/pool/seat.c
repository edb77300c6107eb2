/* SPDX-License-Identifier: MIT */
/*
 * The cores of a pool's active threads. With the option kernel_cores, an active thread
 * is bound to the first listed core that no other active thread has: its seat. So the
 * next core is used only if the backlog makes one more thread active. A thread that
 * isn't active may run on any listed core, because several such threads may compute.
 */
#include "pool.h"

#include "lib/base/ask.h"
#include "lib/base/syscall.h"
#include "lib/loop/loop.h"

/* Must threads move between cores? With a single core, they begin on it. */
static bool seats_matter(const struct pool *pool)
{
	return pool->pinned && pool->loop->listed.count > 1;
}

static uint32_t seat_find(const struct pool *pool)
{
	uint32_t seat = 0;

	while (seat < pool->loop->listed.count && CPU_ISSET(seat, &pool->seated))
		seat++;
	return seat < pool->loop->listed.count ? seat : NONE;
}

void flexsc__pool_activate(struct pool *pool, struct syscall_thread *thread)
{
	lock_assert_held(&pool->lock);
	thread->active = true;
	pool->active++;
	thread->seat = seats_matter(pool) ? seat_find(pool) : NONE;
	if (thread->seat != NONE)
		CPU_SET(thread->seat, &pool->seated);
}

void flexsc__pool_deactivate(struct pool *pool, struct syscall_thread *thread)
{
	lock_assert_held(&pool->lock);
	if (!thread->active)
		return;
	thread->active = false;
	pool->active--;
	if (thread->seat != NONE)
		CPU_CLR(thread->seat, &pool->seated);
	thread->seat = NONE;
}

/* A failure leaves the thread where it is: the core may have gone offline. */
static void seat_bind(pid_t tid, const cpu_set_t *cores)
{
	ask(SYS_sched_setaffinity, (uint64_t)tid, sizeof(*cores), PTR(cores), 0, 0, 0);
}

void flexsc__pool_sit_down(struct pool *pool, struct syscall_thread *thread)
{
	cpu_set_t core;

	lock_assert_held(&pool->lock);
	if (thread->seat == NONE || thread->seat == thread->bound)
		return;
	thread->bound = thread->seat;
	CPU_ZERO(&core);
	CPU_SET(pool->loop->listed.core[thread->seat], &core);
	/* The thread may sleep here, until it runs on the core. */
	unlock(&pool->lock);
	seat_bind(thread->tid, &core);
	lock(&pool->lock);
}

void flexsc__pool_stand_up(struct pool *pool, struct syscall_thread *thread)
{
	if (thread->bound == NONE)
		return;
	thread->bound = NONE;
	seat_bind(thread->tid, &pool->cores);
}
