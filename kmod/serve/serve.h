/* SPDX-License-Identifier: GPL-2.0-only */
/* FLEXSC_IOC_SERVE: see serve.c. */
#ifndef FLEXSC_KMOD_SERVE_SERVE_H
#define FLEXSC_KMOD_SERVE_SERVE_H

#include <linux/compiler_types.h>

struct flexsc_serve;
struct registration;

long thread_serve(struct registration *reg, struct flexsc_serve __user *user);

#endif /* FLEXSC_KMOD_SERVE_SERVE_H */
