/* SPDX-License-Identifier: MIT */
#ifndef FLEXSC_RUNTIME_SIGMASK_H
#define FLEXSC_RUNTIME_SIGMASK_H

#include "runtime/sched/uthread.h"

/* rt_sigprocmask(2) for a user thread. */
long flexsc__sigmask(struct uthread *u, const uint64_t args[6]);

#endif /* FLEXSC_RUNTIME_SIGMASK_H */
