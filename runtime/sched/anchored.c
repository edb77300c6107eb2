/* SPDX-License-Identifier: MIT */
#include "anchored.h"

#include "lib/base/clock.h"
#include "runtime/counters/counters.h"
#include "carrier.h"
#include "carrier_signal.h"
#include "host.h"
#include "uthreads.h"
#include "wait.h"

/*
 * A thread waits at most WAIT_NS (in ns) for another thread's return to its host, and
 * checks every LOOK_NS whether it has returned.
 */
#define WAIT_NS		50000000U
#define LOOK_NS		500000
/* How long a thread waits for the return of all others, in ns. */
#define ALL_NS		5000000000ULL

void flexsc__anchor(struct uthread *u, enum anchor reason, bool anchored)
{
	/*
	 * A1: change u->anchored before anchored_call_to_host() checks whether u runs;
	 * pairs with A2 in carrier_run.c. The check misses a carrier that is between A2
	 * and setting "current". That carrier runs u until u's next wait, or until the
	 * monitor calls u to its host.
	 */
	if (anchored)
		atomic_fetch_or(&u->anchored, (uint8_t)reason);
	else
		atomic_fetch_and(&u->anchored, (uint8_t)~reason);
}

void flexsc__anchor_for_good(struct uthread *u)
{
	if (!(atomic_load(&u->anchored) & ANCHORED_STATE)) {
		flexsc__uthreads_lock();
		flexsc__anchor(u, ANCHORED_STATE, true);
		flexsc__uthreads_unlock();
	}
	flexsc__return_to_host(u);
}

/*
 * With the list locked: if u runs on a carrier although it is anchored, call it to its
 * host. True: u runs on a carrier.
 */
static bool call_to_host_if_runs(const struct uthread *u)
{
	const struct carrier *c = u->carrier;
	bool runs = c && atomic_load(&u->anchored) &&
		    __atomic_load_n(&c->k.current, __ATOMIC_SEQ_CST) == u;

	/* Prefer a timer's signal, because it interrupts no call. */
	if (runs && !flexsc__signal_running(c))
		flexsc__signal_carrier(c);
	return runs;
}

static bool anchored_call_to_host(int32_t tid)
{
	const struct uthread *u;
	bool runs;

	flexsc__uthreads_lock();
	u = flexsc__uthread_with(tid);
	runs = u && call_to_host_if_runs(u);
	flexsc__uthreads_unlock();
	return runs;
}

/*
 * Does the caller have to wait for u, because u is away from its host, or inside the
 * runtime, where it may not have noticed that it is anchored? If u is away, call it to
 * its host, even from a wait. Don't wait for a u whose carrier is stuck: u's call may
 * last forever, and u returns to its host right after the call.
 */
static bool is_to_settle(struct uthread *u)
{
	if (!__atomic_load_n(&u->host.away, __ATOMIC_RELAXED))
		return __atomic_load_n(&u->busy, __ATOMIC_RELAXED) &&
		       !atomic_load(&u->installs);
	if (call_to_host_if_runs(u))
		return !carrier_is_ward(u->carrier);
	if (!atomic_load(&u->wanted))
		flexsc__want(u);
	return true;
}

static bool others_to_settle(const struct uthread *self)
{
	bool any = false;

	flexsc__uthreads_lock();
	for (struct uthread *u = flexsc__uthreads_first(); u; u = u->all_next)
		if (u != self)
			any |= is_to_settle(u);
	flexsc__uthreads_unlock();
	return any;
}

void flexsc__anchor_others(const struct uthread *self, enum anchor reason)
{
	const struct timespec moment = { 0, LOOK_NS };
	const uint64_t until = time_monotonic() + ALL_NS;

	flexsc__uthreads_lock();
	for (struct uthread *u = flexsc__uthreads_first(); u; u = u->all_next)
		if (u != self)
			flexsc__anchor(u, reason, true);
	flexsc__uthreads_unlock();
	/* Sleep at least once: plain stores to "busy" and "away" may be seen late. */
	do
		raw_syscall(SYS_nanosleep, PTR(&moment), 0, 0, 0, 0, 0);
	while (others_to_settle(self) && time_monotonic() < until);
}

void flexsc__anchored_settle(struct uthread *self, int32_t tid)
{
	const struct timespec moment = { 0, LOOK_NS };
	uint64_t until;

	if (self && self->host.k.tid == tid) {
		self->cause = CAUSE_ANCHORED;
		if (atomic_load(&self->anchored))
			flexsc__return_to_host(self);
		return;
	}
	/* Limit the wait: the thread may be in a call that no signal interrupts. */
	until = time_monotonic() + WAIT_NS;
	while (anchored_call_to_host(tid) && time_monotonic() < until)
		raw_syscall(SYS_nanosleep, PTR(&moment), 0, 0, 0, 0, 0);
}
