/* SPDX-License-Identifier: MIT */
/*
 * Calls that may wait for others, made without waiting. Any thread.
 *
 * Such a call is to be left to an epoll set if it would wait, but only then:
 * read(2) of a descriptor that is open for writing fails at once, however long
 * poll(2) says that there is nothing to read. So it is made, and told not to
 * wait, where the kernel has a way to say so.
 */
#ifndef FLEXSC_NOWAIT_H
#define FLEXSC_NOWAIT_H

#include <linux/flexsc.h>
#include <stdbool.h>
#include <stdint.h>

#include "../calls/table.h"

enum nowait {
	NOWAIT_DONE,	/* *ret is its result */
	NOWAIT_PART,	/* *ret is its result, or a part of it */
	NOWAIT_RUNS,	/* make the call: it won't wait */
	NOWAIT_WAITS,	/* it would wait, for its descriptor to be ready */
	NOWAIT_LATE,	/* it would wait, unless it fails at once */
	NOWAIT_UNKNOWN,	/* it may wait, and a descriptor doesn't tell */
};

/*
 * Make a call without waiting. woken: it would have waited before, and poll(2)
 * says that it needn't now. Its mode switches are the thread's: calls/ask.h.
 */
enum nowait flexsc__nowait(const struct flexsc_entry *entry,
			   const struct table_row *row, bool woken,
			   int64_t *ret);

#endif /* FLEXSC_NOWAIT_H */
