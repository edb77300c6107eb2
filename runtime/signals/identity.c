/* SPDX-License-Identifier: MIT */
#include "identity.h"

#include <stdatomic.h>

#include "lib/base/clock.h"
#include "lib/base/futex.h"
#include "runtime/sched/carrier.h"
#include "runtime/sched/state.h"

/*
 * How long a home waits, in ns. Two threads may change users at a time: both calls are
 * counted, but libc begins the second only when all threads have done the first.
 */
#define LIMIT_NS	10000000U

/* Number of calls that have begun. */
static _Atomic uint32_t calls;
/* How often a carrier has changed. Homes wait for the last one. */
static _Atomic uint32_t changes;

void flexsc__identity_begin(void)
{
	atomic_fetch_add(&calls, 1);
}

/* Have all carriers changed for so many calls? */
static bool all_changed(uint32_t n)
{
	for (unsigned int i = 0; i < flexsc__runtime.count; i++)
		if ((int32_t)(n - atomic_load(
				  &flexsc__runtime.carriers[i].changed)) > 0)
			return false;
	return true;
}

void flexsc__identity_changed(struct carrier *c)
{
	const uint32_t n = atomic_load(&calls);

	/* N1: after this carrier has changed; pairs with N2. */
	atomic_store(&c->changed, n);
	/* N3: after "changed"; pairs with N4. Of all carriers, the last one sees all. */
	atomic_fetch_add(&changes, 1);
	if (all_changed(n))
		futex_wake_all(&changes);
}

void flexsc__identity_await(void)
{
	const uint64_t until = time_monotonic() + LIMIT_NS;
	const uint32_t n = atomic_load(&calls);
	uint64_t now;
	uint32_t seen;

	for (;;) {
		/* N4: before the look at the carriers. */
		seen = atomic_load(&changes);
		/*
		 * N2: before this home changes. A call that failed is counted,
		 * although no carrier gets a signal for it.
		 */
		if (all_changed(n))
			return;
		now = time_monotonic();
		if (now >= until)
			return;
		futex_wait(&changes, seen, until - now);
	}
}
