// SPDX-License-Identifier: GPL-2.0-only
/*
 * Notification: the owner of an ECB is made to call its handler, by an upcall or,
 * where that isn't possible, by a signal.
 */
#include <linux/sched/signal.h>

#include "events/ecb.h"
#include "events/upcall.h"

/* Is there an event that the owner wants to be called for now? */
static bool upcall_wanted(const struct flexsc_event_control *control)
{
	return READ_ONCE(control->notify) & READ_ONCE(control->pending) &&
	       !READ_ONCE(control->critical);
}

/*
 * Called by the owner's task work: in the owner's context and its own process,
 * with no lock, on the way to user mode; not by an owner that is ending.
 */
void upcall_notify(struct ecb *ecb)
{
	if (upcall_wanted(ecb->control) && !upcall_enter(ecb))
		send_sig_info(SIGURG, SEND_SIG_PRIV, current);
}
