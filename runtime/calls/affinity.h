/* SPDX-License-Identifier: MIT */
/*
 * The cores that user threads may run on.
 *
 * A user thread's affinity is that of its host. So the kernel keeps it, passes it on to
 * new threads, and shows it to other processes. A carrier has the affinity that the
 * process had when the carrier started, unless the carrier's affinity was changed
 * later. A user thread is *bound* if a carrier may run on cores that the user thread
 * must not use. A bound user thread is anchored (sched/anchored.h).
 */
#ifndef FLEXSC_RUNTIME_AFFINITY_H
#define FLEXSC_RUNTIME_AFFINITY_H

#include "runtime/sched/uthread.h"

/* Anchor the new user thread u if it is bound. u is on its host, and in the list. */
void flexsc__affinity_begin(struct uthread *u);

/*
 * Called inside the runtime after the affinity of thread "tid", which may be of any
 * kind, has changed. If the change binds a running user thread, that thread is on its
 * host when the function returns. self: the calling user thread, or NULL.
 */
void flexsc__affinity_changed(struct uthread *self, int32_t tid);

/* sched_setaffinity(2) for a user thread. */
long flexsc__affinity_set(struct uthread *u, const uint64_t args[6]);

#endif /* FLEXSC_RUNTIME_AFFINITY_H */
