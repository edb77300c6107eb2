/* SPDX-License-Identifier: MIT */
/*
 * The program's interface to events: delivery and notification, taking events, waiting,
 * critical sections. Owner only.
 */
#include <errno.h>
#include <flexsc/ecb.h>

#include "lib/base/clock.h"
#include "events/event/backend.h"
#include "events/event/critical.h"
#include "events/event/take.h"
#include "owner.h"

struct flexsc_event_control *flexsc_ecb_control(struct flexsc_ecb *ecb)
{
	return ecb ? ecb->control : NULL;
}

int flexsc_ecb_flush(struct flexsc_ecb *ecb)
{
	int err = flexsc__ecb_check(ecb);

	if (err)
		return err;
	critical_enter(ecb);
	err = ecb->backend->flush(ecb);
	flexsc__critical_leave(ecb);
	return err;
}

/* Store to "notify" or "deliver", then flush held events: U4. */
static int deliver_say(struct flexsc_ecb *ecb, uint32_t *word, uint32_t groups)
{
	control_say(word, groups);
	return flexsc_ecb_flush(ecb);
}

int flexsc_ecb_deliver(struct flexsc_ecb *ecb, uint32_t groups)
{
	int err = flexsc__ecb_check(ecb);

	return err ? err : deliver_say(ecb, &ecb->control->deliver, groups);
}

int flexsc_ecb_notify(struct flexsc_ecb *ecb, uint32_t groups)
{
	int err = flexsc__ecb_check(ecb);

	if (err)
		return err;
	if (groups && (!ecb->handler || ecb->flags & FLEXSC_ECB_BATCHED))
		return -EINVAL;
	return deliver_say(ecb, &ecb->control->notify, groups);
}

int flexsc_ecb_next(struct flexsc_ecb *ecb, uint32_t groups,
		    struct flexsc_ecb_event *event)
{
	bool any;

	/* The handler has forked, and this is the child: it has no ECB. */
	if (ecb->stale)
		return 0;
	flexsc__ecb_rule(ecb);
	critical_enter(ecb);
	if (ecb->backend->stirs && ecb->backend->stirs(ecb))
		ecb->backend->collect(ecb);
	any = flexsc__take(ecb, groups, event);
	flexsc__critical_leave(ecb);
	return any;
}

/* Call the handler for groups that the owner doesn't wait for. */
static void deliver_others(struct flexsc_ecb *ecb, uint32_t groups)
{
	if (ecb->handler && control_due(ecb->control) & ~groups &&
	    ecb->control->critical == 1)
		flexsc__critical_handle(ecb);
}

/* Sleep until a group is pending (1) or the deadline is over (0); or return -errno. */
static int deliver_await(struct flexsc_ecb *ecb, uint32_t groups)
{
	struct flexsc_event_control *control = ecb->control;

	for (;;) {
		uint32_t signals;
		int err;

		/*
		 * Call the handler before the checks below, because it may take
		 * time, and may itself wait.
		 */
		deliver_others(ecb, groups);
		/*
		 * The handler may have forked, so the caller may be the child, which
		 * has no ECB.
		 */
		if (ecb->stale)
			return -ESTALE;
		if (control_pending(control) & groups)
			return 1;
		if (control->deadline != UINT64_MAX &&
		    time_monotonic() >= control->deadline)
			return 0;
		signals = ecb->signals;
		err = ecb->backend->wait(ecb, groups);
		/*
		 * Don't end the program's wait because of a signal that was only a
		 * notification.
		 */
		if (err == -EINTR && ecb->signals != signals)
			err = 0;
		if (err)
			return control_pending(control) & groups ? 1 : err;
	}
}

int flexsc_ecb_wait(struct flexsc_ecb *ecb, uint32_t groups, uint64_t ns)
{
	uint64_t now = time_monotonic(), deadline;
	int ret = flexsc__ecb_check(ecb);
	uint32_t waiting;

	if (ret)
		return ret;
	if (!groups)
		return -EINVAL;
	critical_enter(ecb);
	/*
	 * Save "waiting" and "deadline" for an outer wait, whose handler may have
	 * called this function.
	 */
	waiting = ecb->control->waiting;
	deadline = ecb->control->deadline;
	ecb->control->deadline = ns < UINT64_MAX - now ? now + ns : UINT64_MAX;
	/* U3 */
	control_say(&ecb->control->waiting, groups);
	ecb->backend->flush(ecb);
	ret = deliver_await(ecb, groups);
	ecb->control->deadline = deadline;
	control_say(&ecb->control->waiting, waiting);
	/*
	 * If the wait has failed or timed out, events of these groups may have arrived
	 * since its last check: call the handler for these events, too.
	 */
	flexsc__critical_leave_but(ecb, ret > 0 ? groups : 0);
	return ret;
}

void flexsc_ecb_critical_begin(struct flexsc_ecb *ecb)
{
	flexsc__ecb_rule(ecb);
	critical_enter(ecb);
}

void flexsc_ecb_critical_end(struct flexsc_ecb *ecb)
{
	flexsc__ecb_rule(ecb);
	flexsc__critical_leave(ecb);
}
