// SPDX-License-Identifier: GPL-2.0-only
/*
 * Notification: makes the owner of an ECB call its handler, by an upcall or,
 * where that isn't possible, by a signal.
 */
#include <linux/sched/signal.h>

#include "events/ecb.h"
#include "events/upcall.h"

/* Is an event pending that the owner wants to be notified of? */
static bool upcall_wanted(const struct flexsc_event_control *control)
{
	return READ_ONCE(control->notify) & READ_ONCE(control->pending) &&
	       !READ_ONCE(control->critical);
}

/*
 * Notify the owner. Called by its task work: in the owner's context and its own
 * process, without locks, on the way to user mode. Not called when the owner is
 * ending.
 */
void upcall_notify(struct ecb *ecb)
{
	if (upcall_wanted(ecb->control) && !upcall_enter(ecb))
		send_sig_info(SIGURG, SEND_SIG_PRIV, current);
}
