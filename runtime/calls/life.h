/* SPDX-License-Identifier: MIT */
/* The life of a user thread: how it begins and ends, on its host. */
#ifndef FLEXSC_RUNTIME_LIFE_H
#define FLEXSC_RUNTIME_LIFE_H

#include "runtime/sched/uthread.h"

/*
 * The calling kernel thread is new, and becomes u's host. stack: from
 * flexsc__small. mask: u's signal mask. anchored: why u is anchored. filter:
 * the maker's filter number.
 */
void flexsc__life_begin(struct uthread *u, void *stack, sigmask_t mask,
			uint8_t anchored, uint32_t filter);
/*
 * The calling thread ceases to be a user thread. Without effect if it is none.
 */
void flexsc__life_end(struct uthread *u);

#endif /* FLEXSC_RUNTIME_LIFE_H */
