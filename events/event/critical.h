/* SPDX-License-Identifier: MIT */
/*
 * Critical sections: while "critical" isn't zero the handler isn't called. The
 * functions of the library that change an ECB are critical sections, too.
 *
 *	0 -> 1	the owner enters one, or is made to enter the handler
 *	n -> n+1, n+1 -> n	sections nest
 *	1 -> 0	the owner leaves (U3), then looks at what is due; if something
 *		is, 0 -> 1 for the handler, and so on
 *
 * Owner only. The owner may be interrupted by a call of its own handler wherever
 * "critical" is zero; the word is zero again when that returns.
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
	/* Against the compiler: the kernel stops this thread anywhere. */
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
}

void flexsc__critical_leave(struct flexsc_ecb *ecb);
/* ... without a call of the handler for these groups alone. */
void flexsc__critical_leave_but(struct flexsc_ecb *ecb, uint32_t except);

/* Call the handler, inside of a critical section, for what is due. */
void flexsc__critical_handle(struct flexsc_ecb *ecb);

#endif /* FLEXSC_EVENTS_CRITICAL_H */
