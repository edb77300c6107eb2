/* SPDX-License-Identifier: MIT */
/*
 * Awaiting a descriptor: an entry whose number isn't that of a system call. It
 * completes with 1 when its descriptor is readable, has a connection to accept, or has
 * an error. An engine that has no operation for it passes it to a pool, which parks it.
 * If a syscall thread has to wait for it, the thread calls ppoll() with the record.
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
