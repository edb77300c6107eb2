/* SPDX-License-Identifier: GPL-2.0-only */
/* What happens when a thread blocks or leaves: see block.c. */
#ifndef FLEXSC_KMOD_SERVE_BLOCK_H
#define FLEXSC_KMOD_SERVE_BLOCK_H

struct irq_work;
struct preempt_ops;
struct registration;

extern const struct preempt_ops block_ops;
void thread_blocked(struct irq_work *work);
void thread_left(struct registration *reg);

#endif /* FLEXSC_KMOD_SERVE_BLOCK_H */
