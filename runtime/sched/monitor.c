/* SPDX-License-Identifier: MIT */
#include "monitor.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>

#include "lib/base/clock.h"
#include "lib/pool/own_thread.h"
#include "runtime/counters/counters.h"
#include "adopt.h"
#include "carrier.h"
#include "carrier_signal.h"
#include "cputime.h"
#include "internal_thread.h"
#include "proc.h"
#include "state.h"

/*
 * In ticks of the processor. If reading a thread's state took longer than FOUND_TICKS
 * (40 us), the monitor reads it again, up to TRIES times. If a run is longer than
 * LONG_TICKS (0.2 ms) at one check, it may be ended at the next. A run longer than
 * LONGEST_TICKS (5 ms) is ended even if the thread computes, first by a timer.
 */
#define FOUND_TICKS	100000U
#define LONG_TICKS	500000U
#define LONGEST_TICKS	12500000U
#define TRIES		5

/* How often the monitor checks while a carrier is busy, in ns. */
#define MONITOR_NS	10000000U

/*
 * In ns. SIGNAL_NS after sending a signal, the monitor checks whether the call has
 * ended. What blocks one carrier may block the next, and the carriers' waiting times
 * add up. So after a carrier got stuck, the monitor checks every OFTEN_NS for WHILE_NS.
 */
#define SIGNAL_NS	2000000U
#define OFTEN_NS	1000000U
#define WHILE_NS	1000000000U

_Atomic uint32_t flexsc__monitor_asleep;
pthread_t flexsc__monitor;

void flexsc__monitor_wake(void)
{
	atomic_store(&flexsc__monitor_asleep, 0);
	futex_wake(&flexsc__monitor_asleep);
}

static bool all_idle(void)
{
	for (unsigned int i = 0; i < flexsc__runtime.count; i++)
		if (!atomic_load(&flexsc__runtime.carriers[i].idle))
			return false;
	return true;
}

static struct carrier_progress progress_of(const struct carrier *c)
{
	struct status_value waits = { .name = "voluntary_ctxt_switches:" };

	flexsc__proc_status(c, &waits, 1);
	return (struct carrier_progress){
		.waits = strtoul(waits.text, NULL, 10),
		.ran = flexsc__cputime_of(c->k.tid),
	};
}

/*
 * Has the thread only computed since the last check? Then it is in no call that a
 * signal could interrupt. Otherwise it may be about to return from a call, and only
 * lack a processor. A signal would then make that call fail.
 */
static bool has_run_only(const struct carrier_progress *before,
			 const struct carrier_progress *now)
{
	return now->waits == before->waits && now->ran != before->ran;
}

enum found {
	FOUND_NEITHER = 0,
	FOUND_WAITING,
	FOUND_RUNNING,
};

static enum found monitor_find(struct carrier *c,
			       const struct carrier_progress *before)
{
	if (!flexsc__proc_call(c))
		return FOUND_WAITING;
	c->progress = progress_of(c);
	return has_run_only(before, &c->progress) ? FOUND_RUNNING :
						    FOUND_NEITHER;
}

/*
 * Accept a result of monitor_find() only if reading it was quick. During a slow
 * reading, for example if the monitor has lost its processor, the thread may have begun
 * another call.
 */
static enum found find_now(struct carrier *c)
{
	const struct carrier_progress before = c->progress;
	enum found found;
	uint64_t begin;
	int tries = 0;

	do {
		begin = context_ticks();
		found = monitor_find(c, &before);
	} while (found != FOUND_NEITHER &&
		 context_ticks() - begin > FOUND_TICKS && ++tries < TRIES);
	return found;
}

/*
 * If a user thread seems to compute, let a timer call it to its host: the timer's
 * signal comes between two calls. This is tried once per run. If the user thread still
 * runs at later checks, the monitor sends a signal at once. False: not tried.
 */
static bool call_to_host_gently(struct carrier *c, uint64_t switches)
{
	if (c->timed == switches)
		return false;
	c->timed = switches;
	return flexsc__signal_running(c);
}

/* How long the carrier has run its user thread, in ticks. */
static uint64_t run_of(const struct carrier *c)
{
	return context_ticks() - __atomic_load_n(&c->began, __ATOMIC_RELAXED);
}

