/* SPDX-License-Identifier: MIT */
/* Starting and ending all carriers. One thread at a time does so. */
#ifndef FLEXSC_RUNTIME_CARRIERS_H
#define FLEXSC_RUNTIME_CARRIERS_H

#include <flexsc/loop.h>
#include <stdbool.h>
#include <stddef.h>

#define SPARES_MOST	64U	/* most spares ever created: spare.h */

/*
 * Start n carriers whose loops have these options and, if "spare" is set, a spare with
 * them: one that started later would take low descriptors for a moment, while the
 * program may count on the lowest free one. Returns how many of the n have started, or
 * -errno if no carrier has. If one of them or the spare is missing, "why" has the
 * reason.
 */
int flexsc__carriers_start(unsigned int n, bool spare,
			   const struct flexsc_options *options, char *why,
			   size_t size);

/*
 * End all carriers and spares, and wait until they have ended. The caller guarantees
 * that they have no work and get none, and that the maker, the thread that creates
 * spares, has ended.
 */
void flexsc__carriers_end(void);

/*
 * Start one more carrier, as a spare. flexsc__runtime.carriers must have room for it.
 * Returns 0, or -errno with the reason in "why".
 */
int flexsc__carrier_start(const struct flexsc_options *options, char *why,
			  size_t size);

/* In a forked child: forget the parent's carriers, and close their files. */
void flexsc__carriers_forked(void);

#endif /* FLEXSC_RUNTIME_CARRIERS_H */
