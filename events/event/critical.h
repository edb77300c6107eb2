/* SPDX-License-Identifier: MIT */
/*
 * Critical sections: while "critical" isn't zero, the handler isn't called. The
 * library's functions that change an ECB are critical sections, too.
 *
 *	0 -> 1	the owner enters one, or is made to enter the handler
 *	n -> n+1, n+1 -> n	sections nest
 *	1 -> 0	the owner leaves (U3), then checks whether events are due; if
 *		so, 0 -> 1 for the handler, and so on
 *
 * Owner only. The handler may interrupt the owner wherever "critical" is zero. When the
 * handler returns, "critical" is zero again.
 */
#ifndef FLEXSC_EVENTS_CRITICAL_H
#define FLEXSC_EVENTS_CRITICAL_H

#include "ecb.h"

static inline void critical_enter(struct flexsc_ecb *ecb)
{
	uint32_t *critical = &ecb->control->critical;

	__atomic_store_n(critical,
			 __atomic_load_n(critical, __ATOMIC_RELAXED) + 1,
			 __ATOMIC_RELAXED);
	/*
	 * A compiler barrier, because the kernel may interrupt this thread at any
	 * instruction.
	 */
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
}

void flexsc__critical_leave(struct flexsc_ecb *ecb);
/*
 * As flexsc__critical_leave(), but without calling the handler if only these groups are
 * due.
 */
void flexsc__critical_leave_but(struct flexsc_ecb *ecb, uint32_t except);

/* Call the handler for the groups that are due, inside a critical section. */
void flexsc__critical_handle(struct flexsc_ecb *ecb);

#endif /* FLEXSC_EVENTS_CRITICAL_H */
