/* SPDX-License-Identifier: MIT */
/* What the processor has of extended state. Any thread. */
#ifndef FLEXSC_EVENTS_XSTATE_H
#define FLEXSC_EVENTS_XSTATE_H

#include <stddef.h>

struct flexsc__upcall;

/*
 * Set "mask" and "compact" for this processor: everything but the tiles of AMX,
 * which handlers don't use. Returns the size of the state; 0: the processor
 * can't keep it from user mode, so there are no upcalls but with "room" zero.
 */
size_t flexsc__upcall_probe(struct flexsc__upcall *upcall);

#endif /* FLEXSC_EVENTS_XSTATE_H */
