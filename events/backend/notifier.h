/* SPDX-License-Identifier: MIT */
/*
 * Notification by SIGURG, whose default action is to be ignored: the handler is
 * called by the signal's, on the owner. The kernel sends it for a pipe with
 * O_ASYNC that io_uring writes to, the module where an upcall isn't possible,
 * other threads for what they post.
 *
 * With uring a signal that meets a critical section, or an owner that isn't to be
 * notified of anything, blocks SIGURG: ecb->masked. So a busy period costs one needless
 * signal. The end of the section, or flexsc_ecb_notify(), does what the signal
 * couldn't, and unblocks it.
 */
#ifndef FLEXSC_EVENTS_NOTIFIER_H
#define FLEXSC_EVENTS_NOTIFIER_H

struct flexsc_ecb;

/* The process' handler, for as long as there are ECBs. 0 or -errno. */
int flexsc__notifier_get(void);
void flexsc__notifier_put(void);
/* Around fork(): the parent unlocks. */
void flexsc__notifier_lock(void);
void flexsc__notifier_unlock(void);
/* The child has no ECBs, so it gets the program's handler back; unlock. */
void flexsc__notifier_forked(void);

/* Block SIGURG as a signal that meets a critical section does. Owner only. */
void flexsc__notifier_mask(struct flexsc_ecb *ecb);
/* The backend's "unmask". Owner only. */
void flexsc__notifier_unmask(struct flexsc_ecb *ecb);
/* Any thread, any signal handler. */
void flexsc__notifier_send(const struct flexsc_ecb *ecb);

/* Have the kernel send the signal for a pipe of the ECB's own. 0 or -errno. */
int flexsc__notifier_arm(const struct flexsc_ecb *ecb, int fd);

#endif /* FLEXSC_EVENTS_NOTIFIER_H */
