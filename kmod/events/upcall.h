/* SPDX-License-Identifier: GPL-2.0-only */
/* Notification: see upcall.c. */
#ifndef FLEXSC_KMOD_UPCALL_H
#define FLEXSC_KMOD_UPCALL_H

struct ecb;

void upcall_notify(struct ecb *ecb);

#endif /* FLEXSC_KMOD_UPCALL_H */
