/* SPDX-License-Identifier: MIT */
/*
 * Calls that close descriptors, or shut sockets down, which calls of any loop
 * of the process may wait for. A thread that makes one calls these functions before and
 * after it:
 *
 *	begin	calls that wait go on with a copy: guard.h. Not if the call will fail
 *	(the call)
 *	end	if the call worked, entries that still wait are tried again. One that
 *		began to wait between begin and end returns -EBADF, as if it had been
 *		posted after the close. One on a socket that was shut down returns
 *		what shutdown() causes, because poll(2) doesn't report that
 *
 * Any thread. A descriptor that no entry waits for costs a look at its facts. A
 * descriptor that is closed otherwise, as by a plain close(), takes its
 * registration in the pool's epoll set along: entries that wait for it wait on.
 */
#ifndef FLEXSC_CLOSING_H
#define FLEXSC_CLOSING_H

#include <linux/flexsc.h>
#include <stdbool.h>
#include <stdint.h>

#include "plan.h"

/*
 * Does the call close a descriptor or shut a socket down? Any thread that has a
 * loop, or has called flexsc__plan_init().
 */
static inline bool closes(const struct flexsc_entry *entry)
{
	return flexsc__plan_uses[entry->nr] & EFFECT_CLOSES;
}

void flexsc__closing_begin(const struct flexsc_entry *entry);
/* The call has returned that. */
void flexsc__closing_end(const struct flexsc_entry *entry, int64_t ret);

/* The same for a caller that may be cancelled in between: guard.h, G3. */
void flexsc__closing_begin_alone(const struct flexsc_entry *entry);
void flexsc__closing_end_alone(const struct flexsc_entry *entry, int64_t ret);

#endif /* FLEXSC_CLOSING_H */
