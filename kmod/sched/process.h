/* SPDX-License-Identifier: GPL-2.0-only */
/* Processes: see process.c. */
#ifndef FLEXSC_KMOD_SCHED_PROCESS_H
#define FLEXSC_KMOD_SCHED_PROCESS_H

struct registration;

int process_join(struct registration *reg);
void process_leave(struct registration *reg);

#endif /* FLEXSC_KMOD_SCHED_PROCESS_H */
