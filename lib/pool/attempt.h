/* SPDX-License-Identifier: MIT */
/*
 * Calls that may wait for others, made without waiting. Any thread.
 *
 * A call is parked in an epoll set only if it would wait. poll(2) alone doesn't show
 * that: on a descriptor that is open only for writing, read(2) fails at once, though
 * poll(2) reports nothing to read. So the call itself is made, with a flag that keeps it
 * from waiting, where the kernel has one.
 */
#ifndef FLEXSC_ATTEMPT_H
#define FLEXSC_ATTEMPT_H

#include <linux/flexsc.h>
#include <stdbool.h>
#include <stdint.h>

#include "lib/calls/call_info.h"

enum attempt {
	ATTEMPT_DONE,	/* *ret is its result */
	ATTEMPT_PART,	/* *ret is its result, or a part of it */
	ATTEMPT_RUNS,	/* make the call: it won't wait */
	ATTEMPT_WAITS,	/* it would wait, for its descriptor to be ready */
	ATTEMPT_LATE,	/* it would wait, unless it fails at once */
	ATTEMPT_UNKNOWN,	/* it may wait, and no descriptor shows for what */
};

/*
 * Make a call without waiting. woken: the call would have waited before, and the epoll
 * set has reported its descriptor since. Mode switches are counted in the thread:
 * base/ask.h.
 */
enum attempt flexsc__attempt(const struct flexsc_entry *entry,
			     const struct call_info *row, bool woken,
			     int64_t *ret);

#endif /* FLEXSC_ATTEMPT_H */
