/* SPDX-License-Identifier: MIT */
#include "rings.h"

#include "lib/calls/call_info.h"
#include "runtime/base/peek.h"
#include "perform.h"

#ifndef IORING_SETUP_REGISTERED_FD_ONLY
#define IORING_SETUP_REGISTERED_FD_ONLY		(1U << 15)
#endif

/* liburing's bit of io_uring.int_flags: the thread has registered the descriptor. */
#define INT_FLAG_REG_RING	1

#define OWNED								\
	(IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_DEFER_TASKRUN |	\
	 IORING_SETUP_COOP_TASKRUN | IORING_SETUP_REGISTERED_FD_ONLY)

bool flexsc__ring_is_owned(const struct io_uring *ring)
{
	return ring->flags & OWNED || ring->int_flags & INT_FLAG_REG_RING;
}

bool flexsc__ring_call_is_owned(long nr, const uint64_t a[6])
{
	const struct io_uring_params *params = flexsc__arg_pointer(a[1]);
	const enum call_apart apart = (enum call_apart)
		call_info_of((unsigned int)nr, (const __u64 *)a)->apart;

	if (apart != APART_RING)
		return apart == APART_ANCHORED;
	return peek_can_read(a[1], sizeof(*params)) && params->flags & OWNED;
}
