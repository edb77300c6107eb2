/* SPDX-License-Identifier: MIT */
/* How completions become SIGURG. Owner only, in a critical section. */
#ifndef FLEXSC_EVENTS_URING_NOTIFY_H
#define FLEXSC_EVENTS_URING_NOTIFY_H

struct evring;
struct flexsc_ecb;

/* Completions don't notify. */
void flexsc__evring_hush(struct flexsc_ecb *ecb);
/* The next completion notifies. 0 or -errno. */
int flexsc__evring_notify(struct flexsc_ecb *ecb);
void flexsc__evring_notify_close(struct evring *evring);

#endif /* FLEXSC_EVENTS_URING_NOTIFY_H */
