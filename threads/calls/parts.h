/* SPDX-License-Identifier: MIT */
/*
 * Transfers in parts. A plain write() to a pipe or a socket waits until all is written,
 * and so does a receive with MSG_WAITALL. io_uring could do the same in one request,
 * but only the kernel knows how much such a request has transferred. So the heir of a
 * stuck carrier could not make it again (run/moved.h). Instead each request transfers
 * what it can at once, and the user thread posts another one for the rest.
 *
 * The rest belongs to the file that the descriptor meant at first. The program may close
 * the descriptor meanwhile, so the rest is transferred by a copy of it.
 */
#ifndef FLEXSC_THREADS_PARTS_H
#define FLEXSC_THREADS_PARTS_H

#include <linux/flexsc.h>

#include "../run/uthread.h"

/* Post u's call, which may wait; with io_uring in parts. Returns its result. */
long flexsc__parts_post(struct uthread *u, const struct flexsc_entry *entry);

#endif /* FLEXSC_THREADS_PARTS_H */
