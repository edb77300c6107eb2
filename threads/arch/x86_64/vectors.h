/* SPDX-License-Identifier: MIT */
/*
 * Vector registers. A function call loses them, so a switch doesn't keep them;
 * but a system call keeps them, so at a patched place in libc they have to
 * survive whatever others do meanwhile. The runtime is compiled not to use
 * them; around a suspension they are saved on the user thread's stack.
 */
#ifndef FLEXSC_THREADS_VECTORS_H
#define FLEXSC_THREADS_VECTORS_H

#include <stdbool.h>

/* Once, at the start. False: the processor can't save them. */
bool flexsc__vectors_probe(void);

#endif /* FLEXSC_THREADS_VECTORS_H */
