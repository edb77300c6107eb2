/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The close hook, which notices the close() of a watched descriptor: see
 * close_hook.c.
 */
#ifndef FLEXSC_KMOD_CLOSE_HOOK_H
#define FLEXSC_KMOD_CLOSE_HOOK_H

#include <linux/spinlock.h>
#include <linux/types.h>

struct file;
struct watch;

void hook_init(void);
void hook_exit(void);
int hook_arm(void);
void hook_disarm(void);
spinlock_t *hook_lock(const struct file *file);
bool hook_set(struct watch *watch);
void hook_clear(struct watch *watch);

#endif /* FLEXSC_KMOD_CLOSE_HOOK_H */
