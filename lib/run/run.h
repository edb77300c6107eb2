/* SPDX-License-Identifier: MIT */
/* Functions shared within this folder. Owner only unless stated otherwise. */
#ifndef FLEXSC_RUN_H
#define FLEXSC_RUN_H

#include <flexsc/flexsc.h>
#include <stdbool.h>
#include <stddef.h>

struct flexsc_loop;

/* Called before the loop is destroyed: run it until no call is pending. */
void flexsc__drain(struct flexsc_loop *loop);

/*
 * Run the callbacks of all results that are in memory, without engine->wait(). With
 * "timed", also those of timers, deadlines and signals. Called by the owner or its
 * heir: handover.h.
 */
void flexsc__run_results(struct flexsc_loop *loop, bool timed);

/*
 * make.c: create a loop. "why", if not NULL, receives the reason for a failure in one
 * line.
 */
int flexsc__loop_create(struct flexsc_loop **out,
			const struct flexsc_options *options, char *why,
			size_t size);

/*
 * default_loop.c: called when the loop is about to be destroyed, to forget it if it is
 * a default loop.
 */
void flexsc__default_loop_forget(const struct flexsc_loop *loop);

/*
 * default_loop.c: called in a forked child: its thread has no default loop from now on,
 * because the parent's is stale.
 */
void flexsc__default_loop_forked(void);

#endif /* FLEXSC_RUN_H */
