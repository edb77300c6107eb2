/* SPDX-License-Identifier: MIT */
/*
 * Pollers: kernel threads that take the requests of rings (IORING_SETUP_SQPOLL), on the
 * cores of the option kernel_cores (OSDI 2010, section 3.6). Each core has one poller,
 * which all loops of the process share that use this core (IORING_SETUP_ATTACH_WQ). The
 * kernel keeps a poller as long as one of its rings exists. A new ring joins a poller
 * through the descriptor of any of these rings, so the process keeps a table of them.
 *
 * A new ring takes the core with the fewest rings, and among these the first one in the
 * user's order. It takes the core where the owner runs only if no other one is listed,
 * and never the only core of its owner: owner and poller would compete for it.
 *
 * A forked child forgets the table: it can't join its parent's pollers.
 */
#ifndef FLEXSC_ENGINE_POLLERS_H
#define FLEXSC_ENGINE_POLLERS_H

#include <liburing.h>
#include <sched.h>

#include "lib/base/cores.h"

/* A ring's place in the table; the table's lock guards it. */
struct polled_ring {
	struct polled_ring *next, **link;
	int fd;			/* the ring's descriptor */
	unsigned int core;
};

/*
 * Take and release the table's lock. Hold it from the choice of a core until the
 * ring is in the table. Otherwise two loops could start two pollers for the same core.
 */
void flexsc__pollers_lock(void);
void flexsc__pollers_unlock(void);

/*
 * With the lock held: returns the core for a new ring whose owner may use the cores
 * "mine", and runs on the core "here". -ENODEV: no core is left.
 */
int flexsc__pollers_choose(const struct cores *cores, const cpu_set_t *mine,
			   int here);
/*
 * With the lock held: create a ring as io_uring_queue_init_params(), joined to the
 * core's poller. The core's first ring creates the poller.
 */
int flexsc__pollers_set_up(unsigned int core, unsigned int requests,
			   struct io_uring *ring,
			   struct io_uring_params *params);
/* With the lock held: add the new ring to the table. */
void flexsc__pollers_enter(struct polled_ring *ring, unsigned int core, int fd);

/* Remove a ring from the table, before its descriptor is closed. */
void flexsc__pollers_leave(struct polled_ring *ring);

void flexsc__pollers_forked(void);

#endif /* FLEXSC_ENGINE_POLLERS_H */
