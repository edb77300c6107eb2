/* SPDX-License-Identifier: MIT */
/* How completions become SIGURG. Owner only, in a critical section. */
#ifndef FLEXSC_EVENTS_URING_NOTIFY_H
#define FLEXSC_EVENTS_URING_NOTIFY_H

struct evring;
struct flexsc_ecb;

/* Without notification: completions tell nothing. */
void flexsc__evring_hush(struct flexsc_ecb *ecb);
/* With it: the next completion does. 0 or -errno. */
int flexsc__evring_tell(struct flexsc_ecb *ecb);
void flexsc__evring_tell_close(struct evring *evring);

#endif /* FLEXSC_EVENTS_URING_NOTIFY_H */
