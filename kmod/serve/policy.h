/* SPDX-License-Identifier: GPL-2.0-only */
/* Cores, and for how long threads poll. */
#ifndef FLEXSC_KMOD_POLICY_H
#define FLEXSC_KMOD_POLICY_H

#include <linux/flexsc.h>

struct registration;
struct slot;
struct thread;

void policy_init(struct registration *reg);
long policy_set(struct registration *reg, struct flexsc_policy __user *user);
long policy_get(struct registration *reg, struct flexsc_policy __user *user);
void policy_begin(struct registration *reg, struct slot *slot);
bool policy_spin(struct registration *reg, struct thread *thread);

#endif /* FLEXSC_KMOD_POLICY_H */
