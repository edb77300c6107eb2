/* SPDX-License-Identifier: MIT */
#include "cputime.h"

#include "lib/base/clock.h"
#include "carrier.h"

/* The processor-time clock of a kernel thread, by the kernel's numbering. */
#define CLOCK_OF(tid)	((clockid_t)(~(uint32_t)(tid) << 3 | 6))

/* Ticks and nanoseconds. */

/* minimum time between the two readings that determine the rate, in ns */
#define BASE_NS		1000000U
#define TRIES		8

struct stamp {
	uint64_t ticks, ns;
};

static struct stamp at_start;
/* Ticks in 2^32 nanoseconds; 0: not measured yet. */
static _Atomic uint64_t ticks_rate;

static uint64_t read_clock(clockid_t clock)
{
	struct timespec time = { 0 };

	raw_syscall(SYS_clock_gettime, (uint64_t)clock, PTR(&time), 0, 0, 0, 0);
	return time_ns(&time);
}

uint64_t flexsc__cputime_of(int32_t tid)
{
	return read_clock(CLOCK_OF(tid));
}

/* Read both clocks at one moment: the least disturbed of several tries. */
static struct stamp stamp(void)
{
	uint64_t least = UINT64_MAX;
	struct stamp best = { 0 };

	for (int i = 0; i < TRIES; i++) {
		uint64_t before = context_ticks(), took;
		uint64_t ns = time_monotonic();

		took = context_ticks() - before;
		if (took < least) {
			least = took;
			best = (struct stamp){ before + took / 2, ns };
		}
	}
	return best;
}

__attribute__((constructor)) static void begin(void)
{
	at_start = stamp();
}

/* The rate is measured once, because clocks could go back if it changed. */
static uint64_t rate(void)
{
	uint64_t known = atomic_load(&ticks_rate), found;
	struct stamp now;

	if (known)
		return known;
	do {
		now = stamp();
	} while (now.ns - at_start.ns < BASE_NS);
	found = (uint64_t)(((unsigned __int128)(now.ticks - at_start.ticks)
			    << 32) / (now.ns - at_start.ns));
	if (atomic_compare_exchange_strong(&ticks_rate, &known, found))
		return found;
	return known;
}

static uint64_t ns_of(uint64_t ticks)
{
	return (uint64_t)(((unsigned __int128)ticks << 32) / rate());
}

static uint64_t ticks_of(uint64_t ns)
{
	return (uint64_t)((unsigned __int128)ns * rate() >> 32);
}

/*
 * Ticks on carriers. A carrier writes these plain fields while other threads read them.
 * An aligned word is always read as a whole.
 */

#define READ(field)	__atomic_load_n(&(field), __ATOMIC_RELAXED)

/* Ticks of the current run, up to "now", during which the carrier had no processor. */
static uint64_t lost(const struct carrier *c, uint64_t now, uint64_t ns)
{
	uint64_t run = now - READ(c->began), since = now - READ(c->clock.at);
	uint64_t ran = READ(c->ran) + run - READ(c->clock.ran);
	uint64_t had = ticks_of(ns - READ(c->clock.ns));
	uint64_t most = run < since ? run : since;

	if (ran <= had)
		return 0;
	return ran - had < most ? ran - had : most;
}

void flexsc__cputime_look(struct carrier *c, struct uthread *u, uint64_t now)
{
	uint64_t ns = read_clock(CLOCK_THREAD_CPUTIME_ID);

	u->ran -= lost(c, now, ns);
	c->clock.ran = c->ran + (now - c->began);
	c->clock.ns = ns;
	c->clock.at = now;
}

static uint64_t own_ticks(struct uthread *u)
{
	struct carrier *c = kthread_self()->carrier;

	if (!c)
		return u->ran;
	flexsc__cputime_look(c, u, context_ticks());
	/*
	 * Count the current run only up to the last reading of the clock: the carrier
	 * may have lost its processor since.
	 */
	return u->ran + (c->clock.at - c->began);
}

/* Ticks that another user thread, which may move meanwhile, has run on carriers. */
static uint64_t others_ticks(const struct uthread *u)
{
	for (;;) {
		const struct carrier *c = READ(u->carrier);
		uint64_t ran = READ(u->ran), began, at, ns, now, gone;

		if (!c || READ(c->k.current) != u)
			return ran;
		began = READ(c->began);
		at = READ(c->clock.at);
		/*
		 * Read the clock before the ticks. The time in between then counts as
		 * time without a processor, so the result is, if anything, too small.
		 */
		ns = flexsc__cputime_of(c->k.tid);
		now = context_ticks();
		gone = lost(c, now, ns);
		/*
		 * Accept the values only if u's run continued while they were read, and
		 * the carrier didn't subtract ticks from u->ran.
		 */
		if (READ(c->k.current) == u && READ(c->began) == began &&
		    READ(c->clock.at) == at && READ(u->ran) == ran)
			return ran + (now - began) - gone;
	}
}

uint64_t flexsc__cputime_ns(uint64_t ticks)
{
	return ns_of(ticks);
}

uint64_t flexsc__cputime_own(struct uthread *u)
{
	return ns_of(own_ticks(u));
}

uint64_t flexsc__cputime_other(const struct uthread *u)
{
	return ns_of(others_ticks(u));
}

uint64_t flexsc__cputime_before(const struct uthread *u)
{
	return ns_of(READ(u->ran));
}
