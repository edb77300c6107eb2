/* SPDX-License-Identifier: GPL-2.0-only */
/* Threads that die in a call. */
#ifndef FLEXSC_KMOD_DEATH_H
#define FLEXSC_KMOD_DEATH_H

struct registration;
struct thread;

void death_init(struct registration *reg);
void death_fini(struct registration *reg);
void death_note(struct thread *thread);

#endif /* FLEXSC_KMOD_DEATH_H */
