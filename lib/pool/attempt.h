/* SPDX-License-Identifier: MIT */
/*
 * Attempts calls that may wait, without waiting. Any thread.
 *
 * A call is parked in an epoll set only if it would wait. poll(2) alone doesn't show
 * that: a read(2) of a descriptor opened only for writing fails at once, but poll(2)
 * reports nothing to read. So the call itself is attempted, with a flag that keeps it
 * from waiting, if the kernel has such a flag.
 */
#ifndef FLEXSC_ATTEMPT_H
#define FLEXSC_ATTEMPT_H

#include <linux/flexsc.h>
#include <stdbool.h>
#include <stdint.h>

#include "lib/calls/call_info.h"

enum attempt {
	ATTEMPT_DONE,	/* *ret is the result */
	ATTEMPT_PART,	/* *ret is the result of the call, or of its first part */
	ATTEMPT_RUNS,	/* make the call: it won't wait */
	ATTEMPT_WAITS,	/* the call would wait until its descriptor is ready */
	ATTEMPT_LATE,	/* the call would wait, unless it fails at once: park it
			 * only if threads are scarce */
	ATTEMPT_UNKNOWN,	/* the call may wait for something that poll(2)
				 * doesn't report */
};

/*
 * Was the call's TCP connection reset? If the call has sent a part, it must end with
 * that part, and the program's next call gets the error. An attempt of the remainder
 * would consume the error: then the next call would get EPIPE and SIGPIPE.
 */
bool flexsc__attempt_was_reset(const struct flexsc_entry *entry);

/*
 * Attempt a call without waiting. "woken": the call would have waited before, and the
 * epoll set has reported its descriptor since. Counts mode switches for the thread:
 * base/ask.h.
 */
enum attempt flexsc__attempt(const struct flexsc_entry *entry,
			     const struct call_info *row, bool woken,
			     int64_t *ret);

#endif /* FLEXSC_ATTEMPT_H */
