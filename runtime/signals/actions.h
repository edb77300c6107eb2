/* SPDX-License-Identifier: MIT */
/*
 * The program's signal actions. The kernel has the runtime's handler in their place.
 * Any thread.
 */
#ifndef FLEXSC_RUNTIME_ACTIONS_H
#define FLEXSC_RUNTIME_ACTIONS_H

#include <signal.h>
#include <stdbool.h>
#include <ucontext.h>

#include "lib/base/sigaction.h"
#include "runtime/base/sigset.h"

/* Replace all handlers by this one of the runtime. Once, at the start. */
void flexsc__actions_init(void (*arrive)(int, siginfo_t *, void *));
/* In a forked child: the actions belong to this process now. */
void flexsc__actions_forked(void);

/* rt_sigaction(2) for the program. */
long flexsc__signal_action(const uint64_t args[6]);

/* Address of the libc function to which signal handlers return; 0: the kernel's. */
uint64_t flexsc__signal_restorer(void);

/* Replace a handler that libc set, unseen by the runtime, by the runtime's handler. */
void flexsc__signal_adopt(int signo);

bool flexsc__signal_has_handler(int signo);

uint64_t flexsc__action_flags(int signo);
bool flexsc__action_is_default(int signo);
/* Does the kernel ignore the signal? */
bool flexsc__action_ignores(int signo);

/* Run the program's handler, with those signals blocked that its action names. */
void flexsc__action_run(int signo, siginfo_t *info, ucontext_t *context);
/* The program has no handler: end the process by the signal's default action. */
void flexsc__action_end(int signo, siginfo_t *info, ucontext_t *context);

#endif /* FLEXSC_RUNTIME_ACTIONS_H */
