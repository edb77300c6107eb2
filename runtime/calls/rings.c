/* SPDX-License-Identifier: MIT */
#include "rings.h"

#include <sys/syscall.h>

#include "runtime/base/peek.h"
#include "call.h"

#ifndef IORING_SETUP_REGISTERED_FD_ONLY
#define IORING_SETUP_REGISTERED_FD_ONLY		(1U << 15)
#endif
#ifndef IORING_REGISTER_USE_REGISTERED_RING
#define IORING_REGISTER_USE_REGISTERED_RING	(1U << 31)
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
	const struct io_uring_params *params;
	/* The kernel ignores the upper half of this argument. */
	const uint32_t operation = (uint32_t)a[1];

	switch (nr) {
	case SYS_io_uring_setup:
		params = flexsc__arg_pointer(a[1]);
		return peek_can_read(a[1], sizeof(*params)) &&
		       params->flags & OWNED;
	case SYS_io_uring_register:
		return operation & IORING_REGISTER_USE_REGISTERED_RING ||
		       operation == IORING_REGISTER_RING_FDS ||
		       operation == IORING_REGISTER_ENABLE_RINGS;
	case SYS_io_uring_enter:
		return a[3] & IORING_ENTER_REGISTERED_RING;
	default:
		return false;
	}
}
