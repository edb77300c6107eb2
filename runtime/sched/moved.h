/* SPDX-License-Identifier: MIT */
/* Waits that move from a stuck carrier to its heir (adopt.h). */
#ifndef FLEXSC_RUNTIME_MOVED_H
#define FLEXSC_RUNTIME_MOVED_H

struct carrier;

/* Heir s only, while c is stuck: move c's waits to s, except those that can't move. */
void flexsc__moved_take(struct carrier *s, struct carrier *c);

/*
 * Carrier c only, when it is back and has revoked its requests for calls that moved:
 * end the other waits whose user threads are wanted on their hosts.
 */
void flexsc__moved_back(struct carrier *c);

#endif /* FLEXSC_RUNTIME_MOVED_H */
