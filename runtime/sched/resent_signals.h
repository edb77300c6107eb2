/* SPDX-License-Identifier: MIT */
/*
 * The order of real-time signals that are sent again, kept by tokens:
 * signals/signals.h.
 */
#ifndef FLEXSC_RUNTIME_RESENT_SIGNALS_H
#define FLEXSC_RUNTIME_RESENT_SIGNALS_H

#include <signal.h>

#include "uthread.h"

/*
 * The signal of "info" is about to be sent to u's host again: save *info in host.first,
 * and turn *info into a token.
 */
void flexsc__resent_keep(struct uthread *u, int signo, siginfo_t *info);

/* A signal is about to be handled: exchange *info for host.first, if that is set. */
void flexsc__resent_give(struct uthread *u, int signo, siginfo_t *info);

/*
 * Called before u's host gets the program's mask. If the mask blocks the signal of
 * host.first, drop host.first: sigwaitinfo() may take the token from the kernel's
 * queue. The token then counts as an ordinary signal.
 */
void flexsc__resent_unmask(struct uthread *u, sigmask_t mask);

#endif /* FLEXSC_RUNTIME_RESENT_SIGNALS_H */
