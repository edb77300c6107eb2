/* SPDX-License-Identifier: MIT */
/*
 * The class of calls that are several calls in one: their arguments say more
 * than the table's row.
 */
#ifndef FLEXSC_REFINE_H
#define FLEXSC_REFINE_H

#include <linux/flexsc.h>
#include <stdbool.h>

#include "call_info.h"

/* The class of a call with these arguments. CLASS_NEVER: -EOPNOTSUPP. */
enum call_class flexsc__call_class(const struct call_info *row,
			       const struct flexsc_entry *entry);

/*
 * Does the call not wait for what poll(2) reports? Receiving from an empty queue
 * of errors fails at once, and so does receiving urgent data before they come.
 * Sockets without such a queue ignore the flag and wait for data. Peeking at all
 * of the bytes waits while the descriptor is ready with some.
 */
bool flexsc__call_is_unpolled(unsigned int nr, const __u64 *args);

#endif /* FLEXSC_REFINE_H */
