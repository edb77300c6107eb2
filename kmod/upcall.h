/* SPDX-License-Identifier: GPL-2.0-only */
/* Notification: see upcall.c. */
#ifndef FLEXSC_KMOD_UPCALL_H
#define FLEXSC_KMOD_UPCALL_H

#include <linux/types.h>

struct ecb;

void upcall_notify(struct ecb *ecb);

/* upcall_x86.c: change the owner's registers; false: it can't be done here. */
#ifdef CONFIG_X86_64
bool upcall_enter(struct ecb *ecb);
#else
static inline bool upcall_enter(struct ecb *ecb)
{
	return false;
}
#endif

#endif /* FLEXSC_KMOD_UPCALL_H */
