/* SPDX-License-Identifier: MIT */
#include "carriers.h"

#include <errno.h>
#include <pthread.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/loop/event.h"
#include "lib/loop/loop.h"
#include "lib/pool/own_thread.h"
#include "lib/run/run.h"
#include "runtime/counters/counters.h"
#include "adopt.h"
#include "carrier.h"
#include "carrier_signal.h"
#include "futex_timer.h"
#include "identity.h"
#include "internal_thread.h"
#include "monitor.h"
#include "proc.h"
#include "retire.h"
#include "runqueue.h"
#include "state.h"

static _Atomic uint32_t over;	/* carriers that have reached end_together() */

/* Ending. */

static void end_requested(struct flexsc_cb *cb)
{
	struct carrier *c = (struct carrier *)((char *)cb -
					       offsetof(struct carrier, end));

	c->ends = true;
}

/*
 * Wait until all carriers have come here, before any of them destroys its loop: a
 * carrier that returns from a stuck call notifies the loop of its heir.
 */
static void end_together(void)
{
	uint32_t n = atomic_fetch_add(&over, 1) + 1;

	while (n < flexsc__runtime.count) {
		futex_wait(&over, n, UINT64_MAX);
		n = atomic_load(&over);
	}
	/* futex_wake() wakes one thread, and each woken thread wakes the next. */
	futex_wake(&over);
}

static void carrier_fini(struct carrier *c)
{
	struct flexsc_stats stats;

	if (!flexsc_loop_stats(c->loop, &stats, sizeof(stats)))
		flexsc__runtime.ended_calls += stats.mode_switches;
	flexsc_loop_destroy(c->loop);
	flexsc__futex_timers_fini(c);
	flexsc__proc_close(c);
	c->k.counters->tid = 0;
}

/* Starting. */

/* Carriers that start together. */
struct starts {
	struct flexsc_options options;
	unsigned int spares;	/* carriers with this number or a higher one are spares */
	char *why;
	size_t size;
	/* held by a thread while it becomes a carrier and creates its loop */
	struct lock turn;
	int err;		/* the first error; no carrier starts after it */
	/* number of threads that have neither started nor failed */
	_Atomic uint32_t left;
};

/* The thread of one carrier. */
struct start {
	struct starts *all;
	pthread_t thread;
	bool failed;
};

static void begin_thread(struct carrier *c)
{
	c->thread = pthread_self();
	c->k = (struct kthread){
		.self = &c->k,
		.tp = context_tp(),
		.carrier = c,
		.counters = counters_of_carrier(c->number),
		.tid = (int32_t)raw_syscall(SYS_gettid, 0, 0, 0, 0, 0, 0),
	};
	atomic_store(&c->blocked, runtime_raised());
	context_set_self(&c->k);
	flexsc__signal_stack(c);
	flexsc__signal_unblock(c, SIGNAL_FAULTS);
}

static void begin_loop(struct carrier *c)
{
	flexsc__proc_open(c);
	c->kept_timer = flexsc__signal_timer(c);
	c->k.counters->tid = c->k.tid;
	/*
	 * If no syscall thread can be created, the user thread makes the call on its
	 * host: post() in calls/perform.c.
	 */
	c->loop->no_thread = -ERESTART;
	/*
	 * Reference the loop. Otherwise, if io_uring failed and the loop lost all its
	 * calls, the loop would return an error instead of sleeping: is_all_lost() in
	 * uring.c.
	 */
	flexsc_loop_ref(c->loop);
}

/*
 * Create the carrier's loop. If FLEXSC_ENGINE names an engine that doesn't work here, all
 * carriers use syscall threads, and the loop of carrier 0 has the reason.
 */
static int create_loop(struct carrier *c, struct starts *all)
{
	const char *name = getenv("FLEXSC_ENGINE");
	int err = flexsc__loop_create(&c->loop, &all->options, all->why, all->size);
	char why[sizeof(c->loop->why)];

	/* Carriers after the first have the engine of the first. */
	if (!err || all->options.engine || !name || !*name)
		return err;
	snprintf(why, sizeof(why), "%s: %s", name, all->why);
	all->options.engine = "threads";
	err = flexsc__loop_create(&c->loop, &all->options, all->why, all->size);
	if (!err)
		memcpy(c->loop->why, why, sizeof(why));
	return err;
}

/*
 * The calling thread becomes the next carrier. "count" grows only after success, so a
 * failure leaves no gap. NULL: failed.
 */
static struct carrier *take_place(struct starts *all)
{
	struct carrier *c = &flexsc__runtime.carriers[flexsc__runtime.count];

	if (all->err)
		return NULL;
	begin_thread(c);
	atomic_store(&c->spare, c->number >= all->spares);
	all->err = create_loop(c, all);
	if (all->err) {
		flexsc__signal_fini(c);
		return NULL;
	}
	begin_loop(c);
	/* All carriers use the engine of the first one. */
	all->options.engine = flexsc_loop_engine(c->loop);
	flexsc__identity_join(c);
	return c;
}

