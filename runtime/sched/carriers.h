/* SPDX-License-Identifier: MIT */
/* All carriers: they start together, and end together. */
#ifndef FLEXSC_RUNTIME_CARRIERS_H
#define FLEXSC_RUNTIME_CARRIERS_H

#include <flexsc/loop.h>
#include <stdbool.h>
#include <stddef.h>

#define SPARES_MOST	64U	/* spares that are ever made: spare.h */

/*
 * Start n carriers whose loops have these options, and a spare. A spare that started
 * later would take descriptors, with low numbers for a moment, while the program counts
 * on the lowest free one. Returns how many carriers there are besides the spare, or
 * -errno; if one is missing, "why" is the reason.
 */
int flexsc__carriers_start(unsigned int n, bool spare,
			   const struct flexsc_options *options, char *why,
			   size_t size);

/*
 * End all carriers, spares included, and wait until they have ended. They have nothing
 * to do by now, and get nothing to do. The thread that makes spares has ended.
 */
void flexsc__carriers_end(void);

/*
 * Start one more carrier, as a spare. flexsc__runtime.carriers has room for it. Returns
 * 0, or -errno with the reason in "why".
 */
int flexsc__carrier_start(const struct flexsc_options *options, char *why,
			  size_t size);

/* Forget the carriers in a forked child, which has none. */
void flexsc__carriers_forked(void);

#endif /* FLEXSC_RUNTIME_CARRIERS_H */
