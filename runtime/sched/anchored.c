/* SPDX-License-Identifier: MIT */
#include "anchored.h"

#include "carrier.h"
#include "lib/base/clock.h"
#include "runtime/counters/counters.h"
#include "host.h"
#include "carrier_signal.h"
#include "uthreads.h"
#include "wait.h"

/*
 * How long a thread waits for another one to come home, and how long between
 * two looks whether it has, in ns.
 */
#define WAIT_NS		50000000U
#define LOOK_NS		500000
/* How long it waits for all others, in ns. */
#define ALL_NS		5000000000ULL

void flexsc__tie(struct uthread *u, enum tie reason, bool tied)
{
	/*
	 * A1: before tied_call_home() looks whether u runs; pairs with A2 in
	 * carrier_run.c. A carrier that is past A2 and hasn't set "current" yet is
	 * missed: it runs u until u's next wait, or until the monitor finds it.
	 */
	if (tied)
		atomic_fetch_or(&u->tied, (uint8_t)reason);
	else
		atomic_fetch_and(&u->tied, (uint8_t)~reason);
}

void flexsc__tie_for_good(struct uthread *u)
{
	if (!(atomic_load(&u->tied) & TIED_STATE)) {
		flexsc__uthreads_lock();
		flexsc__tie(u, TIED_STATE, true);
		flexsc__uthreads_unlock();
	}
	flexsc__come_home(u);
}

/*
 * Under the list's lock: does u run on a carrier although it is tied? Then it is
 * called home.
 */
static bool running_call_home(const struct uthread *u)
{
	const struct carrier *c = u->carrier;
	bool runs = c && atomic_load(&u->tied) &&
		    __atomic_load_n(&c->k.current, __ATOMIC_SEQ_CST) == u;

	/*
	 * The carrier's timer sends the signal, so that it comes between two
	 * calls and interrupts none.
	 */
	if (runs && !flexsc__signal_running(c))
		flexsc__signal_carrier(c);
	return runs;
}

static bool tied_call_home(int32_t tid)
{
	const struct uthread *u;
	bool runs;

	flexsc__uthreads_lock();
	u = flexsc__uthread_with(tid);
	runs = u && running_call_home(u);
	flexsc__uthreads_unlock();
	return runs;
}

/*
 * Is u away, or inside the runtime, where it may not have seen that it is tied? If
 * it is away it is called home, from a wait, too. A call that no signal interrupts
 * may last forever. When it ends, u comes home before all else.
 */
static bool is_to_settle(struct uthread *u)
{
	if (!__atomic_load_n(&u->home.away, __ATOMIC_RELAXED))
		return __atomic_load_n(&u->busy, __ATOMIC_RELAXED) &&
		       !atomic_load(&u->installs);
	if (running_call_home(u))
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

void flexsc__tie_others(const struct uthread *self, enum tie reason)
{
	const struct timespec moment = { 0, LOOK_NS };
	const uint64_t until = time_monotonic() + ALL_NS;

	flexsc__uthreads_lock();
	for (struct uthread *u = flexsc__uthreads_first(); u; u = u->all_next)
		if (u != self)
			flexsc__tie(u, reason, true);
	flexsc__uthreads_unlock();
	/* Not without a moment: "busy" and "away" are plain stores. */
	do
		raw_syscall(SYS_nanosleep, PTR(&moment), 0, 0, 0, 0, 0);
	while (others_to_settle(self) && time_monotonic() < until);
}

void flexsc__tied_settle(struct uthread *self, int32_t tid)
{
	const struct timespec moment = { 0, LOOK_NS };
	uint64_t until;

	if (self && self->home.k.tid == tid) {
		self->cause = CAUSE_TIED;
		if (atomic_load(&self->tied))
			flexsc__come_home(self);
		return;
	}
	/* The thread may be in a call that no signal interrupts: a disk's. */
	until = time_monotonic() + WAIT_NS;
	while (tied_call_home(tid) && time_monotonic() < until)
		raw_syscall(SYS_nanosleep, PTR(&moment), 0, 0, 0, 0, 0);
}
