/* SPDX-License-Identifier: MIT */
#include "identity.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "lib/base/clock.h"
#include "lib/base/futex.h"
#include "lib/engine/ring.h"
#include "carrier.h"
#include "proc.h"
#include "state.h"

/*
 * How often a host checks for pending signals, in ns: a carrier may be in a call that no
 * signal interrupts.
 */
#define CHECK_NS	10000000U

/*
 * Limits of both waits, in ns. A thread may leave libc's function by a jump, and keep the
 * turn. A library may call libc's function without the runtime's notice, between another
 * thread's begin and its signals: no carrier gets a signal for this other call then.
 */
#define TURN_NS		1000000000U
#define LIMIT_NS	10000000000U

/*
 * 1: a thread is in a function that changes all threads. The exchange in take_turn()
 * acquires what that thread wrote; pairs with the store in give_turn().
 */
static _Atomic uint32_t turn;
/* Number of calls that have begun to change the users or groups of all threads. */
static _Atomic uint32_t calls;
/* Number of changes of all carriers together. Hosts sleep on this word. */
static _Atomic uint32_t changes;

/* After TURN_NS the caller goes on without the turn, and its give_turn() ends another's. */
static void take_turn(void)
{
	const uint64_t until = time_monotonic() + TURN_NS;
	uint64_t now;

	while (atomic_exchange(&turn, 1)) {
		now = time_monotonic();
		if (now >= until)
			return;
		futex_wait(&turn, 1, until - now);
	}
}

static void give_turn(void)
{
	atomic_store(&turn, 0);
	futex_wake(&turn);
}

void flexsc__identity_begin(void)
{
	take_turn();
	atomic_fetch_add(&calls, 1);
}

void flexsc__identity_end(void)
{
	give_turn();
}

void flexsc__identity_join(struct carrier *c)
{
	take_turn();
	/*
	 * No change is in progress, and this thread has all earlier ones: it has
	 * inherited them, or has got their signals.
	 */
	atomic_store(&c->changed, atomic_load(&calls));
	flexsc__runtime.count++;
	give_turn();
}

void flexsc__identity_forked(void)
{
	atomic_store(&turn, 0);
}

static bool has_changed(const struct carrier *c, uint32_t n)
{
	return (int32_t)(n - atomic_load(&c->changed)) <= 0;
}

/* Have all carriers changed their users and groups for the first n calls? */
static bool all_changed(uint32_t n)
{
	for (unsigned int i = 0; i < flexsc__runtime.count; i++)
		if (!has_changed(&flexsc__runtime.carriers[i], n))
			return false;
	return true;
}

/* Does the carrier execute libc's handler before it returns to user mode? */
static bool is_pending(const struct carrier *c)
{
	struct status_value values[] = { { .name = "SigPnd:" },
					 { .name = "SigBlk:" } };

	flexsc__proc_status(c, values, 2);
	return strtoull(values[0].text, NULL, 16) &
	       ~strtoull(values[1].text, NULL, 16) & SIGNAL_BIT(SIGNAL_SETXID);
}

/* The same, or has it the signal pending? */
static bool all_change(uint32_t n)
{
	for (unsigned int i = 0; i < flexsc__runtime.count; i++) {
		const struct carrier *c = &flexsc__runtime.carriers[i];

		/* Check again: the handler may have begun before the file was read. */
		if (!has_changed(c, n) && !is_pending(c) && !has_changed(c, n))
			return false;
	}
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
	 * Wake the hosts if this is the last carrier to change for a call. Calls that
	 * failed may have been counted as well, so test only for the first call that is
	 * new to this carrier.
	 */
	if (all_changed(before + 1))
		futex_wake_all(&changes);
}

void flexsc__identity_await(void)
{
	const uint64_t until = time_monotonic() + LIMIT_NS;
	const uint32_t n = atomic_load(&calls);
	uint32_t seen;

	for (;;) {
		/* N4: read "changes" before the carriers' counts; pairs with N3. */
		seen = atomic_load(&changes);
		/* N2: read the carriers' counts before this host changes; pairs with N1. */
		if (all_changed(n))
			return;
		if ((futex_wait(&changes, seen, CHECK_NS) == -ETIMEDOUT &&
		     all_change(n)) || time_monotonic() >= until)
			return;
	}
}
