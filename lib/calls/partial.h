/* SPDX-License-Identifier: MIT */
/*
 * Calls that transfer data in parts. A plain write() to a pipe or a socket waits until
 * all data is written. An io_uring operation may return a short count, and so may a
 * call that was interrupted midway. The engine then continues with the remainder, so
 * the program sees a single call.
 */
#ifndef FLEXSC_PARTIAL_H
#define FLEXSC_PARTIAL_H

#include <limits.h>
#include <linux/flexsc.h>
#include <stdbool.h>
#include <stdint.h>

#include "call_info.h"

/*
 * Does the loop's owner post the remainder, instead of the engine? True under flexsc
 * run: runtime/calls/parts.c.
 */
#ifdef FLEXSC_IN_RUNTIME
#define OWNER_GOES_ON	true
#else
#define OWNER_GOES_ON	false
#endif

/* MAX_RW_COUNT: the maximum that the kernel transfers per call. */
#define RW_MAX		0x7ffff000ULL

struct partial;

/* Does the entry's call continue after a partial transfer? */
bool flexsc__partial(const struct flexsc_entry *entry);

/*
 * Returns how many bytes the plain call would transfer at most. The call ends there,
 * even if the buffers are larger. The caller guarantees that the buffers are valid.
 */
static inline uint64_t partial_most(const struct flexsc_entry *entry)
{
	const uint64_t length = flexsc__requested_length(entry);

	return length < RW_MAX ? length : RW_MAX;
}

/*
 * Is the write so short that the kernel hardly ever splits it? A pipe accepts PIPE_BUF
 * bytes as a whole. So does a socket with a send buffer of the usual size, once poll(2)
 * reports the socket ready, because a third of the buffer is free then. After a small
 * SO_SNDBUF, a TCP socket may split even such a write.
 */
static inline bool write_is_short(const struct flexsc_entry *entry)
{
	const struct call_info *row = flexsc__call_info(entry->nr);

	return row->length == LENGTH_BYTES && !row->source_arg &&
	       entry->args[row->length_arg] <= PIPE_BUF;
}

/*
 * Called when the entry's call has transferred res bytes. True: bytes remain, and the
 * entry's arguments now describe the remainder. *partial must be NULL at first, and
 * belongs to this entry from then on.
 */
bool flexsc__partial_rest(struct flexsc_entry *entry, struct partial **partial,
			  int64_t res);

/*
 * As flexsc__partial_rest(), for an incomplete read. False: there is no memory to
 * continue, so res is the call's result.
 */
bool flexsc__partial_read(struct flexsc_entry *entry, struct partial **partial,
			  int64_t res);

/* Has a part of the call been transferred? Owner only, at any time. */
bool flexsc__partial_begun(struct partial *const *partial);

/*
 * Returns the result of a call whose last part returned res. Frees *partial, and
 * restores the entry's arguments.
 */
int64_t flexsc__partial_result(struct flexsc_entry *entry,
			       struct partial **partial, int64_t res);

#endif /* FLEXSC_PARTIAL_H */
