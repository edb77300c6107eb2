/* SPDX-License-Identifier: MIT */
/*
 * Notification by SIGURG, whose default action is to be ignored. The signal's handler
 * calls the program's handler on the owner. The signal is sent by the kernel for a pipe
 * with O_ASYNC that io_uring writes to, by the module if an upcall isn't possible, and
 * by other threads that post.
 *
 * With uring, SIGURG is blocked if it arrives in a critical section, or if no group is
 * to notify the owner: ecb->masked. So a busy period costs one needless signal. The end
 * of the section, or flexsc_ecb_notify(), does the signal's work later and unblocks it.
 */
#ifndef FLEXSC_EVENTS_NOTIFIER_H
#define FLEXSC_EVENTS_NOTIFIER_H

struct flexsc_ecb;

/* Install the process's handler, which stays while ECBs exist. 0 or -errno. */
int flexsc__notifier_get(void);
void flexsc__notifier_put(void);
/* Called around fork(); the parent unlocks. */
void flexsc__notifier_lock(void);
void flexsc__notifier_unlock(void);
/* The child has no ECBs: restore the program's handler, and unlock. */
void flexsc__notifier_forked(void);

/* Block SIGURG, as a signal does that arrives in a critical section. Owner only. */
void flexsc__notifier_mask(struct flexsc_ecb *ecb);
/* Implements the backend's "unmask". Owner only. */
void flexsc__notifier_unmask(struct flexsc_ecb *ecb);
/* Any thread, any signal handler. */
void flexsc__notifier_send(const struct flexsc_ecb *ecb);

/* Make the kernel send the signal for this pipe of the ECB. 0 or -errno. */
int flexsc__notifier_arm(const struct flexsc_ecb *ecb, int fd);

#endif /* FLEXSC_EVENTS_NOTIFIER_H */
