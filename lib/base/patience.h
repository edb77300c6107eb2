/* SPDX-License-Identifier: MIT */
/*
 * How long a thread polls for work before it sleeps. If adaptive, the time depends on
 * how long the last waits were, polling and sleeping together: a wait within the limit
 * doubles it, up to the limit, and a longer wait halves it, down to 0. So a thread that
 * would poll in vain hardly polls. The module does the same (FLEXSC_SPIN_ADAPTIVE).
 */
#ifndef FLEXSC_PATIENCE_H
#define FLEXSC_PATIENCE_H

#include <stdbool.h>
#include <stdint.h>

#define PATIENCE_LEAST	1000U	/* the shortest time to poll, except 0, in ns */

struct patience {
	uint64_t most;		/* the limit, in ns */
	uint64_t now;		/* how long to poll, in ns */
	uint64_t since;		/* when the wait began that isn't evaluated yet; 0:
				 * there is none */
	bool adaptive;
};

static inline void patience_init(struct patience *patience, uint64_t most,
				 bool adaptive)
{
	*patience = (struct patience){
		.most = most, .now = most, .adaptive = adaptive,
	};
}

/* Polling has ended without work: the thread goes to sleep. */
static inline void patience_sleeps(struct patience *patience, uint64_t since)
{
	if (patience->adaptive)
		patience->since = since;
}

/* The thread has got work, or another reason to wake. */
static inline void patience_wakes(struct patience *patience, uint64_t time)
{
	const uint64_t waited = time - patience->since;

	patience->since = 0;
	if (waited > patience->most)
		patience->now /= 2;
	else
		patience->now *= 2;
	if (waited > patience->most && patience->now < PATIENCE_LEAST)
		patience->now = 0;
	else if (patience->now < PATIENCE_LEAST)
		patience->now = PATIENCE_LEAST;
	if (patience->now > patience->most)
		patience->now = patience->most;
}

#endif /* FLEXSC_PATIENCE_H */
