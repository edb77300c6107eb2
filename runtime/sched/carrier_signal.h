/* SPDX-License-Identifier: MIT */
/*
 * A carrier's signal stack, mask and timer, and sending a signal to it.
 * signals/signals.h describes the handling.
 */
#ifndef FLEXSC_RUNTIME_CARRIER_SIGNAL_H
#define FLEXSC_RUNTIME_CARRIER_SIGNAL_H

#include <signal.h>

#include "runtime/base/sigset.h"
#include "carrier.h"

/* Give the calling carrier a signal stack. */
void flexsc__signal_stack(struct carrier *c);
/* The calling carrier: free its signal stack and timer. */
void flexsc__signal_fini(struct carrier *c);

/* The calling carrier: unblock the signals of SIGNAL_RAISED, except those in "but". */
void flexsc__signal_unblock(struct carrier *c, sigmask_t but);

/*
 * Carrier c, on its own stack: a SIGPIPE came, and c has collected completions since.
 * If none of the collected calls ended with EPIPE, a program sent the SIGPIPE: send it
 * to the process again, so that another thread gets it.
 */
void flexsc__signal_pipe(struct carrier *c);

/* Any thread: call the user thread that c runs to its host, if it is wanted there. */
void flexsc__signal_carrier(const struct carrier *c);

/*
 * Monitor only: call the user thread that runs on c to its host, out of the system call
 * in c->stuck.
 */
void flexsc__signal_stuck(struct carrier *c);
/*
 * As flexsc__signal_carrier(), but by a timer that expires at the next tick of c's
 * processor. The kernel checks timers of processor time when it returns to the program.
 * So the signal interrupts no call, not even one that is just beginning. False: c has
 * no such timer.
 */
bool flexsc__signal_running(const struct carrier *c);

/* Create the calling carrier's timer for flexsc__signal_running(). Negative: failed. */
int flexsc__signal_timer(const struct carrier *c);

/* Did the runtime, and not libc, send this SIGSETXID? */
bool flexsc__signal_is_marked(const siginfo_t *info);

/*
 * The call that the monitor found the calling carrier in, if flexsc__signal_stuck()
 * sent this SIGSETXID. Otherwise nr is negative.
 */
struct stuck flexsc__signal_noted(struct carrier *c, const siginfo_t *info);

#endif /* FLEXSC_RUNTIME_CARRIER_SIGNAL_H */
