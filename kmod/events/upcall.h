/* SPDX-License-Identifier: GPL-2.0-only */
/* Notification: see upcall.c; the upcall on x86-64: see upcall_x86.c. */
#ifndef FLEXSC_KMOD_UPCALL_H
#define FLEXSC_KMOD_UPCALL_H

#include <linux/types.h>

struct ecb;

void upcall_notify(struct ecb *ecb);

/*
 * Enter the handler by changing the owner's registers. False: that isn't
 * possible now.
 */
#ifdef CONFIG_X86_64
bool upcall_enter(struct ecb *ecb);
u32 upcall_rights(void);
#else
static inline bool upcall_enter(struct ecb *ecb)
{
	return false;
}

static inline u32 upcall_rights(void)
{
	return 0;
}
#endif

#endif /* FLEXSC_KMOD_UPCALL_H */
