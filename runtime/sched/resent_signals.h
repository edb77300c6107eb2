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
 * Keep a siginfo that is about to be sent again to u's host in host.first, and
 * make a token of it.
 */
void flexsc__resent_keep(struct uthread *u, int signo, siginfo_t *info);

/* Exchange a siginfo that is about to be handled for host.first, if any. */
void flexsc__resent_give(struct uthread *u, int signo, siginfo_t *info);

/*
 * u's host is about to get the program's mask. If that blocks the signal in
 * host.first, the token in the kernel's queue stands for itself again.
 */
void flexsc__resent_unmask(struct uthread *u, sigmask_t mask);

#endif /* FLEXSC_RUNTIME_RESENT_SIGNALS_H */
