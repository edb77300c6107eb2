/* SPDX-License-Identifier: MIT */
/*
 * Vector registers. A function call may change them, so the switch doesn't
 * preserve them. But a system call preserves them, so at a patched place in
 * libc they have to survive what other user threads do meanwhile. The runtime
 * is compiled not to use them; around a suspension they are saved on the user
 * thread's stack.
 */
#ifndef FLEXSC_RUNTIME_VECTORS_H
#define FLEXSC_RUNTIME_VECTORS_H

#include <stdbool.h>

/*
 * Called once, at the start. False if the processor can't save the registers.
 */
bool flexsc__vectors_probe(void);

/*
 * Save the registers on the current stack, run the function, which is compiled
 * not to use them, and restore them.
 */
void flexsc__vectors_around(void (*run)(void *), void *arg);

#endif /* FLEXSC_RUNTIME_VECTORS_H */
