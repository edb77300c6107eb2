/* SPDX-License-Identifier: GPL-2.0-only */
/* The idle list: see idle.c. */
#ifndef FLEXSC_KMOD_SCHED_IDLE_H
#define FLEXSC_KMOD_SCHED_IDLE_H

#include <linux/types.h>

struct registration;
struct thread;

bool thread_wake(struct registration *reg);
void thread_end_all(struct registration *reg);
void thread_idle_begin(struct registration *reg, struct thread *thread);
bool thread_idle_end(struct registration *reg, struct thread *thread,
		     bool timely);
void slot_spill(struct registration *reg);
bool thread_ask(struct registration *reg);
void thread_no_more(struct registration *reg);

#endif /* FLEXSC_KMOD_SCHED_IDLE_H */
