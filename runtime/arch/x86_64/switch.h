/* SPDX-License-Identifier: MIT */
/* The switch between two stacks of a kernel thread: switch.S. */
#ifndef FLEXSC_RUNTIME_SWITCH_H
#define FLEXSC_RUNTIME_SWITCH_H

#include <stdint.h>

/*
 * Leave this stack, storing its pointer to *from, for the stack whose pointer
 * is "to", with this FS base. Returns when this stack is switched back to.
 */
void flexsc__switch(void **from, void *to, uint64_t fs);
/*
 * The code that a fresh stack begins with: context_init() says what lies there.
 */
void flexsc__begin(void);

#endif /* FLEXSC_RUNTIME_SWITCH_H */
