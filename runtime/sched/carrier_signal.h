/* SPDX-License-Identifier: MIT */
/*
 * What a carrier needs for signals, and how a carrier is sent one:
 * signals/signals.h says what happens then.
 */
#ifndef FLEXSC_RUNTIME_CARRIER_SIGNAL_H
#define FLEXSC_RUNTIME_CARRIER_SIGNAL_H

#include <signal.h>

#include "runtime/base/sigset.h"
#include "carrier.h"

/* Give the calling carrier a stack for the signals that reach it. */
void flexsc__signal_stack(struct carrier *c);
/* Give the stack and the timer back, on the carrier. */
void flexsc__signal_fini(struct carrier *c);

/*
 * Unblock on the calling carrier all of SIGNAL_RAISED, except signals in "but".
 */
void flexsc__signal_unblock(struct carrier *c, sigmask_t but);

/*
 * On a carrier's own stack. A SIGPIPE came before the carrier looked at the
 * calls that are complete by now. If no such call ended with EPIPE, the SIGPIPE
 * was sent: give it back to the process.
 */
void flexsc__signal_pipe(struct carrier *c);

/*
 * Any thread: call the user thread that runs on this carrier to its host, if it is
 * wanted there.
 */
void flexsc__signal_carrier(const struct carrier *c);

/*
 * Monitor only: call the user thread that runs on this carrier to its host. c->stuck is
 * the system call that it blocks in.
 */
void flexsc__signal_stuck(struct carrier *c);
/*
 * Monitor only: call the user thread that runs on this carrier to its host, at its
 * processor's next tick. The kernel looks at timers of processor time on its way back
 * to the program, so the signal interrupts no call, not even one that begins at this
 * moment. False if the carrier has no such timer.
 */
bool flexsc__signal_running(const struct carrier *c);

/*
 * The calling carrier's timer for flexsc__signal_running(); negative if there
 * is none.
 */
int flexsc__signal_timer(const struct carrier *c);

/* Is this SIGSETXID the runtime's, and not libc's? */
bool flexsc__signal_is_marked(const siginfo_t *info);

/*
 * The call that the monitor found the calling carrier in, if this SIGSETXID is
 * flexsc__signal_stuck()'s. Else its nr is negative.
 */
struct stuck flexsc__signal_noted(struct carrier *c, const siginfo_t *info);

#endif /* FLEXSC_RUNTIME_CARRIER_SIGNAL_H */