static void *carrier_main(void *arg)
{
	struct start *start = arg;
	struct starts *all = start->all;
	struct carrier *c;

	lock(&all->turn);
	c = take_place(all);
	unlock(&all->turn);
	start->failed = !c;
	/*
	 * Report to start_together() that this thread has started or failed. After the
	 * last report, start_together() may return, which frees *start and *all.
	 * futex_wake() uses only the address.
	 */
	if (atomic_fetch_sub(&all->left, 1) == 1)
		futex_wake(&all->left);
	if (c) {
		/* M1: the monitor may have slept since before there were carriers. */
		flexsc__monitor_notice();
		flexsc__carrier_run(c);
		/*
		 * This also frees the timers of carriers that c adopted: they are still
		 * in c's loop.
		 */
		flexsc__futex_timers_free_dead(c);
		end_together();
		carrier_fini(c);
		flexsc__signal_fini(c);
	}
	return NULL;
}

/*
 * Create n threads, then wait once for all of them: on a busy machine, each may wait
 * long for a processor. Returns 0, or -errno if carriers are missing.
 */
static int start_together(struct starts *all, struct start *each, unsigned int n)
{
	unsigned int made = 0;
	uint32_t left;
	int err = 0;

	atomic_store(&all->left, n);
	while (made < n && !err) {
		each[made].all = all;
		err = -flexsc__internal_service(&each[made].thread, carrier_main,
					   &each[made]);
		made += !err;
	}
	atomic_fetch_sub(&all->left, n - made);
	while ((left = atomic_load(&all->left)))
		futex_wait(&all->left, left, UINT64_MAX);
	for (unsigned int i = 0; i < made; i++)
		if (each[i].failed)
			flexsc__own_join(each[i].thread);
	if (!all->err && err)
		snprintf(all->why, all->size, "%s", strerror(-err));
	return all->err ? all->err : err;
}

int flexsc__carrier_start(const struct flexsc_options *options, char *why,
			  size_t size)
{
	struct starts all = { .options = *options, .why = why, .size = size };
	struct start one;

	return start_together(&all, &one, 1);
}

static void forget_all(void)
{
	flexsc__adopt_forget();
	flexsc__runqueue_forget();
	flexsc__retire_forget();
	flexsc__runtime.count = 0;
	flexsc__runtime.room = 0;
	flexsc__runtime.carriers_size = 0;
	flexsc__runtime.carriers = NULL;
	atomic_store(&over, 0);
}

static bool make_room(unsigned int n)
{
	struct carrier *carriers = aligned_alloc(64, n * sizeof(*carriers));

	for (unsigned int i = 0; carriers && i < n; i++)
		carriers[i] = (struct carrier){ .number = i, .stuck_fd = -1,
						.status_fd = -1,
						.kept_timer = -1 };
	flexsc__runtime.carriers = carriers;
	flexsc__runtime.room = carriers ? n : 0;
	flexsc__runtime.carriers_size = flexsc__runtime.room * sizeof(*carriers);
	return carriers;
}

int flexsc__carriers_start(unsigned int n, bool spare,
			   const struct flexsc_options *options, char *why,
			   size_t size)
{
	struct starts all = { .options = *options, .spares = n, .why = why,
			      .size = size };
	struct start *each = calloc(n + 1, sizeof(*each));
	int err;

	flexsc__runtime.alone = n == 1;
	if (!each || !make_room(n + SPARES_MOST)) {
		free(each);
		snprintf(why, size, "%s", strerror(ENOMEM));
		return -ENOMEM;
	}
	err = start_together(&all, each, n + spare);
	free(each);
	if (!flexsc__runtime.count) {
		free(flexsc__runtime.carriers);
		forget_all();
		return err;
	}
	if (n > flexsc__runtime.count)
		n = flexsc__runtime.count;
	flexsc__counters_publish(all.options.engine, n);
	flexsc__runtime.polls = !strcmp(all.options.engine, "uring");
	flexsc__runtime.module = !strcmp(all.options.engine, "kmod");
	flexsc__runtime.makes_ready =
		flexsc__runtime.carriers[0].loop->makes_ready;
	return (int)n;
}

void flexsc__carriers_end(void)
{
	struct carrier *all = flexsc__runtime.carriers;
	const unsigned int n = flexsc__runtime.count;

	for (unsigned int i = 0; i < n; i++) {
		all[i].end.callback = end_requested;
		flexsc_loop_wake(all[i].loop, &all[i].end);
	}
	for (unsigned int i = 0; i < n; i++)
		flexsc__own_join(all[i].thread);
	forget_all();
	free(all);
}

void flexsc__carriers_forked(void)
{
	/*
	 * Close the files of all "room" elements, not only of "count": the process may
	 * have forked while a spare was starting.
	 */
	for (unsigned int i = 0; i < flexsc__runtime.room; i++)
		flexsc__proc_close(&flexsc__runtime.carriers[i]);
	flexsc__identity_forked();
	forget_all();
}
