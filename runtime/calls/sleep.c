/* SPDX-License-Identifier: MIT */
/*
 * nanosleep(2) and clock_nanosleep(2): a sleeping user thread waits for a timer of the
 * carrier's loop. User threads only, inside the runtime. The functions return the
 * kernel's result.
 */
#include "calls.h"

#include <errno.h>
#include <stdbool.h>
#include <time.h>

#include "lib/base/clock.h"
#include "runtime/base/peek.h"
#include "runtime/sched/host.h"
#include "runtime/sched/sticky.h"
#include "runtime/sched/wait.h"
#include "cpuclock.h"
#include "perform.h"

/*
 * Sleep until the time "until" or a signal. The user thread sleeps in the kernel if it
 * stays on its host, or if there is no memory for a timer.
 */
static void sleep_once(struct uthread *u, clockid_t clock, uint64_t until,
		       uint64_t time)
{
	const struct timespec limit = { (time_t)(until / SECOND),
					(long)(until % SECOND) };
	const uint64_t args[6] = { (uint64_t)clock, TIMER_ABSTIME, PTR(&limit) };

	if (flexsc__stays(u))
		flexsc__perform_on_host(u, SYS_clock_nanosleep, args);
	else if (flexsc__wait_time(u, until - time) == -ENOMEM)
		flexsc__perform_go_to_host(u, SYS_clock_nanosleep, args);
}

/*
 * Sleep until a time of this clock. Returns the remaining ns if a signal came,
 * otherwise 0.
 */
static uint64_t sleep_until(struct uthread *u, clockid_t clock, uint64_t until)
{
	uint64_t time = time_now(clock);

	while (time < until) {
		sleep_once(u, clock, until, time);
		time = time_now(clock);
		if (time < until && flexsc__perform_handled(u))
			break;
	}
	return time < until ? until - time : 0;
}

static long make(struct uthread *u, long nr, const uint64_t a[6],
		 clockid_t clock, bool absolute, const struct timespec *time,
		 struct timespec *rest)
{
	uint64_t left;

	if (cpuclock_is_thread_s(clock))
		return flexsc__cpuclock_sleep(u, a);
	if (flexsc__stays(u) || sticky_take(u) ||
	    (clock != CLOCK_REALTIME && clock != CLOCK_MONOTONIC))
		return flexsc__perform_wait_on_host(u, nr, a);
	if (!peek_can_read(PTR(time), sizeof(*time)))
		return -EFAULT;
	if (!time_valid(time))
		return -EINVAL;
	/* A relative sleep uses a clock that can't be set, so its length is fixed. */
	if (absolute)
		left = sleep_until(u, clock, time_ns(time));
	else
		left = sleep_until(u, CLOCK_MONOTONIC,
				   time_monotonic() + time_ns(time));
	u->way = WAY_SLEPT;
	if (!left)
		return 0;
	if (absolute || !rest)
		return -EINTR;
	if (!peek_can_read(PTR(rest), sizeof(*rest)))
		return -EFAULT;
	*rest = (struct timespec){ (time_t)(left / SECOND),
				   (long)(left % SECOND) };
	return -EINTR;
}

long flexsc__sleep_nanosleep(struct uthread *u, long nr, const uint64_t a[6])
{
	return make(u, nr, a, CLOCK_MONOTONIC, false,
		    flexsc__arg_pointer(a[0]),
		    (struct timespec *)(uintptr_t)a[1]);
}

long flexsc__sleep_clock(struct uthread *u, long nr,
				 const uint64_t a[6])
{
	return make(u, nr, a, (clockid_t)a[0], a[1] & TIMER_ABSTIME,
		    flexsc__arg_pointer(a[2]),
		    (struct timespec *)(uintptr_t)a[3]);
}
