/* SPDX-License-Identifier: MIT */
#include "identity.h"

#include <stdatomic.h>

#include "../run/carrier.h"
#include "../run/state.h"

#define LOOK_NS	50000
/*
 * How often a home looks, at all carriers together. The number is limited
 * because two threads may change users at a time: both calls are counted, but
 * libc begins the second only when all threads have done the first.
 */
#define LOOKS	100

/* Number of calls that have begun. */
static _Atomic uint32_t calls;

void flexsc__identity_begin(void)
{
	atomic_fetch_add(&calls, 1);
}

void flexsc__identity_changed(struct carrier *c)
{
	/* N1: after this carrier has changed; pairs with N2. */
	atomic_store(&c->changed, atomic_load(&calls));
}

void flexsc__identity_await(void)
{
	const struct timespec moment = { 0, LOOK_NS };
	uint32_t now = atomic_load(&calls);
	int looks = 0;

	for (unsigned int i = 0; i < flexsc__runtime.count; i++)
		/*
		 * N2: before this home changes; pairs with N1. A call that
		 * failed is counted, although no carrier gets a signal for it.
		 */
		while ((int32_t)(now - atomic_load(
				 &flexsc__runtime.carriers[i].changed)) > 0 &&
		       looks++ < LOOKS)
			raw_syscall(SYS_nanosleep, PTR(&moment), 0, 0, 0, 0, 0);
}
