/* SPDX-License-Identifier: MIT */
/*
 * Calls that close descriptors or shut sockets down, while calls of any loop of the
 * process may be waiting for them. The thread that makes such a call brackets it:
 *
 *	begin	waiting calls switch to a duplicate (guard.h), unless the call is
 *		going to fail
 *	(the call)
 *	end	if the call succeeded, entries that still wait are attempted again.
 *		An entry that began to wait between begin and end returns -EBADF, as
 *		if it had been posted after the close. After shutdown(), the calls of
 *		entries are made even if poll(2) doesn't report the socket ready
 *
 * Any thread. A shutdown is always bracketed. A close is bracketed only if an entry may
 * be waiting for the descriptor: otherwise the cost is a load of its facts. If a
 * descriptor is closed in another way, such as by a plain close(), it leaves the pool's
 * epoll set silently: entries that wait for it continue to wait. So do entries that wait
 * to send on a full local socket, if another descriptor of the socket is shut down.
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
/* Called when the call has returned "ret". */
void flexsc__closing_end(const struct flexsc_entry *entry, int64_t ret);

/*
 * Begin and end without counting the close (guard.h, G3), for a thread that may be
 * cancelled in between: the count would then stay too high.
 */
void flexsc__closing_begin_alone(const struct flexsc_entry *entry);
void flexsc__closing_end_alone(const struct flexsc_entry *entry, int64_t ret);

#endif /* FLEXSC_CLOSING_H */
