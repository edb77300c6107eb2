/* SPDX-License-Identifier: MIT */
/*
 * Awaiting a descriptor: an entry whose number isn't that of a system call. It
 * completes with 1 when its descriptor is readable, has a connection to accept, or has
 * an error. An engine without an operation for such an entry passes it to a pool, which
 * parks it. If the pool can't park the entry, a syscall thread waits in ppoll(), with
 * the struct pollfd that the entry names.
 */
#ifndef FLEXSC_LOOP_AWAIT_H
#define FLEXSC_LOOP_AWAIT_H

#include <linux/flexsc.h>
#include <stdbool.h>
#include <stdint.h>

#include "lib/calls/call_info.h"

/*
 * Arguments of the entry: the descriptor, and the address of the struct pollfd to fill
 * in.
 */
enum { AWAIT_FD, AWAIT_RECORD };

static inline bool await_is(const struct flexsc_entry *entry)
{
	return entry->nr == NR_AWAIT;
}

#endif /* FLEXSC_LOOP_AWAIT_H */
