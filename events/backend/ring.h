/* SPDX-License-Identifier: MIT */
/*
 * Requests of an ECB's ring. If the ring has failed, requests are dropped. Owner only,
 * in a critical section.
 */
#ifndef FLEXSC_EVENTS_RING_H
#define FLEXSC_EVENTS_RING_H

#include <stdint.h>

struct evring;
struct flexsc_ecb;
struct io_uring_sqe;

enum evring_kind {
	EVRING_POLL,		/* the index is a slot's */
	EVRING_ACCEPT,		/* the index is a slot's */
	EVRING_BELL,
	EVRING_OTHER,		/* its completion is ignored */
};

/* Returns the name (user_data) that identifies a request's completions. */
uint64_t flexsc__evring_name(const struct flexsc_ecb *ecb,
			     enum evring_kind kind, uint32_t index);
/* Take an empty request, and set its name, which io_uring_prep_*() doesn't change. */
struct io_uring_sqe *flexsc__evring_request(struct flexsc_ecb *ecb,
					    enum evring_kind kind,
					    uint32_t index);
/* Submit the requests. 0 or -errno: "failed", or a temporary error such as -EAGAIN. */
int flexsc__evring_submit(struct evring *evring);
/*
 * Record an error of io_uring_enter() in "failed", unless it is temporary. Returns the
 * error.
 */
int flexsc__evring_error(struct evring *evring, int err);
/* Make room for n requests that must be submitted together. */
void flexsc__evring_room(struct flexsc_ecb *ecb, uint32_t n);
void flexsc__evring_cancel(struct flexsc_ecb *ecb, enum evring_kind kind,
			   uint32_t index);
void flexsc__evring_poll(struct flexsc_ecb *ecb, uint32_t index);

#endif /* FLEXSC_EVENTS_RING_H */
