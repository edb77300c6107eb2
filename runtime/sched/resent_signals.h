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
 * Before u's host gets the program's mask: if it blocks the signal in host.first, the
 * token in the kernel's queue stands for itself again.
 */
void flexsc__resent_unmask(struct uthread *u, sigmask_t mask);

#endif /* FLEXSC_RUNTIME_RESENT_SIGNALS_H */
