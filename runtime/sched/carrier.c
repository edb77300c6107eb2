/* SPDX-License-Identifier: MIT */
#include "carrier.h"

#include <errno.h>
#include <pthread.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "adopt.h"
#include "lib/base/clock.h"
#include "count.h"
#include "cputime.h"
#include "lib/files/fds.h"
#include "host.h"
#include "lib/loop/loop.h"
#include "monitor.h"
#include "moved.h"
#include "internal_thread.h"
#include "spare.h"
#include "carrier_signal.h"
#include "wait.h"
#include "lib/loop/event.h"
#include "lib/engine/engine.h"
#include "lib/pool/own_thread.h"
#include "lib/run/make.h"
#include "state.h"

/* User threads that run before the carrier looks for completions again. */
#define RUNS		32U
/*
 * Ticks of a run that makes its user thread "heavy" (some 20 us), and ticks
 * that count as one more of RUNS.
 */
#define HEAVY_TICKS	50000U
#define RUN_TICKS	16384U
/* Runs from the queue before one from "later". */
#define PASSED		3U
/*
 * How long a carrier looks around before it sleeps, in ns: about what waking it
 * costs.
 */
#define SPIN_NS		20000U
/*
 * A carrier that blocks for RETIRE_NS without a break is in a call that hangs, and can't
 * retire. After RETIRE_MOST_NS no carrier is waited for, however busy the machine is.
 */
#define RETIRE_NS	1000000000U
#define RETIRE_MOST_NS	30000000000U
/* How long a carrier that has wards sleeps: pools of theirs are looked at. */
#define WARDS_NS	2000000U

static _Atomic uint32_t idle_count;
static atomic_bool searching;	/* an idle carrier was woken to look for work */
static _Atomic(struct carrier *) spinner;
static _Atomic uint32_t over;	/* carriers that have reached end_together() */

/* How carriers retire. */
enum retiring {
	RETIRING_NOT = 0,
	RETIRING_NOW,	/* the calls that this takes are permitted */
	RETIRING_LATE,	/* they may be forbidden by now */
};

static _Atomic uint32_t retiring;	/* enum retiring */

/*
 * Sleeping and waking. A carrier that has more than one user thread queued
 * wakes an idle one. "searching" is set from then until a carrier has stolen or
 * goes to sleep, so that carriers are woken one after the other, not all at
 * once.
 *
 *	Q1	a queue grows, then share() looks at idle_count and "searching"
 *	Q2	a carrier that goes to sleep sets "idle", raises idle_count and
 *		clears "searching", then looks at all queues
 *
 * All of these but share()'s looks are sequentially consistent, and a queue's
 * count is stored with a full barrier behind it. So share() sees an idle
 * carrier, or that carrier sees the queue.
 *
 * If share() leaves the queue to the carrier that is searching already, that
 * carrier steals from it, or clears "searching" as in Q2 before it sleeps; if
 * there was no idle carrier to search, wake_idle() clears it, and the queue's
 * carrier looks again when it dispatches next.
 *
 * "spinner" is the one carrier that looks around before it sleeps. User threads
 * that come from no carrier are given to it first, because waking it costs no
 * system call. A user thread that is given to it when it has just stopped is
 * in its inbox, and put_in_box() wakes its loop: nothing depends on the order.
 */

static uint32_t waiting(const struct carrier *c)
{
	return atomic_load_explicit(&c->queue.count, memory_order_relaxed) +
	       atomic_load_explicit(&c->later.count, memory_order_relaxed);
}

static bool wake_idle(void)
{
	for (unsigned int i = 0; i < flexsc__runtime.count; i++) {
		struct carrier *c = &flexsc__runtime.carriers[i];

		/* Pairs with the store in sleep_until_work(): Q2. */
		if (atomic_load(&c->idle) && !atomic_load(&c->spare)) {
			flexsc_loop_wake(c->loop, NULL);
			return true;
		}
	}
	atomic_store(&searching, false);
	return false;
}

/* Wake an idle carrier, because there is more to run here than one can. */
static void share(const struct carrier *c)
{
	if (waiting(c) < 2 ||
	    !atomic_load_explicit(&idle_count, memory_order_relaxed) ||
	    atomic_load_explicit(&searching, memory_order_relaxed))
		return;
	if (!atomic_exchange(&searching, true) && wake_idle())
		COUNT_HERE(wakes, 1);
}

