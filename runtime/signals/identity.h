/* SPDX-License-Identifier: MIT */
/*
 * libc changes the users and groups of all threads by a signal to each of them.
 * Carriers must change before hosts. Otherwise a user thread that has seen the new user
 * on its host could still see the old one on a carrier. A host waits for the carriers
 * for a fifth of a second at most, because a carrier may lack a processor for longer.
 * libc's call waits for all threads anyway, so this hardly prolongs it.
 */
#ifndef FLEXSC_RUNTIME_IDENTITY_H
#define FLEXSC_RUNTIME_IDENTITY_H

struct carrier;

/* Any thread, before each call that changes all threads; the call may fail. */
void flexsc__identity_begin(void);
/* A carrier, in the signal's handler: this carrier has changed. */
void flexsc__identity_changed(struct carrier *c);
/* A host, in the signal's handler: wait until all carriers have changed. */
void flexsc__identity_await(void);

#endif /* FLEXSC_RUNTIME_IDENTITY_H */
