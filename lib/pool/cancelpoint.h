/* SPDX-License-Identifier: MIT */
/*
 * A system call that another thread can cancel, without a window in which the
 * cancellation is lost.
 *
 * The thread's entry is BUSY. The owner sets it to CANCEL, then sends the
 * thread the cancel signal. Wherever the signal finds the thread:
 *
 *	before the status is looked at	the thread makes no call
 *	between that and the call	the handler moves it past the call
 *	sleeping in the call		the kernel ends the call, -EINTR
 *	after the call			nothing happens
 */
#ifndef FLEXSC_CANCELPOINT_H
#define FLEXSC_CANCELPOINT_H

#include <linux/types.h>
#include <stdint.h>
#include <sys/types.h>

/* Make the call, or return -ECANCELED without having made it. */
long flexsc__cancelpoint(const __u8 *status, long nr, const __u64 *args);

/*
 * Choose a real-time signal that nobody uses and install its handler; once
 * per process. Returns the signal, or 0: there is none, and calls that
 * execute can't be cancelled. Until it runs a syscall thread has all signals
 * blocked; then all but this.
 */
int flexsc__cancel_signal(void);

/* In the thread: let the cancel signal through. */
void flexsc__cancel_unblock(int signo);

/* Send the cancel signal to a thread. */
void flexsc__cancel_send(pid_t tid, int signo);

#endif /* FLEXSC_CANCELPOINT_H */
