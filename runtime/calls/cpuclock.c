/* SPDX-License-Identifier: MIT */
#include "cpuclock.h"

#include <errno.h>
#include <string.h>
#include <sys/resource.h>

#include "lib/base/clock.h"
#include "lib/base/futex.h"
#include "runtime/base/peek.h"
#include "runtime/sched/anchored.h"
#include "runtime/sched/cputime.h"
#include "runtime/sched/state.h"
#include "runtime/sched/uthreads.h"
#include "perform.h"

/*
 * flexsc__cputime_look() may reduce u's processor time, but a thread's clock must never
 * go back. So return at least the highest time that any thread has read from u's clock.
 */
static uint64_t show_clock(struct uthread *u, uint64_t ns)
{
	uint64_t clock_shown = atomic_load(&u->clock_shown);

	while (clock_shown < ns)
		if (atomic_compare_exchange_weak(&u->clock_shown, &clock_shown, ns))
			return ns;
	return clock_shown;
}

/*
 * User threads that have ended. Their kernel threads may still run, because glibc calls
 * destructors afterwards. Accessed with the list of user threads locked. The index is
 * the thread id modulo ENDED; of threads with the same index, the last one is kept.
 */
#define ENDED		256U

static struct ended {
	int32_t tid;
	uint64_t host;	/* processor time of its host when it ended, in ns */
	uint64_t ran;	/* ticks that it has computed on carriers */
	uint64_t clock_shown;	/* highest time that its clock had shown, in ns */
} ended[ENDED];

static struct ended *ended_with(int32_t tid)
{
	return &ended[(uint32_t)tid % ENDED];
}

/*
 * The processor time that the ended user thread with this id took on carriers, in ns; 0
 * if unknown. The kernel may have given the id to a new thread. The result is 0 while
 * that thread has taken less processor time than the ended thread's host. After that,
 * the two can't be distinguished.
 */
static uint64_t ended_away(int32_t tid)
{
	const struct ended *last = ended_with(tid);
	/* If "host" is 0, the kernel thread with this id, the host, has ended, too. */
	uint64_t host = flexsc__cputime_of(tid);

	return last->tid == tid && (!host || host >= last->host) ?
		       flexsc__cputime_ns(last->ran) : 0;
}

static bool ended_time(int32_t tid, uint64_t host_ns, uint64_t *ns)
{
	const struct ended *last = ended_with(tid);
	uint64_t away = ended_away(tid);

	if (!away)
		return false;
	*ns = host_ns + away;
	if (*ns < last->clock_shown)
		*ns = last->clock_shown;
	return true;
}

void flexsc__cpuclock_end(const struct uthread *u)
{
	struct ended last = { .tid = u->host.k.tid, .ran = u->ran };

	if (filter_is_near(u))
		return;
	last.host = flexsc__cputime_of(last.tid);
	flexsc__uthreads_lock();
	last.clock_shown = atomic_load(&u->clock_shown);
	*ended_with(last.tid) = last;
	flexsc__uthreads_unlock();
}

static int32_t tid_of(const struct uthread *self, clockid_t clock)
{
	int32_t tid = clock == CLOCK_THREAD_CPUTIME_ID ? 0 : ~(clock >> 3);

	return tid || !self ? tid : self->host.k.tid;
}

/*
 * Compute the processor time that user thread "tid" has taken on its host and on
 * carriers. False if the id belongs neither to a user thread nor to an ended one.
 */
static bool find_time(struct uthread *self, int32_t tid, uint64_t host_ns,
		       uint64_t *ns)
{
	struct uthread *u;
	bool found = true;

	if (self && self->host.k.tid == tid) {
		*ns = show_clock(self, host_ns + flexsc__cputime_own(self));
		return true;
	}
	flexsc__uthreads_lock();
	u = flexsc__uthread_with(tid);
	if (u)
		*ns = show_clock(u, host_ns + flexsc__cputime_other(u));
	else
		found = ended_time(tid, host_ns, ns);
	flexsc__uthreads_unlock();
	return found;
}

long flexsc__cpuclock_get(struct uthread *u, const uint64_t args[6])
{
	clockid_t clock = (clockid_t)args[0];
	struct timespec *time = (struct timespec *)(uintptr_t)args[1];
	uint64_t ns;
	int32_t tid;
	long ret;

	if (!cpuclock_is_thread_s(clock) || !runtime_runs())
		return flexsc__perform_plainly(SYS_clock_gettime, args);
	tid = tid_of(u, clock);
	if (tid)
		clock = (clockid_t)(~(uint32_t)tid << 3) |
			(clock < 0 ? clock & 7 : 6);
	ret = raw_syscall(SYS_clock_gettime, (uint64_t)clock, args[1], 0, 0, 0,
			  0);
	if (!ret && tid && find_time(u, tid, time_ns(time), &ns))
		*time = (struct timespec){ (time_t)(ns / SECOND),
					   (long)(ns % SECOND) };
	return ret;
}

