/* SPDX-License-Identifier: MIT */
/*
 * rt_sigtimedwait(2), for sigwaitinfo() and sigtimedwait(). User threads only.
 *
 * A host may wait for a signal to the process that arrives at a carrier instead. The
 * carrier then sends the signal to the process again. That ends the host's wait with
 * EINTR although no handler ran, so the wait is repeated here.
 */
#include "calls.h"

#include <errno.h>
#include <time.h>

#include "lib/base/clock.h"
#include "runtime/base/peek.h"
#include "perform.h"

/*
 * The time limit. NULL if the call has none, or an invalid one, which the kernel will
 * refuse.
 */
static const struct timespec *sigwait_limit(const uint64_t a[6])
{
	const struct timespec *limit = flexsc__arg_pointer(a[2]);

	if (!limit || !peek_can_read(a[2], sizeof(*limit)) ||
	    !time_valid(limit))
		return NULL;
	return limit;
}

long flexsc__sigwait(struct uthread *u, const uint64_t a[6])
{
	const struct timespec *limit = sigwait_limit(a);
	uint64_t args[6] = { a[0], a[1], a[2], a[3] };
	uint64_t until = 0, now;
	struct timespec left;
	long ret;

	if (limit)
		until = time_monotonic() + time_ns(limit);
	for (;;) {
		ret = flexsc__perform_wait_on_host(u, SYS_rt_sigtimedwait, args);
		if (ret != -EINTR || u->handled)
			return ret;
		if (!limit)
			continue;
		now = time_monotonic();
		now = now < until ? until - now : 0;
		left = (struct timespec){ (time_t)(now / SECOND),
					  (long)(now % SECOND) };
		args[2] = PTR(&left);
	}
}
