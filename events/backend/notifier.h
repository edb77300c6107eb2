/* SPDX-License-Identifier: MIT */
/*
 * Notification by SIGURG, whose default action is to be ignored. The signal's handler
 * calls the program's handler on the owner. The signal comes from the kernel, for a
 * pipe with O_ASYNC to which io_uring writes; from the module, if an upcall isn't
 * possible; or from other threads that post.
 *
 * With uring, a SIGURG that arrives in a critical section, or while no group may notify
 * the owner, is blocked from then on; ecb->masked records this. So a busy period costs
 * one needless signal. The end of the section, or flexsc_ecb_notify(), later does what
 * the signal's handler would have done, and unblocks SIGURG.
 */
#ifndef FLEXSC_EVENTS_NOTIFIER_H
#define FLEXSC_EVENTS_NOTIFIER_H

#include <stdbool.h>

struct flexsc_ecb;

/*
 * Install the process's handler, which stays while ECBs exist. "stack": it runs on
 * alternate signal stacks from now on. 0 or -errno.
 */
int flexsc__notifier_get(bool stack);
void flexsc__notifier_put(void);
/* Lock before fork(), and unlock after it in the parent. */
void flexsc__notifier_lock(void);
void flexsc__notifier_unlock(void);
/* In a forked child, which has no ECBs: restore the program's handler, and unlock. */
void flexsc__notifier_forked(void);

/* Block SIGURG, as if a signal had arrived in a critical section. Owner only. */
void flexsc__notifier_mask(struct flexsc_ecb *ecb);
/* Implements the backend's "unmask". Owner only. */
void flexsc__notifier_unmask(struct flexsc_ecb *ecb);
/* Send SIGURG to the owner. Any thread, any signal handler. */
void flexsc__notifier_send(const struct flexsc_ecb *ecb);

/* Make the kernel send SIGURG to the owner for this pipe. 0 or -errno. */
int flexsc__notifier_arm(const struct flexsc_ecb *ecb, int fd);

#endif /* FLEXSC_EVENTS_NOTIFIER_H */