static void monitor_call_to_host(struct carrier *c, uint64_t switches)
{
	/* T1: "called" is set until the handler has read c->stuck; pairs with T2. */
	if (atomic_load(&c->called))
		return;
	atomic_store(&c->preempt, switches);
	switch (find_now(c)) {
	case FOUND_NEITHER:
		if (run_of(c) > LONGEST_TICKS)
			call_to_host_gently(c, switches);
		break;
	case FOUND_WAITING:
		flexsc__signal_stuck(c);
		break;
	case FOUND_RUNNING:
		if (run_of(c) > LONGEST_TICKS &&
		    !call_to_host_gently(c, switches) &&
		    run_of(c) > 2 * LONGEST_TICKS)
			flexsc__signal_carrier(c);
		break;
	}
}

static void monitor_look(struct carrier *c)
{
	uint64_t switches = __atomic_load_n(&c->k.counters->switches,
					    __ATOMIC_RELAXED);
	bool runs = __atomic_load_n(&c->k.current, __ATOMIC_RELAXED);

	if (switches == c->switches_seen) {
		if (runs)
			monitor_call_to_host(c, switches);
		/*
		 * Perhaps no signal can interrupt c's call. So let an idle carrier take
		 * c's queue.
		 */
		flexsc__runqueue_relieve(c);
	} else if (runs && run_of(c) > LONG_TICKS) {
		/*
		 * With this progress, the next check finds out whether the user thread
		 * has only computed since.
		 */
		c->progress = progress_of(c);
	}
	c->switches_seen = switches;
}

/* 1: the monitor has to end. It sleeps on this between two checks. */
static _Atomic uint32_t ends;

static void sleep_until_noticed(void)
{
	/*
	 * M2: set flexsc__monitor_asleep before reading each carrier's "idle"; pairs
	 * with M1, where a carrier clears "idle" before it reads
	 * flexsc__monitor_asleep.
	 */
	atomic_store(&flexsc__monitor_asleep, 1);
	if (all_idle() && !atomic_load(&ends))
		futex_wait(&flexsc__monitor_asleep, 1, UINT64_MAX);
	atomic_store(&flexsc__monitor_asleep, 0);
}

static bool any_is_called(void)
{
	for (unsigned int i = 0; i < flexsc__runtime.count; i++)
		if (atomic_load(&flexsc__runtime.carriers[i].called))
			return true;
	return false;
}

/* Check all carriers. Returns the number of stuck ones. */
static uint32_t look_at_stuck(void)
{
	uint32_t stuck = 0;

	for (unsigned int i = 0; i < flexsc__runtime.count; i++)
		stuck += flexsc__adopt_look(&flexsc__runtime.carriers[i]);
	flexsc__counters_stuck(stuck);
	return stuck;
}

static void *monitor_main(void *arg)
{
	uint64_t often = 0;	/* checks every OFTEN_NS until this time; 0: not now */
	uint32_t stuck = 0, before;

	(void)arg;
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, NULL);
	while (!atomic_load(&ends)) {
		futex_wait(&ends, 0, often ? OFTEN_NS : MONITOR_NS);
		if (all_idle())
			sleep_until_noticed();
		for (unsigned int i = 0; i < flexsc__runtime.count; i++)
			monitor_look(&flexsc__runtime.carriers[i]);
		/*
		 * Give the signal time to act. While the monitor checks often, the
		 * pause between two checks is long enough.
		 */
		if (!often && any_is_called())
			futex_wait(&ends, 0, SIGNAL_NS);
		before = stuck;
		stuck = look_at_stuck();
		if (stuck > before)
			often = time_monotonic() + WHILE_NS;
		else if (often && time_monotonic() >= often)
			often = 0;
	}
	flexsc__counters_stuck(0);
	return NULL;
}

int flexsc__monitor_start(void)
{
	atomic_store(&ends, 0);
	return -flexsc__internal_service(&flexsc__monitor, monitor_main, NULL);
}

void flexsc__monitor_end(void)
{
	/*
	 * Set "ends" before clearing flexsc__monitor_asleep. sleep_until_noticed() does
	 * the opposite: it sets flexsc__monitor_asleep, then reads "ends". So the
	 * monitor can't miss its end.
	 */
	atomic_store(&ends, 1);
	futex_wake(&ends);
	flexsc__monitor_wake();
	flexsc__own_join(flexsc__monitor);
}
