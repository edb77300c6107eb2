/* SPDX-License-Identifier: MIT */
/*
 * The effects of a user thread's calls on descriptors. If a call closes a descriptor,
 * waits for the file continue on a duplicate (lib/files/closing.h). If a call changes a
 * descriptor, its facts change (lib/files/fds.h). The program can't see the runtime's
 * own descriptors. User threads only, inside the runtime, except for
 * flexsc__descriptors_closing().
 */
#ifndef FLEXSC_RUNTIME_DESCRIPTORS_H
#define FLEXSC_RUNTIME_DESCRIPTORS_H

#include <linux/flexsc.h>

#include "lib/calls/call_info.h"
#include "runtime/sched/uthread.h"

/* A call, its row of the table of calls, and the variant for the call's arguments. */
struct fds_call {
	const struct call_info *row, *variant;
	const struct flexsc_entry *entry;
	uint64_t begun;		/* result of flexsc__fds_set_begin() */
};

/*
 * Call before the system call. False: it would close a descriptor of the runtime
 * (-EBADF).
 */
bool flexsc__descriptors_begin(struct fds_call *call);

/* Make close_range(2). */
long flexsc__descriptors_close_range(struct uthread *u, long nr,
				     const struct flexsc_entry *entry);

/* Call this after the system call. */
void flexsc__descriptors_end(const struct fds_call *call, long ret);

/* Any thread: libc is about to close fd by a call that flexsc__hook() doesn't see. */
void flexsc__descriptors_closing(uint32_t fd);

#endif /* FLEXSC_RUNTIME_DESCRIPTORS_H */
