/* SPDX-License-Identifier: MIT */
/* Waits that move from a stuck carrier to its heir (adopt.h). */
#ifndef FLEXSC_RUNTIME_MOVED_H
#define FLEXSC_RUNTIME_MOVED_H

struct carrier;

/* Heir s only, while c is stuck: move the waits that can be moved from c to s. */
void flexsc__moved_take(struct carrier *s, struct carrier *c);

/*
 * Carrier c only, when it is back and has revoked its requests of calls that moved. End
 * the waits that stayed and that were wanted to end meanwhile.
 */
void flexsc__moved_back(struct carrier *c);

#endif /* FLEXSC_RUNTIME_MOVED_H */
