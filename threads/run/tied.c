/* SPDX-License-Identifier: MIT */
#include "tied.h"

#include "carrier.h"
#include "lib/base/clock.h"
#include "../report/counters.h"
#include "home.h"
#include "carrier_signal.h"
#include "uthreads.h"

/*
 * How long a thread waits for another one to come home, and how long between
 * two looks whether it has, in ns.
 */
#define WAIT_NS		50000000U
#define LOOK_NS		500000

void flexsc__tie(struct uthread *u, enum tie reason, bool tied)
{
	/*
	 * A1: before tied_call_home() looks whether u runs; pairs with A2 in
	 * carrier.c. A carrier that is past A2 and hasn't set "current" yet is
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

/* Is the thread on a carrier although it is tied? Then it is called home. */
static bool tied_call_home(int32_t tid)
{
	const struct uthread *u;
	const struct carrier *c;
	bool runs;

	flexsc__uthreads_lock();
	u = flexsc__uthread_with(tid);
	c = u ? u->carrier : NULL;
	runs = c && atomic_load(&u->tied) &&
	       __atomic_load_n(&c->k.current, __ATOMIC_SEQ_CST) == u;
	/*
	 * The carrier's timer sends the signal, so that it comes between two
	 * calls and interrupts none.
	 */
	if (runs && !flexsc__signal_running(c))
		flexsc__signal_carrier(c);
	flexsc__uthreads_unlock();
	return runs;
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
