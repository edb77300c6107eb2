/* SPDX-License-Identifier: MIT */
/*
 * A carrier that is stuck: its user thread is in a call, or waits for a page, that
 * no signal interrupts. Another carrier, its heir, takes what it has: its queues,
 * inbox, timers, results and posted waits. The stuck one is the heir's ward until
 * it is back. Then it is a spare (spare.h).
 *
 *	NOT	-> LOOKED	monitor, before it looks at the carrier
 *	LOOKED	-> NOT		monitor: the carrier isn't stuck
 *	LOOKED	-> ASKED	monitor: it is; a carrier is asked to be its heir
 *	LOOKED	-> NOT		gate: the carrier runs
 *	ASKED	-> NOT		gate: it was stuck, and runs before it has an heir
 *	ASKED	-> TAKEN	heir: from here on the gate is closed
 *	TAKEN	-> DONE		heir: it has all, and the gate is open
 *	DONE	-> LEAVES	carrier, on its own stack: it waits for its loop
 *	LEAVES	-> NOT		heir: it has let go of the loop
 *
 * The gate is what makes this safe. The monitor has sent the carrier a signal. If
 * that signal is pending, isn't blocked, and the carrier is in an uninterruptible
 * wait (state D in /proc), the kernel runs the signal's handler before any other
 * instruction of the carrier's. The handler begins with the gate, and waits there
 * while an heir is at work. D3: the monitor sets LOOKED before it looks at the
 * carrier, so a handler that begins later finds that.
 *
 * What the heir may touch has to be at rest: the user thread is outside the runtime
 * (uthread.busy), so the carrier holds none of the runtime's locks and isn't inside
 * its loop.
 *
 * D1: the heir sets "heir", then takes what is in the carrier's boxes. D2: others put
 * something there, then look at "heir", and forward it to the heir's boxes. Both are
 * sequentially consistent, so nothing stays behind.
 */
#ifndef FLEXSC_THREADS_ADOPT_H
#define FLEXSC_THREADS_ADOPT_H

#include "carrier.h"

enum adopt {
	ADOPT_NOT = 0,
	ADOPT_LOOKED,
	ADOPT_ASKED,
	ADOPT_TAKEN,
	ADOPT_DONE,
	ADOPT_LEAVES,
};

/*
 * Monitor only, a while after flexsc__signal_stuck(): see whether c is stuck, and
 * have another carrier adopt it if it is. True if it is.
 */
bool flexsc__adopt_look(struct carrier *c);

/* In any signal's handler on carrier c, first of all. */
void flexsc__adopt_gate(struct carrier *c);
/* After the gate: does c have an heir, so that its user thread has to go home? */
bool flexsc__adopt_is_ward(const struct carrier *c);

/* Carrier c, on its own stack: c->asked is set. */
void flexsc__adopt_attend(struct carrier *c);
/* Carrier c, which has wards: run the callbacks of their loops. */
void flexsc__adopt_serve(struct carrier *c);

/* There are no carriers any more. */
void flexsc__adopt_forget(void);

#endif /* FLEXSC_THREADS_ADOPT_H */
