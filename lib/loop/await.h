/* SPDX-License-Identifier: MIT */
/*
 * Awaiting: an entry, whose number is no system call's, that completes with 1
 * when its descriptor can be read from, or a connection can be accepted, or it
 * has an error. An engine that can't do it leaves it to a pool, which parks it.
 * Where a thread has to wait for it, the thread makes a ppoll() of the record.
 */
#ifndef FLEXSC_LOOP_AWAIT_H
#define FLEXSC_LOOP_AWAIT_H

#include <linux/flexsc.h>
#include <stdbool.h>
#include <stdint.h>

#include "lib/calls/call_info.h"

/* Arguments of the entry: the descriptor, and its struct pollfd. */
enum { AWAIT_FD, AWAIT_RECORD };

static inline bool await_is(const struct flexsc_entry *entry)
{
	return entry->nr == NR_AWAIT;
}

#endif /* FLEXSC_LOOP_AWAIT_H */
