/* SPDX-License-Identifier: GPL-2.0-only */
/* The wait queues of watched files: see poller.c. */
#ifndef FLEXSC_KMOD_EVENTS_POLLER_H
#define FLEXSC_KMOD_EVENTS_POLLER_H

struct file;
struct watch;

int watch_enter_queues(struct watch *watch, struct file *file);
void watch_leave_queues(struct watch *watch);

#endif /* FLEXSC_KMOD_EVENTS_POLLER_H */
