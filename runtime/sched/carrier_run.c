/* SPDX-License-Identifier: MIT */
/*
 * The main loop of a carrier, which runs on the carrier's own stack:
 *
 *	take what other threads put into the inbox;
 *	every few runs, collect completed calls;
 *	run a user thread from a queue (runqueue.h);
 *	if no user thread is ready, submit what was posted, spin for a moment
 *	(one carrier at a time does), and sleep in the loop.
 */
#include "lib/base/clock.h"
#include "lib/loop/event.h"
#include "lib/loop/loop.h"
#include "adopt.h"
#include "carrier.h"
#include "carrier_signal.h"
#include "count.h"
#include "cputime.h"
#include "futex_timer.h"
#include "host.h"
#include "inbox.h"
#include "monitor.h"
#include "poll_first.h"
#include "runqueue.h"
#include "wait.h"

/* Runs of user threads before completions are collected again. */
#define RUNS		32U
/* A run of at least this many ticks (some 20 us) makes its user thread "heavy". */
#define HEAVY_TICKS	50000U
/*
 * A run that computes for at least this many ticks (some 0.2 ms) per call makes its
 * user thread "slow". The limit is per call, because a worker may serve many short
 * requests in one run if they are queued. With a lower limit, a tracer that delays
 * calls would make user threads "slow".
 */
#define SLOW_TICKS	500000U
/* A run counts once towards RUNS, and once more for each RUN_TICKS that it takes. */
#define RUN_TICKS	16384U
/* How long a carrier spins before it sleeps, in ns: about what waking it costs. */
#define SPIN_NS		20000U
/*
 * How long a carrier with wards sleeps at most, in ns. Such a carrier has to check the
 * pools of its wards' loops for results.
 */
#define WARDS_NS	2000000U

static void take_inbox(struct carrier *c)
{
	struct uthread *u, *next;

	if (!atomic_load_explicit(&c->inbox, memory_order_relaxed))
		return;
	for (u = flexsc__inbox_take(c); u; u = next) {
		next = u->next;
		COUNT_CARRIER(c, given, 1);
		flexsc__runqueue_put(c, u);
	}
}

/*
 * Another thread requested a check whether u's wait has to end. If u waits on another
 * carrier by now, pass the request to that carrier.
 */
static void recheck(struct carrier *c, struct uthread *u)
{
	struct carrier *last;
	uint32_t requests;

	do {
		requests = atomic_load(&u->recheck.requests);
		last = u->carrier;
		if (carrier_heir(last) != c &&
		    (atomic_load(&u->wanted) || poll_first_is_needed(u))) {
			flexsc__inbox_pass(last, u);
			return;
		}
		flexsc__wait_interrupt(c, u);
		/*
		 * V4: the exchange succeeds if no request came since "wanted" was read;
		 * pairs with V3. From then on u may end, or enter a list of rechecks
		 * again.
		 */
	} while (!atomic_compare_exchange_strong(&u->recheck.requests, &requests,
						 0));
}

static void take_rechecks(struct carrier *c)
{
	struct uthread *u, *next;

	if (!atomic_load_explicit(&c->rechecks, memory_order_relaxed))
		return;
	/* V2: acquires the links; pairs with V1 in inbox.c. */
	for (u = atomic_exchange(&c->rechecks, NULL); u; u = next) {
		next = u->recheck.next;
		recheck(c, u);
	}
}

static void dispatch(struct carrier *c)
{
	bool pipe_came = atomic_load_explicit(&c->pipe_came,
					      memory_order_relaxed);

	c->runs = 0;
	flexsc__futex_timers_free_dead(c);
	flexsc_loop_dispatch(c->loop);
	if (c->wards)
		flexsc__adopt_serve(c);
	if (pipe_came)
		flexsc__signal_pipe(c);
	else if (!atomic_load_explicit(&c->pipe_came, memory_order_relaxed))
		c->pipe_broke = false;
}

/* Spin until there is work, for SPIN_NS at most. True: there is work. */
static bool spin(struct carrier *c)
{
	struct carrier *other = NULL;
	bool found = false;
	uint64_t until;

	if (!flexsc__runtime.spins ||
	    !atomic_compare_exchange_strong(&flexsc__spinner, &other, c))
		return false;
	COUNT_CARRIER(c, spins, 1);
	until = time_monotonic() + SPIN_NS;
	for (; !found && time_monotonic() < until; cpu_relax())
		found = flexsc__loop_stirs(c->loop) || inbox_has_mail(c) ||
			atomic_load_explicit(&c->attend, memory_order_relaxed) ||
			flexsc__runqueue_any();
	atomic_store(&flexsc__spinner, NULL);
	return found;
}

