/* SPDX-License-Identifier: MIT */
/*
 * Functions shared within this folder. User threads only, inside the runtime. The
 * functions return the kernel's result.
 */
#ifndef FLEXSC_RUNTIME_CALLS_H
#define FLEXSC_RUNTIME_CALLS_H

#include <linux/flexsc.h>

#include "lib/calls/call_info.h"
#include "runtime/sched/uthread.h"

/*
 * apart.c: make u's call on its host. If the call gives the kernel thread state that
 * carriers lack, such as a namespace, u stays on its host from then on.
 */
long flexsc__apart_make(struct uthread *u, long nr, const uint64_t a[6]);

/* dispatch.c: make call nr, which may exceed the 16 bits of entry->nr. */
long flexsc__dispatch(struct uthread *u, long nr,
		      const struct flexsc_entry *entry);

/* futex2.c: make a futex2 call for the user thread u; NULL: for any other thread. */
long flexsc__futex2(struct uthread *u, long nr, const uint64_t args[6]);

/* parts.c: post u's call, which may wait, in several parts if necessary. */
long flexsc__parts_post(struct uthread *u, const struct flexsc_entry *entry);

/* raise.c: if u's call returned -EPIPE or -EFBIG, raise SIGPIPE or SIGXFSZ. */
void flexsc__raise_error(struct uthread *u, const struct call_info *row,
			 const uint64_t a[6], long ret);

/*
 * raise.c: called when a write has transferred a part, and failed with "ret" for the
 * rest. Raises SIGPIPE for a pipe without readers, as a plain write does. After a part,
 * no other error raises a signal.
 */
void flexsc__raise_after_part(struct uthread *u, uint64_t fd, long ret);

/*
 * raise.c: the same for a syscall thread's write, of which only the part's length is
 * known, not the error.
 */
void flexsc__raise_unseen(struct uthread *u, uint64_t fd);

/* sigmask.c: rt_sigprocmask(2). */
long flexsc__sigmask(struct uthread *u, const uint64_t args[6]);

/* sigwait.c: rt_sigtimedwait(2). */
long flexsc__sigwait(struct uthread *u, const uint64_t a[6]);

/* sleep.c: nanosleep(2) and clock_nanosleep(2). */
long flexsc__sleep_nanosleep(struct uthread *u, long nr, const uint64_t a[6]);
long flexsc__sleep_clock(struct uthread *u, long nr, const uint64_t a[6]);

#endif /* FLEXSC_RUNTIME_CALLS_H */
