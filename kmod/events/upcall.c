// SPDX-License-Identifier: GPL-2.0-only
/*
 * Notification: makes the owner of an ECB call its handler: by an upcall, or by
 * a signal where an upcall isn't possible.
 */
#include <linux/sched/signal.h>

#include "events/ecb.h"
#include "events/upcall.h"

/* Is an event pending for which the owner has requested a notification? */
static bool upcall_wanted(const struct flexsc_event_control *control)
{
	return READ_ONCE(control->notify) & READ_ONCE(control->pending) &&
	       !READ_ONCE(control->critical);
}

/*
 * Notify the owner. Called by the owner's task work: in its own process,
 * without locks, on the way to user mode. Not called when the owner is ending.
 */
void upcall_notify(struct ecb *ecb)
{
	if (upcall_wanted(ecb->control) && !upcall_enter(ecb))
		send_sig_info(SIGURG, SEND_SIG_PRIV, current);
}
