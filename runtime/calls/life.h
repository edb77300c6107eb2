/* SPDX-License-Identifier: MIT */
/* How a user thread begins and ends. Runs on its host. */
#ifndef FLEXSC_RUNTIME_LIFE_H
#define FLEXSC_RUNTIME_LIFE_H

#include "runtime/sched/uthread.h"

/*
 * The calling kernel thread is new and becomes u's host. stack: from flexsc__small.
 * mask: u's signal mask. anchored: initial reasons to anchor u (sched/anchored.h).
 * filter: the creator's filter number (filter.c).
 */
void flexsc__life_begin(struct uthread *u, void *stack, sigmask_t mask,
			uint8_t anchored, uint32_t filter);
/* The calling thread stops being a user thread. No effect if it isn't one. */
void flexsc__life_end(struct uthread *u);

#endif /* FLEXSC_RUNTIME_LIFE_H */