void flexsc__carrier_relieve(const struct carrier *c)
{
	if (waiting(c))
		wake_idle();
}

void flexsc__carrier_put(struct carrier *c, struct uthread *u)
{
	RULE(kthread_self()->carrier == c);
	runqueue_put(u->heavy ? &c->later : &c->queue, u, u, 1);
	share(c);
}

void flexsc__carrier_ready(struct uthread *u)
{
	const struct kthread *k = kthread_known();

	if (k && k->carrier)
		flexsc__carrier_put(k->carrier, u);
	else
		flexsc__carrier_give(u);
}

/*
 * A carrier's inbox, and its list of wanted user threads. If the carrier has an heir,
 * everything goes to the heir's: D1, D2 in adopt.h.
 */

static void put_in_box(struct carrier *c, struct uthread *u)
{
	struct uthread *head;

	c = carrier_heir(c);
	head = atomic_load_explicit(&c->inbox, memory_order_relaxed);
	/* I1: releases the user thread; pairs with I2. */
	do {
		u->next = head;
	} while (!atomic_compare_exchange_weak(&c->inbox, &head, u));
	/* D2: an heir may have emptied the inbox just before; pairs with D1. */
	if (atomic_load(&c->heir))
		flexsc__carrier_forward(c);
	else
		flexsc_loop_wake(c->loop, NULL);
}

/* A carrier for a user thread that none has run. */
static struct carrier *any_carrier(void)
{
	static _Atomic unsigned int next;
	const unsigned int n = flexsc__runtime.count;
	struct carrier *c;

	for (unsigned int i = 0; i < n; i++) {
		c = &flexsc__runtime.carriers[atomic_fetch_add(&next, 1) % n];
		if (!atomic_load_explicit(&c->spare, memory_order_relaxed))
			return c;
	}
	return &flexsc__runtime.carriers[0];
}

void flexsc__carrier_give(struct uthread *u)
{
	struct carrier *c = atomic_load_explicit(&spinner,
						 memory_order_relaxed);

	if (!c)
		c = u->carrier;
	if (!c || atomic_load_explicit(&c->spare, memory_order_relaxed))
		c = any_carrier();
	put_in_box(c, u);
}

void flexsc__carrier_return(struct uthread *u)
{
	put_in_box(u->carrier, u);
}

/* Move the inbox into the queue, the oldest user thread first. */
static void take_inbox(struct carrier *c)
{
	struct uthread *u, *next, *oldest = NULL;

	if (!atomic_load_explicit(&c->inbox, memory_order_relaxed))
		return;
	/* I2: acquires the user threads; pairs with I1. */
	u = atomic_exchange_explicit(&c->inbox, NULL, memory_order_acquire);
	for (; u; u = next) {
		next = u->next;
		u->next = oldest;
		oldest = u;
	}
	for (u = oldest; u; u = next) {
		next = u->next;
		COUNT_CARRIER(c, given, 1);
		if (flexsc__wait_over(u))
			flexsc__carrier_put(c, u);
	}
	share(c);
}

/* u may compute on c without a look at "wanted". */
static void signal_if_runs(const struct carrier *c, const struct uthread *u)
{
	/*
	 * The signal does nothing if u has been suspended meanwhile. If c has
	 * looked at "wanted" too early and is about to set "current", there is no
	 * signal: u comes home at its next call, or when the monitor finds it.
	 */
	if (__atomic_load_n(&c->k.current, __ATOMIC_SEQ_CST) == u)
		flexsc__signal_carrier(c);
}

static void put_wanted(struct carrier *last, struct uthread *u)
{
	struct carrier *c = carrier_heir(last);
	struct uthread *head;

	head = atomic_load_explicit(&c->wanted, memory_order_relaxed);
	/* V1: releases the link; pairs with V2. */
	do {
		u->want.next = head;
	} while (!atomic_compare_exchange_weak(&c->wanted, &head, u));
	/* D2: as in put_in_box(). */
	if (atomic_load(&c->heir))
		flexsc__carrier_forward(c);
	else
		flexsc_loop_wake(c->loop, NULL);
	signal_if_runs(c, u);
	/* A stuck carrier still runs its user thread. */
	if (c != last)
		signal_if_runs(last, u);
}