static void sleep_until_work(struct carrier *c)
{
	/* Free dead timers first: if one expired, it would end the sleep. */
	flexsc__futex_timers_free_dead(c);
	/*
	 * Submit now if the carrier may spin first, or if other carriers may see it as
	 * idle after flexsc__runqueue_idle(). Otherwise flexsc_loop_wait() below
	 * submits and waits by the same system call.
	 */
	if (flexsc__runtime.spins || !flexsc__runtime.alone)
		flexsc_loop_submit(c->loop);
	if (spin(c)) {
		COUNT_CARRIER(c, found, 1);
		/* Clear the wake-up, because it would end the next spin, too. */
		atomic_store(&c->loop->nudged, false);
		dispatch(c);
		return;
	}
	if (flexsc__runqueue_idle(c)) {
		COUNT_CARRIER(c, sleeps, 1);
		flexsc_loop_wait(c->loop, c->wards ? WARDS_NS : FLEXSC_FOREVER);
	}
	flexsc__runqueue_busy(c);
	flexsc__monitor_notice();
	dispatch(c);
}

static bool is_over(const struct carrier *c)
{
	return c->ends && !c->wards && atomic_load(&c->adopt) == ADOPT_NOT;
}

static void give_away(struct runqueue *queue)
{
	struct uthread *u;

	while ((u = runqueue_take(queue)))
		flexsc__inbox_give(u);
}

/*
 * While c is a spare: sleep until it has to adopt or to end. User threads that ran on c
 * last, or whose wait stayed on c, still arrive in c's inbox. c gives them to other
 * carriers.
 */
static void stand_by(struct carrier *c)
{
	while (atomic_load_explicit(&c->spare, memory_order_relaxed) &&
	       !is_over(c)) {
		take_inbox(c);
		take_rechecks(c);
		give_away(&c->queue);
		give_away(&c->later);
		atomic_store(&c->idle, true);
		if (!atomic_load(&c->attend))
			flexsc_loop_wait(c->loop, FLEXSC_FOREVER);
		/* M1: as in flexsc__runqueue_busy(). */
		atomic_store(&c->idle, false);
		flexsc__monitor_notice();
		dispatch(c);
		if (atomic_load(&c->attend))
			flexsc__adopt_attend(c);
	}
}

/*
 * u's run is over. computed: its processor time in ticks, without the time that the
 * kernel ran other threads on a busy machine. calls: the number of calls that u made on
 * its carrier.
 */
static void note_slow(struct uthread *u, uint64_t computed, uint32_t calls)
{
	uint8_t slow = atomic_load_explicit(&u->slow, memory_order_relaxed);

	if (computed >= (uint64_t)SLOW_TICKS * (calls + 1))
		slow = UTHREAD_SLOW;
	else if (slow)
		slow--;
	else
		return;
	atomic_store_explicit(&u->slow, slow, memory_order_relaxed);
}

static void run(struct carrier *c, struct uthread *u)
{
	const bool leaves = flexsc__leaves_host(u);
	const uint64_t before = u->ran;
	uint64_t now, ticks;

	u->carrier = c;
	c->calls = 0;
	c->began = context_ticks();
	COUNT_CARRIER(c, switches, 1);
	c->k.current = u;
	/* Set "current" before signals are unblocked: their handlers have to find u. */
	atomic_signal_fence(memory_order_seq_cst);
	if (atomic_load_explicit(&c->blocked, memory_order_relaxed))
		flexsc__signal_unblock(c, u->host.sleep_mask);
	context_lend_self(u->tp, &c->k);
	flexsc__switch(&c->k.sp, u->sp, u->tp);
	c->k.current = NULL;
	now = context_ticks();
	ticks = now - c->began;
	/* Write to u before u->then(): afterwards another carrier may run u. */
	u->heavy = ticks >= HEAVY_TICKS;
	if (ticks >= CPUTIME_TICKS)
		flexsc__cputime_look(c, u, now);
	u->ran += ticks;
	/* Don't count a run that only takes u from its host to a wait. */
	if (!leaves)
		note_slow(u, u->ran - before, c->calls);
	c->ran += ticks;
	u->then(&c->k, u);
	/* Count long runs several times, so that they don't delay completions. */
	c->runs += (uint32_t)(ticks / RUN_TICKS);
}

static void send_to_host(struct uthread *u, enum cause cause)
{
	counters_return(cause);
	flexsc__send_to_host(u);
}

void flexsc__carrier_run(struct carrier *c)
{
	stand_by(c);
	for (;;) {
		struct uthread *u;

		if (atomic_load_explicit(&c->attend, memory_order_relaxed)) {
			flexsc__adopt_attend(c);
			stand_by(c);
		}
		take_inbox(c);
		take_rechecks(c);
		if (++c->runs >= RUNS)
			dispatch(c);
		u = flexsc__runqueue_next(c);
		if (!u && is_over(c))
			return;
		if (!u)
			sleep_until_work(c);
		/*
		 * P1: pairs with P2 in wait.c. After the end of u's wait, no carrier
		 * acts on requests to end it. So test "wanted" before u runs.
		 */
		else if (atomic_load(&u->wanted))
			send_to_host(u, CAUSE_SIGNAL);
		/*
		 * A2: read u->anchored before "current" is set; pairs with A1 in
		 * anchored.c. Don't return a user thread that is leaving its host to
		 * wait: on its host, it would only leave again.
		 */
		else if (atomic_load(&u->anchored) && !flexsc__leaves_host(u))
			send_to_host(u, CAUSE_ANCHORED);
		else
			run(c, u);
	}
}
