/* SPDX-License-Identifier: MIT */
/*
 * What a user thread's call does to descriptors. The waits for a file whose descriptor is
 * closed go on with a copy (lib/files/closing.h), facts of descriptors change
 * (lib/files/fds.h), and the runtime's own descriptors don't exist for the program. User
 * threads only, inside the runtime, except for flexsc__descriptors_closing().
 */
#ifndef FLEXSC_RUNTIME_DESCRIPTORS_H
#define FLEXSC_RUNTIME_DESCRIPTORS_H

#include <linux/flexsc.h>

#include "lib/calls/call_info.h"
#include "runtime/sched/uthread.h"

/* A call, and its row or the variant of it. */
struct fds_call {
	const struct call_info *row, *variant;
	const struct flexsc_entry *entry;
	uint64_t begun;		/* of flexsc__fds_set_begin() */
};

/* Before the call. False: it would close a descriptor of the runtime's: -EBADF. */
bool flexsc__descriptors_begin(struct fds_call *call);

/* Make close_range(2). */
long flexsc__descriptors_close_range(struct uthread *u, long nr,
				     const struct flexsc_entry *entry);

/* After the call. */
void flexsc__descriptors_end(const struct fds_call *call, long ret);

/*
 * libc is about to close a descriptor by a call that doesn't reach flexsc__hook(). Any
 * thread.
 */
void flexsc__descriptors_closing(uint32_t fd);

#endif /* FLEXSC_RUNTIME_DESCRIPTORS_H */
