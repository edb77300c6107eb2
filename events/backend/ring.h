/* SPDX-License-Identifier: MIT */
/*
 * Requests of an ECB's ring. A failed ring takes none, and its requests aren't
 * submitted. Owner only, in a critical section.
 */
#ifndef FLEXSC_EVENTS_RING_H
#define FLEXSC_EVENTS_RING_H

#include <stdint.h>

struct evring;
struct flexsc_ecb;
struct io_uring_sqe;

/* What a completion is of. */
enum evring_kind {
	EVRING_POLL,		/* the index is a slot's */
	EVRING_ACCEPT,		/* likewise */
	EVRING_BELL,
	EVRING_OTHER,		/* nothing follows from it */
};

/* By which a request's completions are known. */
uint64_t flexsc__evring_name(const struct flexsc_ecb *ecb,
			     enum evring_kind kind, uint32_t index);
/* Returns an empty request with its name, which preparing it leaves alone. */
struct io_uring_sqe *flexsc__evring_request(struct flexsc_ecb *ecb,
					    enum evring_kind kind,
					    uint32_t index);
/*
 * Submit what was requested. 0 or -errno: "failed", or an error that passes, such as
 * -EAGAIN.
 */
int flexsc__evring_submit(struct evring *evring);
/* Note an error of io_uring_enter() in "failed", unless it passes. Returns it. */
int flexsc__evring_error(struct evring *evring, int err);
/* Have room for n requests that are submitted together. */
void flexsc__evring_room(struct flexsc_ecb *ecb, uint32_t n);
/* Cancel the slot's request. */
void flexsc__evring_cancel(struct flexsc_ecb *ecb, enum evring_kind kind,
			   uint32_t index);
/* Poll the slot's descriptor. */
void flexsc__evring_poll(struct flexsc_ecb *ecb, uint32_t index);

#endif /* FLEXSC_EVENTS_RING_H */