void flexsc__carrier_forward(struct carrier *c)
{
	struct uthread *u, *next;

	for (u = atomic_exchange(&c->inbox, NULL); u; u = next) {
		next = u->next;
		put_in_box(c, u);
	}
	for (u = atomic_exchange(&c->wanted, NULL); u; u = next) {
		next = u->want.next;
		put_wanted(c, u);
	}
}

void flexsc__carrier_want(struct uthread *u)
{
	struct carrier *c = u->carrier;

	/*
	 * V3: u is in one list at a time. The carrier that has it there sees
	 * "asked" grow, and looks once more; pairs with V4.
	 */
	if (c && !atomic_fetch_add(&u->want.asked, 1))
		put_wanted(c, u);
}

/* u may have been woken meanwhile, and wait on another carrier by now. */
static void look_at_wanted(struct carrier *c, struct uthread *u)
{
	struct carrier *last;
	uint32_t asked;

	do {
		asked = atomic_load(&u->want.asked);
		last = u->carrier;
		if (carrier_heir(last) != c &&
		    (atomic_load(&u->wanted) || moved_polls(u))) {
			put_wanted(last, u);
			return;
		}
		flexsc__wait_interrupt(c, u);
		/*
		 * V4: it hasn't grown since the look at "wanted"; pairs with
		 * V3. From here on u may end, or be put into a list again.
		 */
	} while (!atomic_compare_exchange_strong(&u->want.asked, &asked, 0));
}

static void take_wanted(struct carrier *c)
{
	struct uthread *u, *next;

	if (!atomic_load_explicit(&c->wanted, memory_order_relaxed))
		return;
	/* V2: acquires the links; pairs with V1. */
	for (u = atomic_exchange(&c->wanted, NULL); u; u = next) {
		next = u->want.next;
		look_at_wanted(c, u);
	}
}

static struct uthread *steal(struct carrier *c)
{
	for (unsigned int i = 1; i < flexsc__runtime.count; i++) {
		struct carrier *from = &flexsc__runtime.carriers[
			(c->number + i) % flexsc__runtime.count];
		struct uthread *first, *last;
		uint32_t n;

		first = runqueue_halve(&from->queue, &n, &last);
		if (!first)
			first = runqueue_halve(&from->later, &n, &last);
		if (!first)
			continue;
		COUNT_CARRIER(c, steals, 1);
		COUNT_CARRIER(c, stolen, n);
		if (n > 1)
			runqueue_put(&c->queue, first->next, last, n - 1);
		atomic_store(&searching, false);
		share(from);
		return first;
	}
	return NULL;
}

static bool work_elsewhere(void)
{
	for (unsigned int i = 0; i < flexsc__runtime.count; i++)
		/* Q2: pairs with runqueue_count(), Q1. */
		if (atomic_load(&flexsc__runtime.carriers[i].queue.count) ||
		    atomic_load(&flexsc__runtime.carriers[i].later.count))
			return true;
	return false;
}

void flexsc__carrier_take_queues(struct carrier *c, struct carrier *from)
{
	struct uthread *u;

	while ((u = runqueue_take(&from->queue)) ||
	       (u = runqueue_take(&from->later)))
		flexsc__carrier_put(c, u);
}

static void dispatch(struct carrier *c)
{
	bool pipe_came = atomic_load_explicit(&c->pipe_came,
					      memory_order_relaxed);

	c->runs = 0;
	flexsc_loop_dispatch(c->loop);
	if (c->wards)
		flexsc__adopt_serve(c);
	if (pipe_came)
		flexsc__signal_pipe(c);
	else if (!atomic_load_explicit(&c->pipe_came, memory_order_relaxed))
		c->pipe_broke = false;
	share(c);
}

/* Look around for SPIN_NS: is there something to do? */
static bool spin(struct carrier *c)
{
	struct carrier *nobody = NULL;
	bool found = false;
	uint64_t until;

	if (!flexsc__runtime.spins ||
	    !atomic_compare_exchange_strong(&spinner, &nobody, c))
		return false;
	COUNT_CARRIER(c, spins, 1);
	until = time_monotonic() + SPIN_NS;
	for (; !found && time_monotonic() < until; cpu_relax())
		found = flexsc__loop_stirs(c->loop) ||
			atomic_load_explicit(&c->inbox, memory_order_relaxed) ||
			atomic_load_explicit(&c->wanted,
					     memory_order_relaxed) ||
			atomic_load_explicit(&c->asked,
					     memory_order_relaxed) ||
			work_elsewhere();
	atomic_store(&spinner, NULL);
	return found;
}

