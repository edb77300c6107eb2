/* SPDX-License-Identifier: MIT */
/*
 * Transfers in parts, on the user thread itself.
 *
 * A plain write() to a pipe or a socket waits until all is written, and a receive with
 * MSG_WAITALL until all has arrived. io_uring can do the same in one request, but only
 * the kernel knows how much an armed request has transferred. So the heir of a stuck
 * carrier could not make the call again (sched/moved.h). Instead each request transfers
 * what it can at once, and the user thread posts another request for the rest.
 *
 * The program may close the descriptor meanwhile, and its number may then mean another
 * file. So the rest is transferred by a copy of the descriptor.
 */
#ifndef FLEXSC_RUNTIME_PARTS_H
#define FLEXSC_RUNTIME_PARTS_H

#include <linux/flexsc.h>

#include "runtime/sched/uthread.h"

/* Post u's call, which may wait, in parts if need be. Returns the call's result. */
long flexsc__parts_post(struct uthread *u, const struct flexsc_entry *entry);

#endif /* FLEXSC_RUNTIME_PARTS_H */
