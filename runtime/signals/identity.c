/* SPDX-License-Identifier: MIT */
#include "identity.h"

#include <stdatomic.h>

#include "lib/base/clock.h"
#include "lib/base/futex.h"
#include "lib/engine/ring.h"
#include "runtime/sched/carrier.h"
#include "runtime/sched/state.h"

/*
 * How long a host waits, in ns. If two threads change users at the same time, both
 * calls are counted, but libc begins the second only when all threads have done the
 * first. So during the first call, a host waits for both, up to the whole limit.
 */
#define LIMIT_NS	200000000U

/* Number of calls that have begun to change the users or groups of all threads. */
static _Atomic uint32_t calls;
/* Number of changes of all carriers together. Hosts sleep on this word. */
static _Atomic uint32_t changes;

void flexsc__identity_begin(void)
{
	atomic_fetch_add(&calls, 1);
}

/* Have all carriers changed their users and groups for the first n calls? */
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
	const uint32_t before = atomic_load_explicit(&c->changed,
						     memory_order_relaxed);
	const uint32_t n = atomic_load(&calls);

	/* Before N1: a user thread that sees the new user posts calls afterwards. */
	flexsc__rings_identify();
	/* N1: store this count after this carrier has changed; pairs with N2. */
	atomic_store(&c->changed, n);
	/* N3: increment after the store to "changed"; pairs with N4. */
	atomic_fetch_add(&changes, 1);
	/*
	 * Wake the hosts if this is the last carrier to change for a call. Some
	 * carriers may not have changed for all n calls yet, so test only for the first
	 * call that is new to this carrier.
	 */
	if (all_changed(before + 1))
		futex_wake_all(&changes);
}

void flexsc__identity_await(void)
{
	const uint64_t until = time_monotonic() + LIMIT_NS;
	const uint32_t n = atomic_load(&calls);
	uint64_t now;
	uint32_t seen;

	for (;;) {
		/* N4: read "changes" before the carriers' counts; pairs with N3. */
		seen = atomic_load(&changes);
		/*
		 * N2: read the carriers' counts before this host changes; pairs with
		 * N1. "calls" includes a call that failed, although no carrier gets a
		 * signal for it.
		 */
		if (all_changed(n))
			return;
		now = time_monotonic();
		if (now >= until)
			return;
		futex_wait(&changes, seen, until - now);
	}
}
