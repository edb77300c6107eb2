/* SPDX-License-Identifier: MIT */
#include "pollers.h"

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include "lib/base/futex.h"

static struct {
	struct lock lock;
	struct polled_ring *polled[CORES_MAX];	/* by core */
	unsigned int rings[CORES_MAX];		/* their number */
} table;

void flexsc__pollers_lock(void)
{
	lock(&table.lock);
}

void flexsc__pollers_unlock(void)
{
	unlock(&table.lock);
}

/* The core with the fewest rings, except "avoided"; -ENODEV: there is none. */
static int choose_except(const struct cores *cores, int avoided)
{
	int best = -ENODEV;

	for (unsigned int i = 0; i < cores->count; i++) {
		const int core = cores->core[i];

		if (core != avoided &&
		    (best < 0 || table.rings[core] < table.rings[best]))
			best = core;
	}
	return best;
}

int flexsc__pollers_choose(const struct cores *cores, const cpu_set_t *mine,
			   int here)
{
	const int core = choose_except(cores, here);

	lock_assert_held(&table.lock);
	if (core >= 0 || CPU_COUNT(mine) == 1)
		return core;
	return choose_except(cores, -1);
}

/* Has joining failed because of the ring whose descriptor was given? */
static bool is_stale(int err)
{
	switch (err) {
	case -ENXIO:	/* the program has closed the descriptor, or the poller ends */
	case -EINVAL:	/* another file has its number */
		return true;
	default:
		return false;
	}
}

int flexsc__pollers_set_up(unsigned int core, unsigned int requests,
			   struct io_uring *ring,
			   struct io_uring_params *params)
{
	struct io_uring_params wanted = *params;
	int err;

	lock_assert_held(&table.lock);
	/*
	 * Name the core also for a ring that joins: if its number belongs to a ring of
	 * another process, the kernel starts a poller instead of returning an error.
	 */
	wanted.flags |= IORING_SETUP_SQ_AFF;
	wanted.sq_thread_cpu = core;
	for (const struct polled_ring *s = table.polled[core]; s; s = s->next) {
		*params = wanted;
		params->flags |= IORING_SETUP_ATTACH_WQ;
		params->wq_fd = (uint32_t)s->fd;
		err = io_uring_queue_init_params(requests, ring, params);
		if (!is_stale(err))
			return err;
	}
	*params = wanted;
	return io_uring_queue_init_params(requests, ring, params);
}

void flexsc__pollers_enter(struct polled_ring *ring, unsigned int core, int fd)
{
	lock_assert_held(&table.lock);
	*ring = (struct polled_ring){
		.next = table.polled[core],
		.link = &table.polled[core],
		.fd = fd,
		.core = core,
	};
	if (ring->next)
		ring->next->link = &ring->next;
	table.polled[core] = ring;
	table.rings[core]++;
}

void flexsc__pollers_leave(struct polled_ring *ring)
{
	lock(&table.lock);
	*ring->link = ring->next;
	if (ring->next)
		ring->next->link = ring->link;
	table.rings[ring->core]--;
	unlock(&table.lock);
}

void flexsc__pollers_forked(void)
{
	memset(&table, 0, sizeof(table));
}
