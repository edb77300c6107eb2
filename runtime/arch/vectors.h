/* SPDX-License-Identifier: MIT */
/*
 * Saves vector registers on a user thread's own stack while the user thread is
 * suspended. A function call may change these registers, so the switch doesn't preserve
 * them. But a system call preserves them, so a call from a patched place in libc must
 * preserve them, too, although other user threads run meanwhile. The runtime itself is
 * compiled not to use vector registers.
 */
#ifndef FLEXSC_RUNTIME_VECTORS_H
#define FLEXSC_RUNTIME_VECTORS_H

#include <stdbool.h>

/* Called once, at the start. False if the processor can't save the registers. */
bool flexsc__vectors_probe(void);

/*
 * Save the registers on the current stack, call run(arg), and restore them. "run" is
 * compiled not to use them.
 */
void flexsc__vectors_around(void (*run)(void *), void *arg);

#endif /* FLEXSC_RUNTIME_VECTORS_H */