static void sleep_until_work(struct carrier *c)
{
	flexsc_loop_submit(c->loop);
	if (spin(c)) {
		COUNT_CARRIER(c, found, 1);
		/*
		 * Forget the wake-up that ended the spin, or the next spin ends
		 * at once.
		 */
		atomic_store(&c->loop->nudged, false);
		dispatch(c);
		return;
	}
	/* Q2, until the look at all queues. */
	atomic_store(&c->idle, true);
	atomic_fetch_add(&idle_count, 1);
	atomic_store(&searching, false);
	if (!work_elsewhere()) {
		COUNT_CARRIER(c, sleeps, 1);
		flexsc_loop_wait(c->loop, c->wards ? WARDS_NS : FLEXSC_FOREVER);
	}
	/* M1: before the look whether the monitor sleeps; pairs with M2. */
	atomic_store(&c->idle, false);
	atomic_fetch_sub(&idle_count, 1);
	flexsc__monitor_notice();
	dispatch(c);
}

/* Is c to end, without wards, and not stuck? */
static bool is_over(const struct carrier *c)
{
	return c->ends && !c->wards && atomic_load(&c->adopt) == ADOPT_NOT;
}

static void give_away(struct runqueue *queue)
{
	struct uthread *u;

	while ((u = runqueue_take(queue)))
		flexsc__carrier_give(u);
}

/*
 * While c is a spare: sleep until c is to adopt or to end. User threads still come here,
 * whose wait stayed with c when c was stuck, or which c ran last. Other carriers get
 * them.
 */
static void stand_by(struct carrier *c)
{
	while (atomic_load_explicit(&c->spare, memory_order_relaxed) &&
	       !is_over(c)) {
		take_inbox(c);
		take_wanted(c);
		give_away(&c->queue);
		give_away(&c->later);
		atomic_store(&c->idle, true);
		if (!atomic_load(&c->asked))
			flexsc_loop_wait(c->loop, FLEXSC_FOREVER);
		/* M1, as below. */
		atomic_store(&c->idle, false);
		flexsc__monitor_notice();
		dispatch(c);
		if (atomic_load(&c->asked))
			flexsc__adopt_attend(c);
	}
}

/*
 * Take a user thread from the queue, then from "later"; after PASSED from the
 * queue, from "later" first.
 */
static struct uthread *carrier_take(struct carrier *c)
{
	struct uthread *u = NULL;

	if (c->passed >= PASSED)
		u = runqueue_take(&c->later);
	if (!u)
		u = runqueue_take(&c->queue);
	if (u)
		c->passed++;
	else
		u = runqueue_take(&c->later);
	if (c->passed > PASSED)
		c->passed = 0;
	return u;
}

static void run(struct carrier *c, struct uthread *u)
{
	uint64_t now, ticks;

	u->carrier = c;
	c->calls = 0;
	c->began = context_ticks();
	COUNT_CARRIER(c, switches, 1);
	c->k.current = u;
	/*
	 * The order matters: a signal that unblocking lets arrive has to find u
	 * here.
	 */
	atomic_signal_fence(memory_order_seq_cst);
	if (atomic_load_explicit(&c->blocked, memory_order_relaxed))
		flexsc__signal_unblock(c, u->home.sleep_mask);
	flexsc__switch(&c->k.sp, u->sp, u->fs);
	c->k.current = NULL;
	now = context_ticks();
	ticks = now - c->began;
	/*
	 * Heaviness is noted before the action, because after it another kernel
	 * thread may run u.
	 */
	u->heavy = ticks >= HEAVY_TICKS;
	if (ticks >= CPUTIME_TICKS)
		flexsc__cputime_look(c, u, now);
	u->ran += ticks;
	c->ran += ticks;
	u->then(&c->k, u);
	/* Many long runs mustn't keep completions waiting. */
	c->runs += (uint32_t)(ticks / RUN_TICKS);
}

