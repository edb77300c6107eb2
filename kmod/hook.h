/* SPDX-License-Identifier: GPL-2.0-only */
/* How a close() of a watched descriptor is noticed: see hook.c. */
#ifndef FLEXSC_KMOD_HOOK_H
#define FLEXSC_KMOD_HOOK_H

#include <linux/types.h>

struct file;
struct watch;

bool hook_possible(const struct file *file);
void hook_set(struct watch *watch, struct file *file);
void hook_clear(struct watch *watch, struct file *file);

#endif /* FLEXSC_KMOD_HOOK_H */
