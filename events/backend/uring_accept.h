/* SPDX-License-Identifier: MIT */
/* Listeners. Owner only, in a critical section. */
#ifndef FLEXSC_EVENTS_URING_ACCEPT_H
#define FLEXSC_EVENTS_URING_ACCEPT_H

#include <stdbool.h>
#include <stdint.h>

struct evring;
struct flexsc_ecb;
struct flexsc_ecb_watch;

/* Make the slot's listener. 0 or -errno. */
int flexsc__evring_listen(struct flexsc_ecb *ecb, uint32_t index,
			  const struct flexsc_ecb_watch *watch);
void flexsc__evring_unlisten(struct flexsc_ecb *ecb, uint32_t index);
/* A connection, or -errno; "more": the request goes on. */
void flexsc__evring_accepted(struct flexsc_ecb *ecb, uint32_t index, int res,
			     bool more);
/* Accept what may be accepted now, full listeners too; stop what may not. */
void flexsc__evring_accept(struct flexsc_ecb *ecb);
/* Is a listener full, so that it has to be tried again? */
bool flexsc__evring_full(const struct flexsc_ecb *ecb);
void flexsc__evring_unlisten_all(struct flexsc_ecb *ecb);
/* In a forked child: free their memory, touch nothing else. */
void flexsc__evring_discard_listeners(struct evring *evring);
/*
 * Close connections whose events weren't handed out. At the end, or in a forked child,
 * whose copies they are.
 */
void flexsc__evring_disown(const struct flexsc_ecb *ecb);

#endif /* FLEXSC_EVENTS_URING_ACCEPT_H */
