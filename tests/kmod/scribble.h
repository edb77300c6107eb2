/* SPDX-License-Identifier: MIT */
/*
 * The fuzzer's threads write arbitrary values to arbitrary places in the memory that
 * the process shares with the kernel.
 */
#ifndef FLEXSC_TESTS_SCRIBBLE_H
#define FLEXSC_TESTS_SCRIBBLE_H

#include "raw.h"

/* Known to every thread of the process. */
extern char *area;		/* its original address */
extern int things[8];		/* descriptors */

/* A number that a call or an ioctl may take for an address. */
uint64_t scribble_address(void);
uint64_t scribble_value(void);
uint32_t scribble_index(void);
/* A plausible call: most of these do something. */
void scribble_call(struct flexsc_entry *entry);
void scribble(void);

#endif /* FLEXSC_TESTS_SCRIBBLE_H */
