/* SPDX-License-Identifier: MIT */
/*
 * Events reach the program: what is delivered and notified of, taking events,
 * waiting, critical sections. Owner only.
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

/* U4. */
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

	/* A handler that forked, in the child. */
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

/* The handler is called for groups that nobody waits for. */
static void deliver_others(struct flexsc_ecb *ecb, uint32_t groups)
{
	if (ecb->handler && control_due(ecb->control) & ~groups &&
	    ecb->control->critical == 1)
		flexsc__critical_handle(ecb);
}

/* Sleep until one of the groups is pending. 1, 0 when it is too late, -errno. */
static int deliver_await(struct flexsc_ecb *ecb, uint32_t groups)
{
	struct flexsc_event_control *control = ecb->control;

	for (;;) {
		uint32_t signals;
		int err;

		/* First: the handler may take time, and wait itself. */
		deliver_others(ecb, groups);
		/* Or fork. */
		if (ecb->stale)
			return -ESTALE;
		if (control_pending(control) & groups)
			return 1;
		if (control->deadline != UINT64_MAX &&
		    time_monotonic() >= control->deadline)
			return 0;
		signals = ecb->signals;
		err = ecb->backend->wait(ecb, groups);
		/* A notification's signal is none of the program's. */
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
	/* Of the wait that called the handler, which calls this. */
	waiting = ecb->control->waiting;
	deadline = ecb->control->deadline;
	ecb->control->deadline = ns < UINT64_MAX - now ? now + ns : UINT64_MAX;
	/* U3 */
	control_say(&ecb->control->waiting, groups);
	ecb->backend->flush(ecb);
	ret = deliver_await(ecb, groups);
	ecb->control->deadline = deadline;
	control_say(&ecb->control->waiting, waiting);
	/* What came behind the last look hasn't ended the wait. */
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
