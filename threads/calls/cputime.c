/* SPDX-License-Identifier: MIT */
#include "cputime.h"

#include <errno.h>
#include <sys/resource.h>

#include "call.h"
#include "../run/carrier.h"
#include "lib/base/clock.h"
#include "../run/home.h"
#include "../base/peek.h"
#include "../runtime.h"
#include "../run/tied.h"
#include "timers.h"
#include "../run/uthreads.h"

/* The processor-time clock of a kernel thread, by the kernel's numbering. */
#define CLOCK_OF(tid)	((clockid_t)(~(uint32_t)(tid) << 3 | 6))

/* Ticks and nanoseconds. */

#define BASE_NS		1000000U	/* ns between two stamps, at least */
#define TRIES		8

struct stamp {
	uint64_t ticks, ns;
};

static struct stamp at_start;
/* Ticks in 2^32 nanoseconds; 0 until it is known. */
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

/* Both clocks at one moment: of some tries, the one disturbed least. */
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

/* The rate must never change, or clocks would go back. */
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
 * Ticks on carriers. Other threads read what a carrier writes here plainly; an
 * aligned word doesn't tear.
 */

#define READ(field)	__atomic_load_n(&(field), __ATOMIC_RELAXED)

/*
 * Ticks of the current run, up to "now", in which the carrier had no processor.
 */
static uint64_t lost(const struct carrier *c, uint64_t now, uint64_t ns)
{
	uint64_t run = now - READ(c->began), since = now - READ(c->looked.at);
	uint64_t ran = READ(c->ran) + run - READ(c->looked.ran);
	uint64_t had = ticks_of(ns - READ(c->looked.ns));
	uint64_t most = run < since ? run : since;

	if (ran <= had)
		return 0;
	return ran - had < most ? ran - had : most;
}

void flexsc__cputime_look(struct carrier *c, struct uthread *u, uint64_t now)
{
	uint64_t ns = read_clock(CLOCK_THREAD_CPUTIME_ID);

	u->ran -= lost(c, now, ns);
	c->looked.ran = c->ran + (now - c->began);
	c->looked.ns = ns;
	c->looked.at = now;
}

/* Ticks of u, which is the caller. */
static uint64_t own_ticks(struct uthread *u)
{
	struct carrier *c = kthread_self()->carrier;

	if (!c)
		return u->ran;
	flexsc__cputime_look(c, u, context_ticks());
	/*
	 * Up to that look, and not to this moment: since then the carrier may
	 * have been off its processor.
	 */
	return u->ran + (c->looked.at - c->began);
}

/*
 * Ticks of another user thread, under the list's lock. That thread may change
 * carriers or go home meanwhile.
 */
static uint64_t others_ticks(const struct uthread *u)
{
	for (;;) {
		const struct carrier *c = READ(u->carrier);
		uint64_t ran = READ(u->ran), began, at, ns, now, gone;

		if (!c || READ(c->k.current) != u)
			return ran;
		began = READ(c->began);
		at = READ(c->looked.at);
		/*
		 * The clock is read before the ticks. What passes in between
		 * counts as time without a processor, so the result is too
		 * little rather than too much.
		 */
		ns = flexsc__cputime_of(c->k.tid);
		now = context_ticks();
		gone = lost(c, now, ns);
		/* It is still the same run, and nothing was taken off. */
		if (READ(c->k.current) == u && READ(c->began) == began &&
		    READ(c->looked.at) == at && READ(u->ran) == ran)
			return ran + (now - began) - gone;
	}
}

/*
 * A thread's clock never goes back, whichever thread asks, although a look may
 * have taken ticks off.
 */
static uint64_t tell(struct uthread *u, uint64_t ns)
{
	uint64_t told = atomic_load(&u->told);

	while (told < ns)
		if (atomic_compare_exchange_weak(&u->told, &told, ns))
			return ns;
	return told;
}

/* Which thread a clock is of. */

static int32_t tid_of(const struct uthread *self, clockid_t clock)
{
	int32_t tid = clock == CLOCK_THREAD_CPUTIME_ID ? 0 : ~(clock >> 3);

	return tid || !self ? tid : self->home.k.tid;
}

/*
 * Processor time of a user thread, at home and on carriers; false if tid isn't
 * a user thread's.
 */
