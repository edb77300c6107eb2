/* SPDX-License-Identifier: GPL-2.0-only */
/* The idle list: see idle.c. */
#ifndef FLEXSC_KMOD_SCHED_IDLE_H
#define FLEXSC_KMOD_SCHED_IDLE_H

#include <linux/types.h>

struct registration;
struct slot;
struct thread;

bool idle_wake(struct registration *reg);
bool idle_wake_for_entries(struct registration *reg);
bool idle_grant(struct registration *reg, struct slot *slot);
void idle_end_all(struct registration *reg);
void idle_begin(struct registration *reg, struct thread *thread);
bool idle_end(struct registration *reg, struct thread *thread, bool timely);
void idle_wake_for_backlog(struct registration *reg);
bool idle_request_thread(struct registration *reg);
void idle_no_more_threads(struct registration *reg);

#endif /* FLEXSC_KMOD_SCHED_IDLE_H */
