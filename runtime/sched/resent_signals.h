/* SPDX-License-Identifier: MIT */
/*
 * The order of real-time signals that are sent again: tokens,
 * signals/signals.h.
 */
#ifndef FLEXSC_RUNTIME_RESENT_SIGNALS_H
#define FLEXSC_RUNTIME_RESENT_SIGNALS_H

#include <signal.h>

#include "uthread.h"

/*
 * Keep a siginfo that is about to be sent again to u's home in home.first, and
 * make a token of it.
 */
void flexsc__queued_keep(struct uthread *u, int signo, siginfo_t *info);

/* Exchange a siginfo that is about to be handled for home.first, if any. */
void flexsc__queued_give(struct uthread *u, int signo, siginfo_t *info);

/*
 * u's home is about to get the program's mask. If that blocks the signal in
 * home.first, the token in the kernel's queue stands for itself again.
 */
void flexsc__queued_unmask(struct uthread *u, sigmask_t mask);

#endif /* FLEXSC_RUNTIME_RESENT_SIGNALS_H */
