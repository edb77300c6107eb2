/* SPDX-License-Identifier: GPL-2.0-only */
/* The lists of accepting watches: see listener.c. */
#ifndef FLEXSC_KMOD_EVENTS_LISTENER_H
#define FLEXSC_KMOD_EVENTS_LISTENER_H

#include <linux/types.h>

struct ecb;
struct watch;

void listener_enqueue(struct watch *listener);
void listener_put_back(struct watch *listener);
void listener_starve(struct watch *listener, u32 frees);
void listeners_retry(struct ecb *ecb);
void listeners_requeue(struct ecb *ecb);

#endif /* FLEXSC_KMOD_EVENTS_LISTENER_H */