static void carry(struct carrier *c)
{
	stand_by(c);
	for (;;) {
		struct uthread *u;

		if (atomic_load_explicit(&c->asked, memory_order_relaxed)) {
			flexsc__adopt_attend(c);
			stand_by(c);
		}
		take_inbox(c);
		take_wanted(c);
		if (++c->runs >= RUNS)
			dispatch(c);
		u = carrier_take(c);
		if (!u)
			u = steal(c);
		if (!u && is_over(c))
			return;
		if (!u) {
			sleep_until_work(c);
		} else if (atomic_load(&u->wanted)) {
			/* Pairs with P2 in wait.c: u's wait was over. */
			counters_coupling(CAUSE_SIGNAL);
			flexsc__send_home(u);
		/*
		 * A2: before "current" is set; pairs with A1 in anchored.c. If u is
		 * on its way from home to a wait it goes on, because at home it
		 * would only leave again.
		 */
		} else if (atomic_load(&u->tied) && !flexsc__leaves(u)) {
			counters_coupling(CAUSE_TIED);
			flexsc__send_home(u);
		} else {
			run(c, u);
		}
	}
}

static void close_own(int fd)
{
	if (fd < 0)
		return;
	raw_syscall(SYS_close, (uint32_t)fd, 0, 0, 0, 0, 0);
	fds_forget((uint32_t)fd);
}

/* Ending. */

static void end_asked(struct flexsc_cb *cb)
{
	struct carrier *c = (struct carrier *)((char *)cb -
					       offsetof(struct carrier, end));

	c->ends = true;
}

/*
 * Wait until all carriers have come here, before any destroys its loop: one that comes
 * back from being stuck notifies its heir's loop.
 */
static void end_together(void)
{
	uint32_t n = atomic_fetch_add(&over, 1) + 1;

	while (n < flexsc__runtime.count) {
		futex_wait(&over, n, UINT64_MAX);
		n = atomic_load(&over);
	}
	/* futex_wake() wakes one thread, and each wakes the next. */
	futex_wake(&over);
}

static void carrier_fini(struct carrier *c)
{
	struct flexsc_stats stats;

	if (!flexsc_loop_stats(c->loop, &stats, sizeof(stats)))
		flexsc__runtime.ended_calls += stats.mode_switches;
	flexsc_loop_destroy(c->loop);
	close_own(c->stuck_fd);
	close_own(c->status_fd);
	c->k.counters->tid = 0;
}

/* Starting. */

/* Carriers that start together. */
struct starts {
	struct flexsc_options options;
	unsigned int spares;	/* number of the first that is a spare */
	uint32_t changed;
	char *why;
	size_t size;
	/* One at a time takes the next place, and makes its loop. */
	struct lock turn;
	int err;		/* of the first that failed: no other takes a place */
	_Atomic uint32_t left;	/* threads that have neither started nor failed */
};

/* One thread of a carrier that starts. */
struct start {
	struct starts *all;
	pthread_t thread;
	bool failed;
};

static void begin_thread(struct carrier *c)
{
	c->thread = pthread_self();
	c->k = (struct kthread){
		.self = &c->k,
		.fs = context_fs(),
		.carrier = c,
		.counters = counters_of_carrier(c->number),
		.tid = (int32_t)raw_syscall(SYS_gettid, 0, 0, 0, 0, 0, 0),
	};
	atomic_store(&c->blocked, runtime_raised());
	context_set_gs(&c->k);
	flexsc__signal_stack(c);
	flexsc__signal_unblock(c, SIGNAL_FAULTS);
}

static void begin_loop(struct carrier *c)
{
	c->stuck_fd = flexsc__monitor_open(c->k.tid, "syscall");
	c->status_fd = flexsc__monitor_open(c->k.tid, "status");
	c->kept_timer = flexsc__signal_timer(c);
	c->k.counters->tid = c->k.tid;
	/* A user thread makes such a call at home: see calls/call.c. */
	c->loop->no_thread = -ERESTART;
	/* It sleeps, too, where calls are lost. */
	flexsc_loop_ref(c->loop);
}

/*
 * Become the next carrier. It counts as soon as it is ready, so there are no gaps
 * if another one fails. NULL: it has failed.
 */
static struct carrier *take_place(struct starts *all)
{
	struct carrier *c = &flexsc__runtime.carriers[flexsc__runtime.count];

