/* SPDX-License-Identifier: MIT */
/*
 * The functions that set signal handlers, where libc isn't patched: TRY of
 * base/symbols.def. They run on the program's threads.
 */
#ifndef FLEXSC_RUNTIME_HANDLERS_H
#define FLEXSC_RUNTIME_HANDLERS_H

#include <signal.h>

int try_sigaction(int signo, const struct sigaction *new,
		  struct sigaction *old);
sighandler_t try_signal(int signo, sighandler_t handler);
sighandler_t try_bsd_signal(int signo, sighandler_t handler);
sighandler_t try_ssignal(int signo, sighandler_t handler);
sighandler_t try_sysv_signal(int signo, sighandler_t handler);
sighandler_t try___sysv_signal(int signo, sighandler_t handler);

#endif /* FLEXSC_RUNTIME_HANDLERS_H */
