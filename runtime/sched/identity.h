/* SPDX-License-Identifier: MIT */
/*
 * libc changes the users and groups of all threads by a signal to each of them.
 * Carriers must change before hosts. Otherwise a user thread that has seen the new user
 * on its host could still see the old one on a carrier. So in the signal's handler, a
 * host waits for the carriers: until each has changed, or has the signal pending. Such a
 * carrier runs libc's handler before anything else.
 *
 * Only one thread at a time is in libc's functions that change all threads. If there
 * were two, a host couldn't find out to which of them a signal belongs.
 */
#ifndef FLEXSC_RUNTIME_IDENTITY_H
#define FLEXSC_RUNTIME_IDENTITY_H

struct carrier;

/* Any thread, around each call of a function that changes all threads. */
void flexsc__identity_begin(void);
void flexsc__identity_end(void);

/* The calling thread has become a carrier: count it among the carriers. */
void flexsc__identity_join(struct carrier *c);

/* A carrier, in the signal's handler: this carrier has changed. */
void flexsc__identity_changed(struct carrier *c);
/* A host, in the signal's handler: wait for all carriers. */
void flexsc__identity_await(void);

void flexsc__identity_forked(void);

#endif /* FLEXSC_RUNTIME_IDENTITY_H */
