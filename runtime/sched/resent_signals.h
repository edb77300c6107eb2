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
 * Save a siginfo that is about to be resent to u's host in host.first, and make a token
 * of it.
 */
void flexsc__resent_keep(struct uthread *u, int signo, siginfo_t *info);

/* Exchange a siginfo that is about to be handled for host.first, if that is set. */
void flexsc__resent_give(struct uthread *u, int signo, siginfo_t *info);

/*
 * Called before u's host gets the program's mask. If the mask blocks the signal of
 * host.first, drop host.first: sigwaitinfo() may take the marked signal from the
 * kernel's queue, which then counts as an ordinary one.
 */
void flexsc__resent_unmask(struct uthread *u, sigmask_t mask);

#endif /* FLEXSC_RUNTIME_RESENT_SIGNALS_H */