long flexsc__cpuclock_usage(struct uthread *u, const uint64_t args[6])
{
	struct rusage *usage = (struct rusage *)(uintptr_t)args[1];
	uint64_t us;
	long ret;

	if ((int)args[0] != RUSAGE_THREAD)
		return flexsc__perform_plainly(SYS_getrusage, args);
	ret = flexsc__perform_go_to_host(u, SYS_getrusage, args);
	if (ret)
		return ret;
	us = flexsc__cputime_before(u) / 1000 + (uint64_t)usage->ru_utime.tv_usec;
	usage->ru_utime.tv_sec += (time_t)(us / 1000000);
	usage->ru_utime.tv_usec = (suseconds_t)(us % 1000000);
	return 0;
}

/* Timers. */

static void cpuclock_anchor(int32_t tid, bool anchored)
{
	struct uthread *u;

	flexsc__uthreads_lock();
	u = flexsc__uthread_with(tid);
	if (u)
		flexsc__anchor(u, ANCHORED_CLOCK, anchored);
	flexsc__uthreads_unlock();
}

/* The list of all timers. Without the lock, it is only tested for being empty. */
_Atomic(struct timer *) flexsc__timers;
static struct lock timers_lock;

static struct timer *first(void)
{
	return atomic_load_explicit(&flexsc__timers, memory_order_relaxed);
}

static void set_first(struct timer *timer)
{
	atomic_store_explicit(&flexsc__timers, timer, memory_order_relaxed);
}

void flexsc__timers_add(struct timer *timer)
{
	lock(&timers_lock);
	timer->next = first();
	set_first(timer);
	unlock(&timers_lock);
}

int32_t flexsc__timers_tid(timer_t id)
{
	const struct timer *timer;
	int32_t tid;

	lock(&timers_lock);
	for (timer = first(); timer && timer->id != id; timer = timer->next)
		;
	tid = timer ? timer->tid : 0;
	unlock(&timers_lock);
	return tid;
}

static bool timers_on(int32_t tid)
{
	const struct timer *timer;

	if (!timers_any())
		return false;
	lock(&timers_lock);
	for (timer = first(); timer && timer->tid != tid; timer = timer->next)
		;
	unlock(&timers_lock);
	return timer;
}

static struct timer *unlink_one(timer_t id)
{
	struct timer *timer = first(), *before = NULL;

	for (; timer && timer->id != id; timer = timer->next)
		before = timer;
	if (timer && before)
		before->next = timer->next;
	else if (timer)
		set_first(timer->next);
	return timer;
}

struct timer *flexsc__timers_take(timer_t id)
{
	struct timer *timer, *same = NULL;

	lock(&timers_lock);
	timer = unlink_one(id);
	if (timer)
		for (same = first(); same && same->tid != timer->tid;)
			same = same->next;
	/* If its clock has no other timer, the thread may leave its host again. */
	if (timer && !same)
		cpuclock_anchor(timer->tid, false);
	unlock(&timers_lock);
	return timer;
}

void flexsc__cpuclock_forked(void)
{
	memset(ended, 0, sizeof(ended));
	set_first(NULL);
	timers_lock = (struct lock){ 0 };
}

void flexsc__cpuclock_begin(struct uthread *u)
{
	if (timers_on(u->host.k.tid))
		cpuclock_anchor(u->host.k.tid, true);
}

int32_t flexsc__cpuclock_anchor(struct uthread *u, clockid_t clock)
{
	int32_t tid;

	if (!cpuclock_is_thread_s(clock))
		return 0;
	tid = tid_of(u, clock);
	cpuclock_anchor(tid, true);
	flexsc__anchored_settle(u, tid);
	return tid;
}

struct timespec flexsc__cpuclock_on_host(int32_t tid, struct timespec time)
{
	const struct uthread *u;
	uint64_t ns = 0, away;

	flexsc__uthreads_lock();
	u = flexsc__uthread_with(tid);
	away = u ? flexsc__cputime_before(u) : ended_away(tid);
	flexsc__uthreads_unlock();
	if (time_valid(&time))
		ns = time_ns(&time);
	if (!ns || !away)
		return time;
	/* A time in the past must not become 0, which would disarm a timer. */
	ns = ns > away ? ns - away : 1;
	return (struct timespec){ (time_t)(ns / SECOND), (long)(ns % SECOND) };
}

/*
 * Sleep by a thread's clock. Afterwards the clock's thread stays anchored for good,
 * because other threads may still sleep by the same clock.
 */
long flexsc__cpuclock_sleep(struct uthread *u, const uint64_t args[6])
{
	clockid_t clock = (clockid_t)args[0];
	uint64_t changed[6] = { args[0], args[1], args[2], args[3] };
	struct timespec time;
	int32_t tid = 0;

	if (tid_of(u, clock) != u->host.k.tid)
		tid = flexsc__cpuclock_anchor(u, clock);
	if (tid && args[1] & TIMER_ABSTIME &&
	    peek_can_read(args[2], sizeof(time))) {
		time = flexsc__cpuclock_on_host(
			tid, *(struct timespec *)(uintptr_t)args[2]);
		changed[2] = PTR(&time);
	}
	return flexsc__perform_go_to_host(u, SYS_clock_nanosleep, changed);
}
