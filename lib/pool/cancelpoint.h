/* SPDX-License-Identifier: MIT */
/*
 * A system call that another thread can cancel, without a window in which the
 * cancellation is lost.
 *
 * The thread's entry is BUSY. The owner sets it to CANCEL, then sends the thread the
 * cancel signal. The effect depends on where the signal interrupts the thread:
 *
 *	before the check of the status	the thread makes no call
 *	between the check and the call	the handler moves the thread past the call
 *	sleeping in the call		the kernel ends the call with -EINTR
 *	after the call			no effect
 */
#ifndef FLEXSC_CANCELPOINT_H
#define FLEXSC_CANCELPOINT_H

#include <linux/types.h>
#include <stdint.h>
#include <sys/types.h>

/*
 * Make the call. If the entry is cancelled before, return -ECANCELED without making it.
 */
long flexsc__cancelpoint(const __u8 *status, long nr, const __u64 *args);

/*
 * Choose an unused real-time signal and install its handler, once per process. Returns
 * the signal; 0: none is free, so executing calls can't be cancelled. A syscall thread
 * begins with all signals blocked; it unblocks only this one.
 */
int flexsc__cancel_signal(void);

/* Called by the syscall thread: unblock the cancel signal. */
void flexsc__cancel_unblock(int signo);

/* Send the cancel signal to a thread. */
void flexsc__cancel_send(pid_t tid, int signo);

#endif /* FLEXSC_CANCELPOINT_H */
