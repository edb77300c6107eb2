/* SPDX-License-Identifier: MIT */
/*
 * The signals that the kernel sends with a call's error, to the kernel thread that made
 * the call. Here another thread may have made it, so the user thread gets them from the
 * runtime. User threads only, inside the runtime.
 */
#ifndef FLEXSC_RUNTIME_RAISE_H
#define FLEXSC_RUNTIME_RAISE_H

#include "lib/calls/call_info.h"
#include "runtime/sched/uthread.h"

/* u's call has returned: raise SIGPIPE with EPIPE, or SIGXFSZ with EFBIG. */
void flexsc__raise_error(struct uthread *u, const struct call_info *row,
			 const uint64_t a[6], long ret);

/*
 * A write has returned an error after a part was written. A plain write to a pipe without
 * readers raises SIGPIPE then, too. No other error does after a part.
 */
void flexsc__raise_after_part(struct uthread *u, uint64_t fd, long ret);

#endif /* FLEXSC_RUNTIME_RAISE_H */