	if (all->err)
		return NULL;
	begin_thread(c);
	atomic_store(&c->spare, c->number >= all->spares);
	atomic_store(&c->changed, all->changed);
	all->err = flexsc__loop_create(&c->loop, &all->options, all->why,
				       all->size);
	if (all->err) {
		flexsc__signal_fini(c);
		return NULL;
	}
	begin_loop(c);
	/* Have all carriers use one engine. */
	all->options.engine = flexsc_loop_engine(c->loop);
	flexsc__runtime.count++;
	return c;
}

static void *carrier_main(void *arg)
{
	struct start *start = arg;
	struct starts *all = start->all;
	struct carrier *c;

	lock(&all->turn);
	c = take_place(all);
	unlock(&all->turn);
	start->failed = !c;
	/*
	 * Releases the carrier to start_together(). "start" and "all" may be gone
	 * with this subtraction, because that returns.
	 */
	if (atomic_fetch_sub(&all->left, 1) == 1)
		futex_wake(&all->left);
	if (c) {
		/* M1: the monitor may be asleep since before there were carriers. */
		flexsc__monitor_notice();
		carry(c);
		end_together();
		carrier_fini(c);
		flexsc__signal_fini(c);
	}
	return NULL;
}

/*
 * Make n threads, then wait once, for the last of them. On a busy machine, each may
 * wait long for a processor. 0, or -errno if there are fewer carriers.
 */
static int start_together(struct starts *all, struct start *each, unsigned int n)
{
	unsigned int made = 0;
	uint32_t left;
	int err = 0;

	atomic_store(&all->left, n);
	while (made < n && !err) {
		each[made].all = all;
		err = -flexsc__own_service(&each[made].thread, carrier_main,
					   &each[made]);
		made += !err;
	}
	atomic_fetch_sub(&all->left, n - made);
	while ((left = atomic_load(&all->left)))
		futex_wait(&all->left, left, UINT64_MAX);
	for (unsigned int i = 0; i < made; i++)
		if (each[i].failed)
			flexsc__own_join(each[i].thread);
	if (!all->err && err)
		snprintf(all->why, all->size, "%s", strerror(-err));
	return all->err ? all->err : err;
}

int flexsc__carrier_start(const struct flexsc_options *options, char *why,
			  size_t size)
{
	/* Its thread inherits the current identity from the maker's: identity.c. */
	struct starts all = {
		.options = *options,
		.changed = atomic_load(&flexsc__runtime.carriers[0].changed),
		.why = why,
		.size = size,
	};
	struct start one;

	return start_together(&all, &one, 1);
}

static void forget_all(void)
{
	flexsc__spares_forget();
	flexsc__adopt_forget();
	flexsc__runtime.count = 0;
	flexsc__runtime.room = 0;
	flexsc__runtime.carriers = NULL;
	atomic_store(&over, 0);
	atomic_store(&idle_count, 0);
	atomic_store(&spinner, NULL);
	atomic_store(&searching, false);
	atomic_store(&retiring, RETIRING_NOT);
}

static bool make_room(unsigned int n)
{
	struct carrier *carriers = aligned_alloc(64, n * sizeof(*carriers));

	for (unsigned int i = 0; carriers && i < n; i++)
		carriers[i] = (struct carrier){ .number = i, .stuck_fd = -1,
						.status_fd = -1,
						.kept_timer = -1 };
	flexsc__runtime.carriers = carriers;
	flexsc__runtime.room = carriers ? n : 0;
	return carriers;
}

int flexsc__carriers_start(unsigned int n, bool spare,
			   const struct flexsc_options *options, char *why,
			   size_t size)
{
	struct starts all = { .options = *options, .spares = n, .why = why,
			      .size = size };
	struct start *each = calloc(n + 1, sizeof(*each));
	int err;

	flexsc__runtime.alone = n == 1;
	if (!each || !make_room(n + SPARES_MOST)) {
		free(each);
		snprintf(why, size, "%s", strerror(ENOMEM));
		return -ENOMEM;
	}
	err = start_together(&all, each, n + spare);
	free(each);
	if (!flexsc__runtime.count) {
		free(flexsc__runtime.carriers);
		forget_all();
		return err;
	}
	if (n > flexsc__runtime.count)
		n = flexsc__runtime.count;
	flexsc__counters_publish(all.options.engine, n);
	flexsc__runtime.polls = !strcmp(all.options.engine, "uring");
	flexsc__runtime.makes_ready =
		flexsc__runtime.carriers[0].loop->makes_ready;
	return (int)n;
}

