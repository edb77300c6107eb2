/* SPDX-License-Identifier: MIT */
/*
 * The program's signal actions, and the runtime's handler in the kernel in
 * their place. Any thread.
 */
#ifndef FLEXSC_RUNTIME_ACTIONS_H
#define FLEXSC_RUNTIME_ACTIONS_H

#include <signal.h>
#include <stdbool.h>
#include <ucontext.h>

#include "lib/base/sigaction.h"
#include "runtime/base/sigset.h"

/* Replace all handlers by this one of the runtime's. Once, at the start. */
void flexsc__actions_init(void (*arrive)(int, siginfo_t *, void *));
/* In a forked child, whose actions these are now. */
void flexsc__actions_forked(void);

/* rt_sigaction(2) for the program. */
long flexsc__signal_action(const uint64_t args[6]);

/* Address that libc has signal handlers return to. */
uint64_t flexsc__signal_restorer(void);

/* libc has set a handler of its own, which the runtime didn't see: replace it. */
void flexsc__signal_adopt(int signo);

/* Does the program have a handler for this signal? */
bool flexsc__signal_has_handler(int signo);

/* The flags of the program's action. */
uint64_t flexsc__action_flags(int signo);
/* Is the program's action the default one? */
bool flexsc__action_is_default(int signo);
/* Is the signal ignored, as far as the kernel knows? */
bool flexsc__action_ignores(int signo);

/* Run the program's handler with the signals blocked that it asked for. */
void flexsc__action_run(int signo, siginfo_t *info, ucontext_t *context);
/*
 * End the process by the signal's default action: the program has no handler.
 */
void flexsc__action_end(int signo, siginfo_t *info, ucontext_t *context);

#endif /* FLEXSC_RUNTIME_ACTIONS_H */
