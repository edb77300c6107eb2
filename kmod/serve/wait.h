/* SPDX-License-Identifier: GPL-2.0-only */
/* FLEXSC_IOC_WAIT, KICK and WAKE: see wait.c. */
#ifndef FLEXSC_KMOD_SERVE_WAIT_H
#define FLEXSC_KMOD_SERVE_WAIT_H

#include <linux/types.h>

struct registration;

long owner_wait(struct registration *reg, u64 seen);
long owner_kick(struct registration *reg);
long owner_wake(struct registration *reg);

#endif /* FLEXSC_KMOD_SERVE_WAIT_H */
