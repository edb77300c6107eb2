/* SPDX-License-Identifier: GPL-2.0-only */
/* Registering, and the end of a registration: see registration.c. */
#ifndef FLEXSC_KMOD_REGISTRATION_H
#define FLEXSC_KMOD_REGISTRATION_H

#include <linux/compiler_types.h>

struct file;
struct flexsc_register;
struct registration;

struct registration *registration_create(void);
void registration_destroy(struct registration *reg);
int registration_register(struct registration *reg, struct file *file,
			  struct flexsc_register __user *user);
void registration_own(struct registration *reg);

#endif /* FLEXSC_KMOD_REGISTRATION_H */
