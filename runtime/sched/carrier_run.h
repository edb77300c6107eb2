/* SPDX-License-Identifier: MIT */
/*
 * What a carrier does, on its own stack, again and again:
 *
 *	take what others put into its inbox;
 *	run a user thread from the queue; user threads whose last run was long
 *	come after the others, except for one run in four;
 *	every few runs, collect the calls that are complete;
 *	when its queues are empty, take half of another carrier's;
 *	when there is nothing to run, submit what was posted, spin for a moment
 *	(one carrier at a time does), and sleep in the loop.
 */
#ifndef FLEXSC_RUNTIME_CARRIER_RUN_H
#define FLEXSC_RUNTIME_CARRIER_RUN_H

struct carrier;

/* Carrier c, on its own stack: run user threads until c is to end. */
void flexsc__carrier_run(struct carrier *c);

#endif /* FLEXSC_RUNTIME_CARRIER_RUN_H */
