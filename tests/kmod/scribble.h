/* SPDX-License-Identifier: MIT */
/*
 * What the fuzzer's threads write, and where: anything, anywhere into the
 * memory that the process shares with the kernel.
 */
#ifndef FLEXSC_TESTS_SCRIBBLE_H
#define FLEXSC_TESTS_SCRIBBLE_H

#include "raw.h"

/* What every thread of the process knows. */
extern char *area;		/* where it was mapped at first */
extern int things[8];		/* descriptors */

/* What a call or an ioctl may take for an address. */
uint64_t scribble_address(void);
uint64_t scribble_value(void);
uint32_t scribble_index(void);
/* A call that one would make: most of them have something to do. */
void scribble_call(struct flexsc_entry *entry);
void scribble(void);

#endif /* FLEXSC_TESTS_SCRIBBLE_H */
