/* SPDX-License-Identifier: MIT */
/* System calls as operations of io_uring. Owner only. */
#ifndef FLEXSC_URING_OPS_H
#define FLEXSC_URING_OPS_H

#include <liburing.h>
#include <linux/flexsc.h>
#include <stdbool.h>

#include "lib/calls/call_info.h"

/* What is known of an entry's call besides the entry. */
enum uring_known {
	URING_SENDS_TO = 1,	/* the send operation takes an address */
	URING_POLL_WAITS = 2,	/* the call was posted by flexsc__call_poll() */
	URING_SENDS_WHOLE = 4,	/* send operations heed MSG_WAITALL */
	URING_MULTISHOT = 8,	/* accept and receive, and rings of buffers */
};

/* Of enum uring_known, where the kernel has these operations: bit n, op n. */
unsigned int flexsc__uring_known(uint64_t operations);

/* May the operation end with a part done of what its plain call does whole? */
bool flexsc__uring_in_parts(unsigned int op, unsigned int known);

/*
 * Describe an entry's system call to io_uring; op is its operation. False:
 * io_uring can't do this very call, with these arguments; it has to be made as
 * a plain one. known: of enum uring_known.
 */
typedef bool (*uring_prepare_fn)(struct io_uring_sqe *sqe, uint8_t op,
				 const struct flexsc_entry *entry,
				 unsigned int known);

/* Functions by shape: enum call_shape. */
extern const uring_prepare_fn flexsc__uring_prepare[SHAPES];

static inline bool uring_prepare(struct io_uring_sqe *sqe, unsigned int op,
				 const struct flexsc_entry *entry,
				 unsigned int known)
{
	/* The call was posted, so it is in the table. */
	unsigned int shape = flexsc__calls[entry->nr].shape;

	return flexsc__uring_prepare[shape](sqe, (uint8_t)op, entry, known);
}

/* The plain call's result where io_uring returned res. */
int64_t flexsc__uring_result(const struct flexsc_entry *entry, int32_t res);

#endif /* FLEXSC_URING_OPS_H */
