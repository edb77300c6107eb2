/* SPDX-License-Identifier: MIT */
/* System calls as io_uring operations. Owner only. */
#ifndef FLEXSC_URING_OPS_H
#define FLEXSC_URING_OPS_H

#include <liburing.h>
#include <linux/flexsc.h>
#include <stdbool.h>

#include "lib/calls/call_info.h"

/* Properties of the kernel that a uring_prepare_fn must consider, besides the entry. */
enum uring_known {
	URING_SENDS_TO = 1,	/* the send operation takes an address */
	URING_POLL_WAITS = 2,	/* flexsc__call_poll() posted the call: don't query
				 * first whether the descriptor is ready */
	URING_SENDS_WHOLE = 4,	/* send operations obey MSG_WAITALL */
	URING_MULTISHOT = 8,	/* the kernel has multishot accept and receive, and
				 * provided-buffer rings */
};

/*
 * Returns the flags (enum uring_known) of a kernel that supports these operations (bit
 * n: operation n).
 */
unsigned int flexsc__uring_known(uint64_t operations);

/*
 * May the operation end with a partial transfer, where the plain call transfers all
 * bytes?
 */
bool flexsc__uring_in_parts(unsigned int op, unsigned int known);

/*
 * Describe an entry's system call to io_uring, as operation op. False: io_uring can't
 * make the call with these arguments, so the caller has to make a plain call. known:
 * enum uring_known.
 */
typedef bool (*uring_prepare_fn)(struct io_uring_sqe *sqe, uint8_t op,
				 const struct flexsc_entry *entry,
				 unsigned int known);

/* Functions indexed by enum call_shape. */
extern const uring_prepare_fn flexsc__uring_prepare[SHAPES];

static inline bool uring_prepare(struct io_uring_sqe *sqe, unsigned int op,
				 const struct flexsc_entry *entry,
				 unsigned int known)
{
	/* Posting has checked that flexsc__calls has this index. */
	unsigned int shape = flexsc__calls[entry->nr].shape;

	return flexsc__uring_prepare[shape](sqe, (uint8_t)op, entry, known);
}

/* Returns the plain call's result if io_uring returned res. */
int64_t flexsc__uring_result(const struct flexsc_entry *entry, int32_t res);

#endif /* FLEXSC_URING_OPS_H */
