/* SPDX-License-Identifier: MIT */
#ifndef FLEXSC_RUN_H
#define FLEXSC_RUN_H

#include <stdbool.h>

struct flexsc_loop;

/* The loop ends: run it until nothing is posted any more. Owner only. */
void flexsc__drain(struct flexsc_loop *loop);

/*
 * Run the callbacks of all results that are in memory, without the engine's wait. With
 * "timed", also those of timers, deadlines and signals. The owner, or its heir: handover.h.
 */
void flexsc__run_results(struct flexsc_loop *loop, bool timed);

#endif /* FLEXSC_RUN_H */
