/* SPDX-License-Identifier: GPL-2.0-only */
/* Threads that die in a call. */
#ifndef FLEXSC_KMOD_DEATH_H
#define FLEXSC_KMOD_DEATH_H

struct registration;

void death_init(struct registration *reg);
void death_fini(struct registration *reg);

#endif /* FLEXSC_KMOD_DEATH_H */
