/* SPDX-License-Identifier: MIT */
/*
 * Adopting a stuck carrier.
 *
 * A carrier is stuck while its user thread is in a call, or waits for a page, that no
 * signal interrupts. Another carrier, the heir, takes over the stuck carrier's queues,
 * inbox, timers, results and posted waits. The stuck carrier is the heir's ward until
 * it runs again. Then the ward becomes a spare (spare.h).
 *
 * The state is carrier.adopt. Four parties change it: the monitor; the gate, which is
 * the stuck carrier in a signal handler; the heir; and the carrier on its own stack.
 *
 *	NOT	-> CHECKED	monitor, before it checks the carrier
 *	CHECKED	-> NOT		monitor: the carrier isn't stuck
 *	CHECKED	-> REQUESTED	monitor: the carrier is stuck and needs an heir
 *	CHECKED	-> NOT		gate: the carrier runs
 *	REQUESTED -> NOT	gate: the carrier runs before it has an heir
 *	REQUESTED -> TAKEN	heir, as its first step: the gate closes
 *	TAKEN	-> DONE		heir, as its last step: the gate opens
 *	DONE	-> LEAVES	carrier, on its own stack: it wants its loop back
 *	LEAVES	-> NOT		heir: it has returned the loop
 *
 * While the heir works, the carrier executes no instruction of its own, because the
 * monitor has sent it a signal. If that signal is pending and not blocked while the
 * carrier is in an uninterruptible wait (state D in /proc), the kernel runs its handler
 * before the carrier's next instruction. The handler begins with the gate, and waits
 * there while the state is TAKEN. D3: the monitor sets CHECKED before it reads the
 * carrier's state, so a handler that begins after the reading finds CHECKED, REQUESTED
 * or TAKEN: it revokes the check or the request, or waits for the heir.
 *
 * The heir adopts only a carrier whose user thread is outside the runtime
 * (uthread.busy). Such a carrier has none of the runtime's locks, and isn't inside its
 * loop.
 *
 * D1: the heir sets "heir", then empties the carrier's inbox and list of rechecks. D2:
 * other threads add to one of these lists, then read "heir", and forward what they
 * added to the heir. All of these are sequentially consistent, so one of the two sees the
 * other's store, and nothing is left behind.
 */
#ifndef FLEXSC_RUNTIME_ADOPT_H
#define FLEXSC_RUNTIME_ADOPT_H

#include "carrier.h"

/*
 * Monitor only, some time after flexsc__signal_stuck(): if c is stuck, request an heir.
 * True: c is stuck, or was, and isn't back yet.
 */
bool flexsc__adopt_look(struct carrier *c);

/* The gate: carrier c calls this first in each signal handler. Async-signal-safe. */
void flexsc__adopt_gate(struct carrier *c);

/*
 * Carrier c, on its own stack, if c->attend is set: retire, get the loop back, or
 * adopt.
 */
void flexsc__adopt_attend(struct carrier *c);
/*
 * Called by carrier c, which has adopted stuck carriers (its wards): run the callbacks
 * of the wards' loops, and return the loops of wards that run again.
 */
void flexsc__adopt_serve(struct carrier *c);

/*
 * Reset the counts of heirs and of stuck carriers. Called when all carriers have ended,
 * and in a forked child.
 */
void flexsc__adopt_forget(void);

#endif /* FLEXSC_RUNTIME_ADOPT_H */
