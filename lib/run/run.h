/* SPDX-License-Identifier: MIT */
#ifndef FLEXSC_RUN_H
#define FLEXSC_RUN_H

#include <stdbool.h>

struct flexsc_loop;

/* The loop ends: run it until nothing is posted any more. Owner only. */
void flexsc__drain(struct flexsc_loop *loop);

/*
 * Collect what is complete and run its callbacks, without the engine's wait; what
 * has come by time only with "timed". By who acts as owner: adopt.h.
 */
void flexsc__run_results(struct flexsc_loop *loop, bool timed);

#endif /* FLEXSC_RUN_H */
