/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The ioctls of threads that execute entries, and what happens when such a thread blocks
 * or dies.
 */
#ifndef FLEXSC_KMOD_SERVE_H
#define FLEXSC_KMOD_SERVE_H

#include <linux/flexsc.h>
#include <linux/types.h>

struct irq_work;
struct preempt_ops;
struct registration;
struct permit;
struct thread;

/* serve.c */
long serve_ioctl(struct registration *reg, struct flexsc_serve __user *user);

/* wait.c */
long wait_ioctl(struct registration *reg, u64 seen);
long kick_ioctl(struct registration *reg);
long wake_ioctl(struct registration *reg);

/* block.c */
extern const struct preempt_ops block_ops;
void block_permit_freed(struct irq_work *work);
void block_thread_left(struct registration *reg);

/* task_death.c */
void death_init(struct registration *reg);
void death_fini(struct registration *reg);

/* policy.c */
void policy_init(struct registration *reg);
long policy_set(struct registration *reg, struct flexsc_policy __user *user);
long policy_get(struct registration *reg, struct flexsc_policy __user *user);
void policy_begin(struct registration *reg, struct permit *permit);
bool policy_spin(struct registration *reg, struct thread *thread);

#endif /* FLEXSC_KMOD_SERVE_H */
