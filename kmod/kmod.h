/* SPDX-License-Identifier: GPL-2.0-only */
/* The life of a registration, and its paragraph in debugfs. */
#ifndef FLEXSC_KMOD_H
#define FLEXSC_KMOD_H

#include <linux/compiler_types.h>

struct file;
struct flexsc_register;
struct registration;

/* registration.c */
struct registration *registration_create(void);
void registration_destroy(struct registration *reg);
int registration_register(struct registration *reg, struct file *file,
			  struct flexsc_register __user *user);
void registration_own(struct registration *reg);

/* debug.c */
void debug_add(struct registration *reg);
void debug_remove(struct registration *reg);
void debug_init(void);
void debug_exit(void);

#endif /* FLEXSC_KMOD_H */