/*
 * Sleep for good. c was stuck until now, so its loop may be in the heir's hands, and
 * entering its ring would execute requests of calls that were made again elsewhere. A
 * filter may also forbid to enter it by now.
 */
static _Noreturn void park(struct carrier *c)
{
	atomic_store(&c->retired, 1);
	futex_wake(&c->retired);
	for (;;)
		futex_wait(&c->retired, 1, UINT64_MAX);
}

bool flexsc__carrier_retire(struct carrier *c)
{
	const uint32_t how = atomic_load(&retiring);

	if (how == RETIRING_NOT || atomic_load(&c->retired))
		return how != RETIRING_NOT;
	/* "heir" is NULL already while the heir lets go of the loop. */
	if (how == RETIRING_LATE || atomic_load(&c->adopt) != ADOPT_NOT)
		park(c);
	flexsc__engine_retire(c->loop);
	for (; c->wards; c->wards = c->wards->next_ward)
		flexsc__engine_retire_pool(c->wards->loop);
	atomic_store(&c->retired, 1);
	futex_wake(&c->retired);
	return true;
}

/*
 * Is the carrier blocked, and has been since the last look, when it had blocked *waits
 * times? Updates *waits.
 */
static bool is_still_blocked(const struct carrier *c, unsigned long *waits)
{
	struct status_value values[] = { { .name = "State:" },
					 { .name = "voluntary_ctxt_switches:" } };
	const unsigned long before = *waits;

	flexsc__monitor_status(c, values, 2);
	*waits = strtoul(values[1].text, NULL, 10);
	return *values[0].text != 'R' && *waits == before;
}

static bool is_retired(const struct carrier *c)
{
	return atomic_load(&c->retired) || flexsc__adopt_is_ward(c);
}

/*
 * Returns early only if the carrier hangs. A carrier that lacks a processor makes its
 * next calls later, when the filter may forbid them and end the process.
 */
static void wait_until_retired(struct carrier *c, uint64_t most)
{
	unsigned long waits = 0;
	uint64_t now = time_monotonic(), until = now + RETIRE_NS;

	is_still_blocked(c, &waits);
	while (!is_retired(c) && now < most) {
		futex_wait(&c->retired, 0, until - now);
		now = time_monotonic();
		if (now < until)
			continue;
		if (is_still_blocked(c, &waits))
			break;
		until = now + RETIRE_NS;
	}
}

void flexsc__carriers_retire(void)
{
	const uint64_t most = time_monotonic() + RETIRE_MOST_NS;
	struct carrier *all = flexsc__runtime.carriers;
	const unsigned int n = flexsc__runtime.count;

	atomic_store(&retiring, RETIRING_NOW);
	for (unsigned int i = 0; i < n; i++) {
		atomic_store(&all[i].asked, &all[i]);
		flexsc_loop_wake(all[i].loop, NULL);
		futex_wake(&all[i].adopt);
	}
	for (unsigned int i = 0; i < n; i++)
		wait_until_retired(&all[i], most);
	atomic_store(&retiring, RETIRING_LATE);
}

void flexsc__carriers_end(void)
{
	struct carrier *all = flexsc__runtime.carriers;
	unsigned int n;

	flexsc__spares_end();
	n = flexsc__runtime.count;
	for (unsigned int i = 0; i < n; i++) {
		all[i].end.callback = end_asked;
		flexsc_loop_wake(all[i].loop, &all[i].end);
	}
	/* One after the other: they add to "ended_calls". */
	for (unsigned int i = 0; i < n; i++)
		flexsc__own_join(all[i].thread);
	forget_all();
	free(all);
}

void flexsc__carriers_forked(void)
{
	/* Up to "room": the fork may have come while a spare was being made. */
	for (unsigned int i = 0; i < flexsc__runtime.room; i++) {
		close_own(flexsc__runtime.carriers[i].stuck_fd);
		close_own(flexsc__runtime.carriers[i].status_fd);
	}
	forget_all();
}
