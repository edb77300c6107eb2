/* SPDX-License-Identifier: MIT */
/* Checks whether the calling thread owns an ECB. Any thread. */
#ifndef FLEXSC_EVENTS_OWNER_H
#define FLEXSC_EVENTS_OWNER_H

#include <errno.h>

#include "lib/base/checks.h"
#include "events/event/ecb.h"

/* May the calling thread use the ECB? 0 or -errno. */
static inline int flexsc__ecb_check(const struct flexsc_ecb *ecb)
{
	if (!ecb)
		return -EINVAL;
	if (ecb->stale)
		return -ESTALE;
	return ecb == flexsc__ecb_self ? 0 : -EPERM;
}

/* flexsc__ecb_check() for fast functions: only in builds with -Dchecks. */
static inline void flexsc__ecb_rule(const struct flexsc_ecb *ecb)
{
	RULE(!flexsc__ecb_check(ecb));
}

#endif /* FLEXSC_EVENTS_OWNER_H */
