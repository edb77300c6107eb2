/* SPDX-License-Identifier: MIT */
/*
 * The interposed functions of clocks and timers, which run on the program's threads. A
 * user thread's processor-time clock includes its time on carriers, unlike the clock of
 * its host: these functions convert between the two (sched/cputime.h).
 */
#include <stdlib.h>
#include <time.h>

#include "lib/base/syscall.h"
#include "runtime/base/interpose.h"
#include "runtime/calls/cpuclock.h"
#include "runtime/sched/host.h"
#include "libc_call.h"

/* Programs read other clocks often, so for those this function adds only one test. */
EXPORT int clock_gettime(clockid_t clock, struct timespec *time)
{
	static __typeof__(&clock_gettime) real;
	const uint64_t args[6] = { (uint64_t)clock, PTR(time) };

	if (__builtin_expect(cpuclock_is_thread_s(clock), 0))
		return (int)flexsc__libc_call(false, SYS_clock_gettime, args);
	if (!real)
		real = REAL(clock_gettime);
	return real(clock, time);
}

/* Enter the runtime, if the calling thread is a user thread outside it. */
static bool clocks_enter(void)
{
	struct uthread *u = &flexsc__self;

	if (!u->alive || u->busy)
		return false;
	flexsc__enter(u);
	return true;
}

static void clocks_exit(void)
{
	flexsc__exit(&flexsc__self);
}

static int32_t clocks_anchor(clockid_t clock)
{
	int32_t tid;

	if (!clocks_enter())
		return 0;
	tid = flexsc__cpuclock_anchor(&flexsc__self, clock);
	clocks_exit();
	return tid;
}

/*
 * Add the timer to the list, and anchor the clock's thread again: it may have become a
 * user thread since the first attempt.
 */
static void note(struct timer *timer, clockid_t clock)
{
	clocks_enter();
	flexsc__timers_add(timer);
	flexsc__cpuclock_anchor(&flexsc__self, clock);
	clocks_exit();
}

static struct timer *timer_alloc(void)
{
	bool enters = clocks_enter();
	struct timer *timer = malloc(sizeof(*timer));

	if (enters)
		clocks_exit();
	return timer;
}

static void timer_free(struct timer *timer)
{
	bool enters = clocks_enter();

	free(timer);
	if (enters)
		clocks_exit();
}

/* If the clock is the caller's own, the caller's host must create the timer. */
EXPORT int timer_create(clockid_t clock, struct sigevent *event, timer_t *id)
{
	struct timer *timer;
	int ret;

	if (!cpuclock_is_thread_s(clock) || !flexsc__self.alive)
		return REAL(timer_create)(clock, event, id);
	timer = timer_alloc();
	if (!timer)
		return -1;
	timer->tid = clocks_anchor(clock);
	ret = REAL(timer_create)(clock, event, id);
	if (ret || !timer->tid) {
		timer_free(timer);
		return ret;
	}
	timer->id = *id;
	note(timer, clock);
	return 0;
}

/*
 * Convert a timer's absolute time to the host's clock. False: the timer isn't on a
 * thread's clock, so leave the time as it is.
 */
static bool convert_to_host(timer_t id, const struct itimerspec *time,
		      struct itimerspec *on_host)
{
	int32_t tid;

	if (!time || !timers_any() || !clocks_enter())
		return false;
	tid = flexsc__timers_tid(id);
	if (tid) {
		*on_host = *time;
		on_host->it_value = flexsc__cpuclock_on_host(tid,
							    time->it_value);
	}
	clocks_exit();
	return tid;
}

EXPORT int timer_settime(timer_t id, int flags, const struct itimerspec *time,
			 struct itimerspec *old)
{
	struct itimerspec on_host;

	if (flags & TIMER_ABSTIME && convert_to_host(id, time, &on_host))
		time = &on_host;
	return REAL(timer_settime)(id, flags, time, old);
}

EXPORT int timer_delete(timer_t id)
{
	if (timers_any() && clocks_enter()) {
		free(flexsc__timers_take(id));
		clocks_exit();
	}
	return REAL(timer_delete)(id);
}
