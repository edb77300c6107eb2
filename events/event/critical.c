/* SPDX-License-Identifier: MIT */
#include "critical.h"

#include <errno.h>

#include "lib/base/checks.h"
#include "backend.h"
#include "stack.h"

static void critical_call(struct flexsc_ecb *ecb)
{
	ecb->handler(ecb, ecb->arg);
}

void flexsc__critical_handle(struct flexsc_ecb *ecb)
{
	int err = errno;

	RULE(ecb->control->critical == 1);
	RULE(!ecb->handling);
	ecb->handling = true;
	flexsc__stack_run(ecb, critical_call);
	ecb->handling = false;
	errno = err;
	RULE(ecb->stale || ecb->control->critical == 1);
}

/*
 * If SIGURG arrived in the critical section, collect the events that it announced,
 * which puts them on their groups' lists.
 */
static bool critical_unmask(struct flexsc_ecb *ecb)
{
	if (!ecb->masked)
		return false;
	ecb->masked = false;
	if (ecb->backend->collect)
		ecb->backend->collect(ecb);
	return true;
}

/* Does the handler have to be called for groups other than "except"? */
static bool critical_due(const struct flexsc_ecb *ecb, uint32_t except)
{
	return ecb->handler && !ecb->stale &&
	       control_due(ecb->control) & ~except;
}

/* End the outermost section. Returns when no event is due. */
static void critical_end(struct flexsc_ecb *ecb, uint32_t except)
{
	bool unmask = false;

	for (;;) {
		control_say(&ecb->control->critical, 0);
		if (!ecb->masked && !critical_due(ecb, except))
			break;
		critical_enter(ecb);
		unmask |= critical_unmask(ecb);
		if (critical_due(ecb, except))
			flexsc__critical_handle(ecb);
	}
	if (unmask)
		ecb->backend->unmask(ecb);
}

/* End a section without calling the handler. */
static void critical_step(struct flexsc_ecb *ecb)
{
	uint32_t *critical = &ecb->control->critical;
	uint32_t sections = __atomic_load_n(critical, __ATOMIC_RELAXED);

	RULE(sections);
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	__atomic_store_n(critical, sections - 1, __ATOMIC_RELEASE);
}

/*
 * Repair the state after a longjmp() out of a handler. Called when the program, instead
 * of the library, ends the critical section in which the handler ran. The jump may also
 * have left SIGURG's handler, a wait, or the end of a section in which SIGURG arrived.
 */
static void critical_jumped(struct flexsc_ecb *ecb)
{
	ecb->handling = false;
	ecb->masked = true;
	control_say(&ecb->control->waiting, 0);
}

void flexsc__critical_leave_but(struct flexsc_ecb *ecb, uint32_t except)
{
	const struct flexsc_event_control *control = ecb->control;

	if (ecb->handling &&
	    __atomic_load_n(&control->critical, __ATOMIC_RELAXED) == 1)
		critical_jumped(ecb);

	/*
	 * If "notify" is zero, no event requires the handler, so SIGURG may stay
	 * blocked.
	 */
	if (__atomic_load_n(&control->critical, __ATOMIC_RELAXED) > 1 ||
	    !__atomic_load_n(&control->notify, __ATOMIC_RELAXED))
		critical_step(ecb);
	else
		critical_end(ecb, except);
}

void flexsc__critical_leave(struct flexsc_ecb *ecb)
{
	flexsc__critical_leave_but(ecb, 0);
}