static bool find_ticks(struct uthread *self, int32_t tid, uint64_t home_ns,
		       uint64_t *ns)
{
	struct uthread *u;

	if (self && self->home.k.tid == tid) {
		*ns = tell(self, home_ns + ns_of(own_ticks(self)));
		return true;
	}
	flexsc__uthreads_hold();
	u = flexsc__uthread_with(tid);
	if (u)
		*ns = tell(u, home_ns + ns_of(others_ticks(u)));
	flexsc__uthreads_release();
	return u;
}

long flexsc__cputime_clock(struct uthread *u, const uint64_t args[6])
{
	clockid_t clock = (clockid_t)args[0];
	struct timespec *time = (struct timespec *)(uintptr_t)args[1];
	uint64_t ns;
	int32_t tid;
	long ret;

	if (!cputime_is_thread_s(clock) || !flexsc__runtime_runs())
		return flexsc__call_plainly(SYS_clock_gettime, args);
	tid = tid_of(u, clock);
	if (tid)
		clock = (clockid_t)(~(uint32_t)tid << 3) |
			(clock < 0 ? clock & 7 : 6);
	ret = raw_syscall(SYS_clock_gettime, (uint64_t)clock, args[1], 0, 0, 0,
			  0);
	if (!ret && tid && find_ticks(u, tid, time_ns(time), &ns))
		*time = (struct timespec){ (time_t)(ns / SECOND),
					   (long)(ns % SECOND) };
	return ret;
}

long flexsc__cputime_usage(struct uthread *u, const uint64_t args[6])
{
	struct rusage *usage = (struct rusage *)(uintptr_t)args[1];
	uint64_t us;
	long ret;

	if ((int)args[0] != RUSAGE_THREAD)
		return flexsc__call_plainly(SYS_getrusage, args);
	ret = flexsc__call_go_home(u, SYS_getrusage, args);
	if (ret)
		return ret;
	us = ns_of(u->ran) / 1000 + (uint64_t)usage->ru_utime.tv_usec;
	usage->ru_utime.tv_sec += (time_t)(us / 1000000);
	usage->ru_utime.tv_usec = (suseconds_t)(us % 1000000);
	return 0;
}

/* Timers. */

static void tie(int32_t tid, bool holds)
{
	struct uthread *u;

	flexsc__uthreads_hold();
	u = flexsc__uthread_with(tid);
	if (u)
		flexsc__tie(u, TIED_CLOCK, holds);
	flexsc__uthreads_release();
}

void flexsc__cputime_begin(struct uthread *u)
{
	if (flexsc__timers_on(u->home.k.tid))
		tie(u->home.k.tid, true);
}

int32_t flexsc__cputime_tie(struct uthread *u, clockid_t clock)
{
	int32_t tid;

	if (!cputime_is_thread_s(clock))
		return 0;
	tid = tid_of(u, clock);
	tie(tid, true);
	flexsc__tied_settle(u, tid);
	return tid;
}

void flexsc__cputime_untie(int32_t tid)
{
	tie(tid, false);
}

struct timespec flexsc__cputime_at_home(int32_t tid, struct timespec time)
{
	const struct uthread *u;
	uint64_t ns = 0, away;

	flexsc__uthreads_hold();
	u = flexsc__uthread_with(tid);
	away = u ? ns_of(READ(u->ran)) : 0;
	flexsc__uthreads_release();
	if (time_valid(&time))
		ns = time_ns(&time);
	if (!ns || !away)
		return time;
	/* A time that has passed must not become 0, which means never. */
	ns = ns > away ? ns - away : 1;
	return (struct timespec){ (time_t)(ns / SECOND), (long)(ns % SECOND) };
}

/*
 * The thread whose clock it is stays tied for good, because other threads may
 * sleep by that clock, too.
 */
long flexsc__cputime_sleep(struct uthread *u, const uint64_t args[6])
{
	clockid_t clock = (clockid_t)args[0];
	uint64_t changed[6] = { args[0], args[1], args[2], args[3] };
	struct timespec time;
	int32_t tid = 0;

	if (tid_of(u, clock) != u->home.k.tid)
		tid = flexsc__cputime_tie(u, clock);
	if (tid && args[1] & TIMER_ABSTIME &&
	    peek_can_read(args[2], sizeof(time))) {
		time = flexsc__cputime_at_home(
			tid, *(struct timespec *)(uintptr_t)args[2]);
		changed[2] = PTR(&time);
	}
	return flexsc__call_go_home(u, SYS_clock_nanosleep, changed);
}
