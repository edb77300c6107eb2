/* SPDX-License-Identifier: GPL-2.0-only */
/* How a watch begins and ends: see watch_life.c. */
#ifndef FLEXSC_KMOD_EVENTS_WATCH_LIFE_H
#define FLEXSC_KMOD_EVENTS_WATCH_LIFE_H

#include <linux/types.h>

struct ecb;
struct file;
struct watch;

bool watch_go_live(struct watch *watch);
int watch_start(struct watch *watch, struct file *file);
bool watch_stop(struct watch *watch);
void watch_end(struct watch *watch);
void watches_end(struct ecb *ecb);

#endif /* FLEXSC_KMOD_EVENTS_WATCH_LIFE_H */
