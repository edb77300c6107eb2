/* SPDX-License-Identifier: MIT */
#ifndef FLEXSC_RUNTIME_APART_H
#define FLEXSC_RUNTIME_APART_H

#include "runtime/sched/uthread.h"

/*
 * Make u's call on its host. If the call gives a kernel thread state that carriers lack,
 * its thread stays on its host from then on.
 */
long flexsc__apart_make(struct uthread *u, long nr, const uint64_t a[6]);

#endif /* FLEXSC_RUNTIME_APART_H */
