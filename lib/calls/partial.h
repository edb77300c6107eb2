/* SPDX-License-Identifier: MIT */
/*
 * Calls that transfer data in parts. A plain write() to a pipe or a socket
 * waits until all is written. An io_uring operation returns when some is, and
 * so does a call that was interrupted in its middle. The engine then goes on
 * with the rest, and the program sees one call.
 */
#ifndef FLEXSC_PARTIAL_H
#define FLEXSC_PARTIAL_H

#include <limits.h>
#include <linux/flexsc.h>
#include <stdbool.h>
#include <stdint.h>

#include "call_info.h"

/* Does a loop's owner post the rest itself? Under flexsc run: runtime/calls/parts.c. */
#ifdef FLEXSC_IN_RUNTIME
#define OWNER_GOES_ON	true
#else
#define OWNER_GOES_ON	false
#endif

struct partial;

/* Does the entry's call transfer data in parts? */
bool flexsc__partial(const struct flexsc_entry *entry);

/*
 * Is a write so short that it has no rest? A pipe takes so many bytes whole. So
 * does a socket, which is ready when a third of its buffer is free, and whose
 * buffer is never smaller than this.
 */
static inline bool write_is_short(const struct flexsc_entry *entry)
{
	const struct call_info *row = flexsc__call_info(entry->nr);

	return row->length == LENGTH_BYTES && !row->source_arg &&
	       entry->args[row->length_arg] <= PIPE_BUF;
}

/*
 * The entry's call has transferred res bytes. True: that wasn't all, and the
 * entry's arguments now describe the rest. *partial is NULL at first, and kept
 * for this entry from then on.
 */
bool flexsc__partial_rest(struct flexsc_entry *entry, struct partial **partial,
			  int64_t res);

/*
 * As flexsc__partial_rest(), of a read that isn't complete. False: there is no memory
 * to go on, and res is the call's result.
 */
bool flexsc__partial_read(struct flexsc_entry *entry, struct partial **partial,
			  int64_t res);

/* Has a part of the call been done? The owner, at any time. */
bool flexsc__partial_begun(struct partial *const *partial);

/*
 * The result of a call whose last part returned res. Frees *partial; the
 * entry's arguments are the call's again.
 */
int64_t flexsc__partial_result(struct flexsc_entry *entry,
			       struct partial **partial, int64_t res);

#endif /* FLEXSC_PARTIAL_H */
